// The loop over k of a contraction's tile. Its body is one broadcast of A and `vectors` multiply-adds for each row;
// what is not that must not cost registers: addresses are few pointers and constant distances.
#include <algorithm>

#include "codegen/cpu/arithmetic.h"
#include "codegen/cpu/contraction.h"

namespace quartet::codegen {
namespace {

constexpr int64_t kMaxSteps = 512;  // multiply-adds written out in the loop's body

std::optional<int64_t> constant_of(const llvm::Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant ? std::optional(constant->getSExtValue()) : std::nullopt;
}

}  // namespace

// Strides in bytes. Rows whose stride is not constant are addressed from a pointer for every five of them, as
// pointer + {0, 1, 2, 3, 4} * stride, which takes two registers (stride and three strides) besides the pointers.
struct Emitter::KPointers {
  std::vector<llvm::Value*> a;
  llvm::Value* b = nullptr;
  llvm::Value *row_stride = nullptr, *row_stride_3 = nullptr;
  llvm::Value *a_step = nullptr, *b_step = nullptr;
  static constexpr int kRowsPerPointer = 5;
};

Emitter::KPointers Emitter::k_pointers(const Tile& t) {
  auto& b = ir_.b;
  const auto& operands = t.s.operands;
  const auto bytes = [&](const Value& elements, kernel::BufferId buffer) {
    return b.CreateMul(elements.base, ir_.i64(static_cast<int64_t>(size_of(memory_.dtype(buffer)))));
  };
  KPointers p;
  p.row_stride = bytes(value(operands[2]), t.s.buffer);
  p.a_step = bytes(value(operands[3]), t.s.buffer);
  p.b_step = bytes(value(operands[5]), t.s.buffer_b);
  p.a.push_back(memory_.address(t.s.buffer, value(operands[1]).base));
  p.b = memory_.address(t.s.buffer_b, b.CreateAdd(value(operands[4]).base, t.column));
  if (!constant_of(p.row_stride) && t.rows() > 1) {
    p.row_stride_3 = b.CreateMul(p.row_stride, ir_.i64(3));
    llvm::Value* const group = b.CreateMul(p.row_stride, ir_.i64(KPointers::kRowsPerPointer));
    for (int row = KPointers::kRowsPerPointer; row < t.rows(); row += KPointers::kRowsPerPointer)
      p.a.push_back(b.CreateGEP(b.getInt8Ty(), p.a.back(), group));
  }
  return p;
}

// One k: `step` steps beyond the pointers.
void Emitter::k_step(const Tile& t, const KPointers& p, int64_t step, std::span<llvm::Value*> accumulators) {
  auto& b = ir_.b;
  llvm::Type* const byte = b.getInt8Ty();
  const DType type = t.s.dtype, a_type = memory_.dtype(t.s.buffer), b_type = memory_.dtype(t.s.buffer_b);
  const auto ahead = [&](llvm::Value* from, llvm::Value* stride, int64_t times) {
    return times == 0 ? from : b.CreateGEP(byte, from, b.CreateMul(stride, ir_.i64(times)));
  };
  llvm::Value* const b_row = ahead(p.b, p.b_step, step);
  LlvmValues columns;
  for (int v = 0; v < t.vectors; ++v) {
    llvm::Type* const vector = ir_.type(b_type, t.lanes);
    llvm::Value* const from = b.CreateConstGEP1_64(vector, b_row, static_cast<uint64_t>(v));
    const llvm::Align align(size_of(b_type));
    llvm::Value* const mask = t.active(v).active;
    llvm::Instruction* const load = mask ? static_cast<llvm::Instruction*>(b.CreateMaskedLoad(
                                               vector, from, align, mask, llvm::Constant::getNullValue(vector)))
                                         : b.CreateAlignedLoad(vector, from, align);
    memory_.mark(t.s.buffer_b, load);
    columns.push_back(emit_cast(ir_, b_type, type, load));
  }
  for (int row = 0; row < t.rows(); ++row) {
    llvm::Value* from = nullptr;
    if (!p.row_stride_3) {
      from = ahead(ahead(p.a[0], p.a_step, step), p.row_stride, row);
    } else {
      from = ahead(p.a[static_cast<size_t>(row / KPointers::kRowsPerPointer)], p.a_step, step);
      const int within = row % KPointers::kRowsPerPointer;
      from = within == 3 ? b.CreateGEP(byte, from, p.row_stride_3) : ahead(from, p.row_stride, within);
    }
    llvm::LoadInst* const load = b.CreateAlignedLoad(ir_.type(a_type), from, llvm::Align(size_of(a_type)));
    memory_.mark(t.s.buffer, load);
    llvm::Value* const a = ir_.splat(emit_cast(ir_, a_type, type, load), t.lanes);
    for (int v = 0; v < t.vectors; ++v) {
      llvm::Value*& acc = accumulators[t.at(row, v)];
      llvm::Value* const operands[] = {a, columns[static_cast<size_t>(v)], acc};
      acc = is_float(type) ? emit_scalar(ir_, ScalarOp::fma, type, type, operands)
                           : b.CreateAdd(b.CreateMul(operands[0], operands[1]), acc);
    }
  }
}

void Emitter::k_loop(const Tile& t, LlvmValues& accumulators) { around_k(t, k_pointers(t), 0, accumulators); }

// The loops around k from the one of number `depth` on.
void Emitter::around_k(const Tile& t, const KPointers& from, size_t depth, LlvmValues& accumulators) {
  auto& b = ir_.b;
  const size_t at = kernel::kContractOperands + 3 * depth;
  if (at >= t.s.operands.size()) return inner_k(t, from, accumulators);
  const auto bytes = [&](const Value& elements, kernel::BufferId buffer) {
    return b.CreateMul(elements.base, ir_.i64(static_cast<int64_t>(size_of(memory_.dtype(buffer)))));
  };
  llvm::Value* const count = value(t.s.operands[at]).base;
  llvm::Value* const a_stride = bytes(value(t.s.operands[at + 1]), t.s.buffer);
  llvm::Value* const b_stride = bytes(value(t.s.operands[at + 2]), t.s.buffer_b);
  ir_.loop(ir_.i64(0), count, ir_.i64(1), accumulators, [&](llvm::Value* i) {
    KPointers here = from;
    for (llvm::Value*& row : here.a) row = b.CreateGEP(b.getInt8Ty(), row, b.CreateMul(i, a_stride));
    here.b = b.CreateGEP(b.getInt8Ty(), here.b, b.CreateMul(i, b_stride));
    around_k(t, here, depth + 1, accumulators);
  });
}

void Emitter::inner_k(const Tile& t, KPointers p, LlvmValues& accumulators) {
  auto& b = ir_.b;
  const size_t elements = accumulators.size();
  const int64_t unroll = std::clamp<int64_t>(kMaxSteps / static_cast<int64_t>(elements), 1, t.s.unroll);
  llvm::Value* const count = value(t.s.operands[0]).base;
  llvm::Value* const zero = ir_.i64(0);
  LlvmValues carried = accumulators;
  carried.insert(carried.end(), p.a.begin(), p.a.end());
  carried.push_back(p.b);
  const auto steps = [&](int64_t times) {
    return [&, times](llvm::Value*) {
      for (size_t i = 0; i < p.a.size(); ++i) p.a[i] = carried[elements + i];
      p.b = carried.back();
      for (int64_t step = 0; step < times; ++step) k_step(t, p, step, std::span(carried).first(elements));
      llvm::Type* const byte = b.getInt8Ty();
      for (size_t i = 0; i < p.a.size(); ++i)
        carried[elements + i] = b.CreateGEP(byte, p.a[i], b.CreateMul(p.a_step, ir_.i64(times)));
      carried.back() = b.CreateGEP(byte, p.b, b.CreateMul(p.b_step, ir_.i64(times)));
    };
  };
  const auto known = constant_of(count);
  llvm::Value* done = zero;
  if (unroll > 1 && (!known || *known >= unroll)) {
    llvm::Value* const positive = known ? count : ir_.intrinsic(llvm::Intrinsic::smax, count, zero);
    done = b.CreateSub(positive, b.CreateURem(positive, ir_.i64(unroll)));
    ir_.loop(zero, done, ir_.i64(unroll), carried, steps(unroll));
  }
  if (!known || unroll == 1 || *known % unroll != 0) ir_.loop(done, count, ir_.i64(1), carried, steps(1));
  std::copy(carried.begin(), carried.begin() + static_cast<std::ptrdiff_t>(elements), accumulators.begin());
}

}  // namespace quartet::codegen
