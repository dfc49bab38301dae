#include "codegen/cpu/memory.h"

#include <algorithm>

#include <llvm/IR/MDBuilder.h>

#include "codegen/cpu/arithmetic.h"

namespace quartet::codegen {
namespace {

using kernel::BufferId;
using kernel::Scope;

bool is_true(const llvm::Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  return constant && constant->isOneValue() && !constant->getType()->isVectorTy();
}

bool is_one(const llvm::Value* value) {
  const auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(value);
  return constant && constant->isOne();
}

}  // namespace

void Memory::enter(llvm::Value* buffers, llvm::Value* scratch) {
  auto& b = ir_.b;
  int64_t argument = 0, offset = 0;
  for (const kernel::Buffer& buffer : kernel_.buffers) {
    Base base;
    if (buffer.scope == Scope::task) {
      base.pointer = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), scratch, static_cast<uint64_t>(offset));
      offset += (*buffer.elements.constant() * static_cast<int64_t>(size_of(buffer.dtype)) + 63) / 64 * 64;
    } else {
      base.pointer = b.CreateAlignedLoad(
          b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), buffers, static_cast<uint64_t>(argument++)),
          llvm::Align(8), buffer.name.empty() ? "argument" : buffer.name);
    }
    bases_.push_back(base);
  }
  set_scopes();
}

// What is written is told apart from everything else; arguments that are read may be one and the same.
void Memory::set_scopes() {
  llvm::MDBuilder metadata(ir_.b.getContext());
  llvm::MDNode* const domain = metadata.createAnonymousAliasScopeDomain();
  llvm::MDNode* shared = nullptr;
  std::vector<llvm::MDNode*> scopes;
  for (const kernel::Buffer& buffer : kernel_.buffers) {
    const bool own = buffer.scope == Scope::argument_out || buffer.scope == Scope::task;
    if (!own && !shared) shared = metadata.createAnonymousAliasScope(domain);
    scopes.push_back(own ? metadata.createAnonymousAliasScope(domain) : shared);
  }
  for (size_t i = 0; i < bases_.size(); ++i) {
    llvm::SmallVector<llvm::Metadata*, 8> others;
    for (llvm::MDNode* const scope : scopes)
      if (scope != scopes[i] && std::find(others.begin(), others.end(), scope) == others.end()) others.push_back(scope);
    bases_[i].scope = llvm::MDNode::get(ir_.b.getContext(), {scopes[i]});
    if (!others.empty()) bases_[i].others = llvm::MDNode::get(ir_.b.getContext(), others);
  }
}

void Memory::mark(BufferId buffer, llvm::Instruction* access) const {
  const Base& base = bases_[static_cast<size_t>(buffer)];
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, base.scope);
  if (base.others) access->setMetadata(llvm::LLVMContext::MD_noalias, base.others);
}

llvm::Value* Memory::address(BufferId buffer, llvm::Value* element) {
  return ir_.b.CreateGEP(ir_.memory_type(dtype(buffer)), bases_[static_cast<size_t>(buffer)].pointer, element);
}

llvm::Align Memory::element_alignment(BufferId buffer) const {
  return llvm::Align(std::min<uint64_t>(size_of(dtype(buffer)),
                                        static_cast<uint64_t>(kernel_.buffers[static_cast<size_t>(buffer)].alignment)));
}

llvm::Align Memory::alignment(BufferId buffer, const Value& index) const {
  const uint64_t base = static_cast<uint64_t>(kernel_.buffers[static_cast<size_t>(buffer)].alignment);
  const uint64_t distance = (index.multiple & (~index.multiple + 1)) * size_of(dtype(buffer));
  return llvm::Align(distance == 0 ? base : std::min(base, distance));
}

llvm::Value* Memory::mask(const Value* guard, const Lanes& lanes) {
  if (!guard) return lanes.active;
  llvm::Value* const all = math_.all(*guard, lanes.count);
  return lanes.active ? ir_.b.CreateAnd(all, lanes.active) : all;
}

