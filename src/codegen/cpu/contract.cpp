// The register tile of a contraction: accumulators in registers, one chain per element over k. Columns beyond the limit
// are never read nor computed: whole tiles take vectors of columns without masks, the others go vector by vector.
#include <algorithm>
#include <bit>

#include "codegen/cpu/arithmetic.h"
#include "codegen/cpu/contraction.h"

namespace quartet::codegen {

using kernel::Statement;

namespace {

constexpr size_t kInlineEpilogue = 400;  // statements in all, beyond which rows are looped over

std::optional<int64_t> constant_of(const llvm::Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant ? std::optional(constant->getSExtValue()) : std::nullopt;
}

}  // namespace

void Emitter::contract(const Statement& s) {
  auto& b = ir_.b;
  const int widest = ir_.target.lanes(size_of(s.dtype));
  const int lanes = std::min(widest, static_cast<int>(std::bit_ceil(static_cast<unsigned>(s.columns))));
  const Value limit = value(s.operands[6]);
  int columns = s.columns;  // of the tile that is emitted whole
  if (const auto known = constant_of(limit.base)) {
    if (*known <= 0) return;
    columns = static_cast<int>(std::min<int64_t>(*known, columns));
  }
  const bool certain = limit.range.lo >= columns;
  Tile whole{s, lanes, columns / lanes, ir_.i64(0)};
  const int rest = columns % lanes;
  const BodyShape shape = body_shape(kernel_, s.regions[0], varying_, ir_.target);
  const bool masks = shape.masks && ir_.target.masks_access(size_of(memory_.dtype(s.buffer_b)));
  if (rest != 0 && !masks) {  // whole vectors, then column by column
    llvm::Value* const end = ir_.intrinsic(llvm::Intrinsic::smin, limit.base, ir_.i64(columns));
    contract_rest(s, whole, end);
    return;
  }
  if (rest != 0) {
    ++whole.vectors;
    whole.last = first_lanes(ir_.i64(rest), lanes).active;
  }
  if (certain) {
    tile(whole);
    return;
  }
  llvm::BasicBlock *const full = ir_.block("whole"), *const part = ir_.block("part"), *const after = ir_.block("after");
  b.CreateCondBr(b.CreateICmpSGE(limit.base, ir_.i64(columns)), full, part);
  b.SetInsertPoint(full);
  tile(whole);
  b.CreateBr(after);
  b.SetInsertPoint(part);
  if (masks) {
    ir_.loop(ir_.i64(0), limit.base, ir_.i64(lanes), [&](llvm::Value* column) {
      tile({s, lanes, 1, column, first_lanes(b.CreateSub(limit.base, column), lanes).active});
    });
  } else {
    contract_rest(s, whole, limit.base);
  }
  b.CreateBr(after);
  after->moveAfter(b.GetInsertBlock());
  b.SetInsertPoint(after);
}

// Columns [0, limit) without masks. `whole` tells the lanes.
void Emitter::contract_rest(const Statement& s, const Tile& whole, llvm::Value* limit) {
  auto& b = ir_.b;
  llvm::Value* const columns = ir_.intrinsic(llvm::Intrinsic::smax, limit, ir_.i64(0));
  llvm::Value* const end = b.CreateAnd(columns, ir_.i64(-whole.lanes));
  ir_.loop(ir_.i64(0), end, ir_.i64(whole.lanes),
           [&](llvm::Value* column) { tile({s, whole.lanes, 1, column, nullptr}); });
  if (whole.lanes > 1)
    ir_.loop(end, columns, ir_.i64(1), [&](llvm::Value* column) { tile({s, 1, 1, column, nullptr}); });
}

void Emitter::tile(const Tile& t) {
  LlvmValues accumulators = initial_accumulators(t);
  k_loop(t, accumulators);
  epilogue(t, accumulators);
}

Emitter::LlvmValues Emitter::initial_accumulators(const Tile& t) {
  LlvmValues out(static_cast<size_t>(t.rows()) * static_cast<size_t>(t.vectors), ir_.constant(t.s.dtype, 0, t.lanes));
  if (t.s.regions.size() < 2) return out;
  const Lanes outer = lanes_;
  for (int row = 0; row < t.rows(); ++row) {
    for (int v = 0; v < t.vectors; ++v) {
      lanes_ = t.active(v);
      llvm::Value* const column = ir_.b.CreateAdd(t.column, ir_.i64(int64_t{v} * t.lanes));
      const Value arguments[] = {
          math_.number(row), math_.consecutive(column, {0, t.s.columns - 1}, static_cast<uint64_t>(t.lanes), t.lanes)};
      out[t.at(row, v)] = math_.all(region(t.s.regions[1], arguments)[0], t.lanes);
    }
  }
  lanes_ = outer;
  return out;
}

// Written out for each row and vector if that is little, else as a loop over the rows of the tile on the stack.
void Emitter::epilogue(const Tile& t, const LlvmValues& accumulators) {
  auto& b = ir_.b;
  const kernel::Region& body = t.s.regions[0];
  const Lanes outer = lanes_;
  const auto emit_row = [&](const Value& row, std::span<llvm::Value* const> of_row) {
    for (int v = 0; v < t.vectors; ++v) {
      lanes_ = t.active(v);
      llvm::Value* const column = b.CreateAdd(t.column, ir_.i64(int64_t{v} * t.lanes));
      const Value arguments[] = {
          row, math_.consecutive(column, {0, t.s.columns - 1}, static_cast<uint64_t>(t.lanes), t.lanes),
          math_.vector(t.s.dtype, of_row[static_cast<size_t>(v)])};
      region(body, arguments);
    }
    lanes_ = outer;
  };
  const size_t width = static_cast<size_t>(t.vectors);
  if (body.body.size() * accumulators.size() <= kInlineEpilogue) {
    for (int row = 0; row < t.rows(); ++row)
      emit_row(math_.number(row), std::span(accumulators).subspan(t.at(row, 0), width));
    return;
  }
  llvm::Type* const type = accumulators[0]->getType();
  llvm::Value* const array = ir_.stack_array(type, static_cast<int64_t>(accumulators.size()));
  for (size_t i = 0; i < accumulators.size(); ++i)
    b.CreateStore(accumulators[i], b.CreateConstInBoundsGEP1_64(type, array, i));
  ir_.loop(ir_.i64(0), ir_.i64(t.rows()), ir_.i64(1), [&](llvm::Value* row) {
    llvm::Value* const first = b.CreateMul(row, ir_.i64(t.vectors));
    LlvmValues of_row;
    for (size_t v = 0; v < width; ++v)
      of_row.push_back(
          b.CreateLoad(type, b.CreateInBoundsGEP(type, array, b.CreateAdd(first, ir_.i64(static_cast<int64_t>(v))))));
    emit_row(math_.index(row, {0, t.rows() - 1}, 1), of_row);
  });
  ir_.free_array(array);
}

}  // namespace quartet::codegen
