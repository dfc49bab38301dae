#include "codegen/cpu/emitter.h"

#include <algorithm>

#include "codegen/cpu/arithmetic.h"
#include "kernel/analysis.h"
#include "kernel/ops.h"

namespace quartet::codegen {

using kernel::Op;
using kernel::Region;
using kernel::Statement;
using kernel::ValueId;

namespace {

constexpr uint64_t kMaxStatements = 400000;
constexpr int64_t kMostElements = int64_t{1} << 40;  // extents and task counts stay below; see README.md
constexpr int64_t kMaxStack = 128 * 1024;            // a host's thread may have little

}  // namespace

Emitter::Emitter(llvm::Module& module, const Target& target, const kernel::Kernel& kernel)
    : module_(module),
      ir_(module.getContext(), target),
      kernel_(kernel),
      math_(ir_),
      memory_(math_, kernel),
      varying_(kernel::varying_values(kernel)),
      values_(kernel.value_types.size()) {}

Status Emitter::emit(const std::string& symbol) {
  const std::string who = "kernel '" + kernel_.name + "': ";
  if (const uint64_t size = emitted_statements(kernel_, ir_.target); size > kMaxStatements) {
    return make_error(Code::resource_exhausted, "its loops unroll to about %llu operations, the limit is %llu",
                      static_cast<unsigned long long>(size), static_cast<unsigned long long>(kMaxStatements))
        .with_prefix(who);
  }
  llvm::Function* const function = declare(symbol);
  enter(function);
  llvm::Argument* const begin = function->getArg(2);
  llvm::Argument* const end = function->getArg(3);
  const int64_t tasks = std::clamp<int64_t>(kernel_.tasks.constant().value_or(kMostElements), 1, kMostElements);
  ir_.loop(begin, end, ir_.i64(1), [&](llvm::Value* task) {
    const Value number = math_.index(task, {0, tasks - 1}, 1);
    region(kernel_.body, {&number, 1});
  });
  ir_.b.CreateRetVoid();
  if (ir_.stack_bytes() > kMaxStack)
    fail(Code::resource_exhausted, "it needs " + std::to_string(ir_.stack_bytes()) + " bytes of stack");
  return status_.with_prefix(who);
}

llvm::Function* Emitter::declare(const std::string& symbol) {
  auto& b = ir_.b;
  llvm::Type* const pointer = b.getPtrTy();
  llvm::Type* const number = b.getInt64Ty();
  auto* const type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, number, number, pointer}, false);
  auto* const function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
  const char* const names[] = {"buffers", "dims", "begin", "end", "scratch"};
  for (unsigned i = 0; i < 5; ++i) function->getArg(i)->setName(names[i]);
  const std::string bits = std::to_string(ir_.target.vector_bytes * 8);
  function->addFnAttr("target-features", ir_.target.features);
  function->addFnAttr("prefer-vector-width", bits);
  function->addFnAttr("min-legal-vector-width", bits);
  function->addFnAttr("frame-pointer", "none");
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->setAlignment(llvm::Align(64));
  return function;
}

void Emitter::enter(llvm::Function* function) {
  auto& b = ir_.b;
  b.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function));
  memory_.enter(function->getArg(0), function->getArg(4));
  for (int32_t i = 0; i < kernel_.dims; ++i) {
    llvm::Value* const from =
        b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), function->getArg(1), static_cast<uint64_t>(i));
    Range range{0, kMostElements};
    const size_t n = static_cast<size_t>(i);
    if (n < kernel_.dim_bounds.size() && kernel_.dim_bounds[n].is_constant())
      range.hi = *kernel_.dim_bounds[n].constant();
    dims_.push_back(math_.index(b.CreateAlignedLoad(b.getInt64Ty(), from, llvm::Align(8), "dim"), range, 1));
  }
}

void Emitter::define(ValueId id, const Value& value) { values_[static_cast<size_t>(id)] = value; }

void Emitter::fail(Code code, const std::string& reason) {
  if (status_.ok()) status_ = Status(code, reason);
}