llvm::Value* Memory::addresses(BufferId buffer, const Value& index, int lanes) {
  auto& b = ir_.b;
  llvm::Type* const element = ir_.memory_type(dtype(buffer));
  llvm::Value* const pointer = bases_[static_cast<size_t>(buffer)].pointer;
  if (index.vector) return b.CreateGEP(element, pointer, index.vector);
  llvm::Value* const start = b.CreateGEP(element, pointer, index.base);
  if (llvm::Value* const offsets = math_.offsets_i32(index, lanes))
    return b.CreateGEP(element, start, b.CreateSExt(offsets, ir_.type(DType::i64, lanes)));
  Value rest = index;
  rest.base = ir_.i64(0);
  return b.CreateGEP(element, start, math_.all(rest, lanes));
}

llvm::Value* Memory::load_scalar(BufferId buffer, const Value& index) {
  const DType type = dtype(buffer);
  llvm::LoadInst* const load =
      ir_.b.CreateAlignedLoad(ir_.memory_type(type), address(buffer, index.base), alignment(buffer, index));
  mark(buffer, load);
  return from_memory(ir_, type, load);
}

llvm::Value* Memory::load_run(BufferId buffer, const Value& index, llvm::Value* mask, llvm::Value* fill, int lanes) {
  const DType type = dtype(buffer);
  llvm::Type* const memory_type = ir_.memory_type(type, lanes);
  llvm::Value* const from = address(buffer, index.base);
  llvm::Instruction* load = nullptr;
  if (mask) {
    llvm::Value* const rest = fill ? to_memory(ir_, type, fill) : llvm::Constant::getNullValue(memory_type);
    load = ir_.b.CreateMaskedLoad(memory_type, from, alignment(buffer, index), mask, rest);
  } else {
    load = ir_.b.CreateAlignedLoad(memory_type, from, alignment(buffer, index));
  }
  mark(buffer, load);
  return from_memory(ir_, type, load);
}

llvm::Value* Memory::gather(BufferId buffer, const Value& index, llvm::Value* mask, llvm::Value* fill, int lanes) {
  auto& b = ir_.b;
  const DType type = dtype(buffer);
  llvm::Type* const memory_type = ir_.memory_type(type, lanes);
  const bool instruction = ir_.target.isa == Isa::avx512 && size_of(type) >= 4;
  if (!mask && index.stride && !index.offset && (!instruction || lanes <= 8)) {  // addresses stay scalar
    llvm::Value* out = llvm::PoisonValue::get(memory_type);
    llvm::Value* from = address(buffer, index.base);
    for (int i = 0; i < lanes; ++i) {
      if (i > 0) from = b.CreateGEP(ir_.memory_type(type), from, index.stride);
      llvm::LoadInst* const load = b.CreateAlignedLoad(ir_.memory_type(type), from, element_alignment(buffer));
      this->mark(buffer, load);
      out = b.CreateInsertElement(out, load, static_cast<uint64_t>(i));
    }
    return from_memory(ir_, type, out);
  }
  llvm::Value* const rest = mask && fill ? to_memory(ir_, type, fill) : llvm::Constant::getNullValue(memory_type);
  llvm::Value* const which = mask ? mask : llvm::ConstantInt::getTrue(ir_.type(DType::boolean, lanes));
  llvm::CallInst* const load =
      b.CreateMaskedGather(memory_type, addresses(buffer, index, lanes), element_alignment(buffer), which, rest);
  this->mark(buffer, load);
  return from_memory(ir_, type, load);
}