Emitter::Values Emitter::region(const Region& region, std::span<const Value> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) define(region.arguments[i], arguments[i]);
  for (const Statement& s : region.body)
    if (s.op != Op::yield) statement(s);
  Values out;
  for (const ValueId id : region.body.back().operands) out.push_back(value(id));
  return out;
}

void Emitter::statement(const Statement& s) {
  switch (s.op) {
    case Op::constant: {
      Value constant = math_.uniform(s.dtype, ir_.constant(s.dtype, s.immediate));
      define(s.results[0], s.dtype == DType::i64 ? math_.number(s.immediate) : constant);
      break;
    }
    case Op::dim:
      define(s.results[0], dims_[static_cast<size_t>(s.immediate)]);
      break;
    case Op::load:
      load(s);
      break;
    case Op::store:
      store(s);
      break;
    case Op::loop:
      loop(s);
      break;
    case Op::branch:
      branch(s);
      break;
    case Op::reduce:
      reduce(s);
      break;
    case Op::contract:
      contract(s);
      break;
    case Op::yield:
      break;
    default:
      scalar(s);
      break;
  }
}

void Emitter::scalar(const Statement& s) {
  llvm::SmallVector<Value, 3> operands;
  for (const ValueId id : s.operands) operands.push_back(value(id));
  Value result = math_.apply(kernel::scalar_of(s.op), s.dtype, operands, lanes_.count);
  if (!result.base && !result.vector) {
    fail(Code::unsupported,
         std::string(kernel::op_name(s.op)) + " of " + dtype_name(operands[0].dtype) + " was not expanded");
    result = math_.vector(s.dtype, llvm::PoisonValue::get(ir_.type(s.dtype, lanes_.count)));
  }
  define(s.results[0], result);
}

void Emitter::load(const Statement& s) {
  const bool guarded = s.operands.size() == 3;
  define(s.results[0], memory_.load(s.buffer, value(s.operands[0]), guarded ? &value(s.operands[1]) : nullptr,
                                    guarded ? &value(s.operands[2]) : nullptr, lanes_));
}

void Emitter::store(const Statement& s) {
  memory_.store(s.buffer, value(s.operands[0]), value(s.operands[1]),
                s.operands.size() == 3 ? &value(s.operands[2]) : nullptr, lanes_);
}

// The condition is the same for all lanes. Results are joined as vectors where either side's are.
void Emitter::branch(const Statement& s) {
  auto& b = ir_.b;
  llvm::BasicBlock* const sides[] = {ir_.block("then"), ir_.block("else")};
  llvm::BasicBlock* const after = ir_.block("after");
  b.CreateCondBr(value(s.operands[0]).base, sides[0], sides[1]);
  Values yielded[2];
  llvm::BasicBlock* ends[2];
  for (int side = 0; side < 2; ++side) {
    b.SetInsertPoint(sides[side]);
    yielded[side] = region(s.regions[static_cast<size_t>(side)], {});
    ends[side] = b.GetInsertBlock();
  }
  std::vector<LlvmValues> forms(2);
  for (size_t i = 0; i < s.results.size(); ++i) {
    const bool scalar = yielded[0][i].uniform() && yielded[1][i].uniform();
    for (size_t side = 0; side < 2; ++side) {
      b.SetInsertPoint(ends[side]);
      forms[side].push_back(math_.all(yielded[side][i], scalar ? 1 : lanes_.count));
    }
  }
  for (llvm::BasicBlock* const end : ends) {
    b.SetInsertPoint(end);
    b.CreateBr(after);
  }
  after->moveAfter(ends[1]);
  b.SetInsertPoint(after);
  for (size_t i = 0; i < s.results.size(); ++i) {
    llvm::PHINode* const phi = b.CreatePHI(forms[0][i]->getType(), 2);
    phi->addIncoming(forms[0][i], ends[0]);
    phi->addIncoming(forms[1][i], ends[1]);
    define(s.results[i], math_.vector(yielded[0][i].dtype, phi));
  }
}

}  // namespace quartet::codegen