// Without a guard that is one for all lanes.
Value Memory::load_some(BufferId buffer, const Value& index, const Value* guard, const Value* fill,
                        const Lanes& lanes) {
  auto& b = ir_.b;
  const DType type = dtype(buffer);
  if (index.uniform() && !guard) {
    Value out = math_.uniform(type, load_scalar(buffer, index));
    return out;
  }
  llvm::Value* const which = mask(guard, lanes);
  llvm::Value* const rest = guard ? math_.all(*fill, lanes.count) : nullptr;
  if (index.uniform()) {  // one element for the lanes that want it, read if there is any
    llvm::Value* loaded = llvm::Constant::getNullValue(ir_.type(type));
    llvm::Value* const any = b.CreateOrReduce(which);
    llvm::BasicBlock* const before = b.GetInsertBlock();
    llvm::BasicBlock *from = nullptr, *const skipped = before;
    llvm::Value* value = nullptr;
    ir_.when(any, [&] {
      value = load_scalar(buffer, index);
      from = b.GetInsertBlock();
    });
    if (from) {
      llvm::PHINode* const phi = b.CreatePHI(value->getType(), 2);
      phi->addIncoming(value, from);
      phi->addIncoming(loaded, skipped);
      loaded = phi;
    }
    return math_.vector(type, b.CreateSelect(which, ir_.splat(loaded, lanes.count), rest));
  }
  if (is_one(index.stride) && !index.offset)
    return math_.vector(type, load_run(buffer, index, which, rest, lanes.count));
  return math_.vector(type, gather(buffer, index, which, rest, lanes.count));
}

Value Memory::load(BufferId buffer, const Value& index, const Value* guard, const Value* fill, const Lanes& lanes) {
  if (guard && guard->uniform() && is_true(guard->base)) guard = nullptr;
  if (!guard || !guard->uniform()) return load_some(buffer, index, guard, fill, lanes);
  // One guard for all lanes: a branch around the load.
  auto& b = ir_.b;
  llvm::BasicBlock* const before = b.GetInsertBlock();
  const DType type = dtype(buffer);
  const bool scalar = index.uniform() && fill->uniform();
  const int count = scalar ? 1 : lanes.count;
  llvm::Value* const otherwise = math_.all(*fill, count);
  llvm::BasicBlock* from = nullptr;
  llvm::Value* loaded = nullptr;
  ir_.when(guard->base, [&] {
    loaded = math_.all(load_some(buffer, index, nullptr, nullptr, lanes), count);
    from = b.GetInsertBlock();
  });
  if (!from) return *fill;  // never
  llvm::PHINode* const phi = b.CreatePHI(ir_.type(type, count), 2);
  phi->addIncoming(loaded, from);
  phi->addIncoming(otherwise, before);
  return math_.vector(type, phi);
}

void Memory::store_some(BufferId buffer, const Value& index, const Value& value, const Value* guard,
                        const Lanes& lanes) {
  auto& b = ir_.b;
  const DType type = dtype(buffer);
  llvm::Value* const which = lanes.count == 1 ? nullptr : mask(guard, lanes);
  llvm::Instruction* store = nullptr;
  if (lanes.count == 1 || (index.uniform() && !which)) {
    llvm::Value* const last =
        ir_.lane(math_.all(value, lanes.count), lanes.count - 1);  // the iteration that would come last
    store = b.CreateAlignedStore(to_memory(ir_, type, last), address(buffer, index.base), alignment(buffer, index));
  } else {
    llvm::Value* const all = to_memory(ir_, type, math_.all(value, lanes.count));
    if (is_one(index.stride) && !index.offset) {
      llvm::Value* const to = address(buffer, index.base);
      store = which ? static_cast<llvm::Instruction*>(b.CreateMaskedStore(all, to, alignment(buffer, index), which))
                    : b.CreateAlignedStore(all, to, alignment(buffer, index));
    } else {
      llvm::Value* const lanes_to_store =
          which ? which : llvm::ConstantInt::getTrue(ir_.type(DType::boolean, lanes.count));
      store =
          b.CreateMaskedScatter(all, addresses(buffer, index, lanes.count), element_alignment(buffer), lanes_to_store);
    }
  }
  mark(buffer, store);
}

void Memory::store(BufferId buffer, const Value& index, const Value& value, const Value* guard, const Lanes& lanes) {
  if (!guard || !guard->uniform()) return store_some(buffer, index, value, guard, lanes);
  ir_.when(guard->base, [&] { store_some(buffer, index, value, nullptr, lanes); });
}

}  // namespace quartet::codegen
