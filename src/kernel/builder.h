// Builds kernel IR. Pure operations are shared (one value per operation and operands) and placed in the outermost
// region their operands reach, so that what does not change in a loop stands before it; index arithmetic folds
// constants. Loads of read-only memory are shared too, and leave loops that run at least once.
//
// The callbacks that fill regions receive values of the region and may use any value of the regions around it.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/scalar_ops.h"
#include "kernel/ir.h"
#include "kernel/ops.h"

namespace quartet::kernel {

using Ids = std::vector<ValueId>;

// Whether a region may run not at all although the one around it runs: loads never leave such a region.
enum class Runs : uint8_t { always, maybe };

struct ContractTile {
  DType accumulator = DType::f32;
  BufferId a = kNone, b = kNone;
  int32_t rows = 1, columns = 1, unroll = 1;
  ValueId k_count = kNone;
  ValueId a_base = kNone, a_row_stride = kNone, a_k_stride = kNone;
  ValueId b_base = kNone, b_k_stride = kNone;
  ValueId column_limit = kNone;
  // Loops around k, outermost first: the chain of an element goes through them in order.
  struct Around {
    ValueId count = kNone, a_stride = kNone, b_stride = kNone;
  };
  std::vector<Around> around = {};
  Runs runs = Runs::maybe;  // always: the tile has a valid element whenever the region around it runs
};

struct ReduceSpec {
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::f32;
  int32_t interleave = 1;
  int64_t chunk = 0;
};

class Builder {
 public:
  // `name` is for people.
  explicit Builder(std::string name);

  // `finish` puts arguments before task scratch and keeps the order of both.
  BufferId buffer(Buffer buffer);
  const Buffer& buffer(BufferId id) const { return kernel_.buffers[static_cast<size_t>(id)]; }
  // How many dims the kernel has, and their bounds.
  void set_dims(int32_t dims, std::vector<IntExpr> bounds = {});
  ValueId task() const { return task_; }
  DType type(ValueId v) const { return kernel_.value_types[static_cast<size_t>(v)]; }

  ValueId constant(DType dtype, int64_t bits);
  ValueId i64(int64_t value) { return constant(DType::i64, value); }
  ValueId real(DType dtype, double value) { return constant(dtype, float_bits(dtype, value)); }
  ValueId dim(int32_t number);
  // The bits of a value that is a constant.
  std::optional<int64_t> constant_of(ValueId v) const;

  // dtype: of the result.
  ValueId scalar(ScalarOp op, DType dtype, std::span<const ValueId> operands);
  ValueId unary(ScalarOp op, ValueId a) { return scalar(op, type(a), {{a}}); }
  ValueId binary(ScalarOp op, ValueId a, ValueId b) {
    return scalar(op, quartet::is_comparison(op) ? DType::boolean : type(a), {{a, b}});
  }
  ValueId add(ValueId a, ValueId b) { return binary(ScalarOp::add, a, b); }
  ValueId sub(ValueId a, ValueId b) { return binary(ScalarOp::sub, a, b); }
  ValueId mul(ValueId a, ValueId b) { return binary(ScalarOp::mul, a, b); }
  ValueId min(ValueId a, ValueId b) { return binary(ScalarOp::min, a, b); }
  ValueId max(ValueId a, ValueId b) { return binary(ScalarOp::max, a, b); }
  ValueId less(ValueId a, ValueId b) { return binary(ScalarOp::lt, a, b); }
  ValueId fma(ValueId a, ValueId b, ValueId c) { return scalar(ScalarOp::fma, type(a), {{a, b, c}}); }
  ValueId select(ValueId c, ValueId a, ValueId b) { return scalar(ScalarOp::select, type(a), {{c, a, b}}); }
  ValueId cast(DType to, ValueId a) { return type(a) == to ? a : scalar(ScalarOp::cast, to, {{a}}); }
  ValueId bitcast(DType to, ValueId a) { return type(a) == to ? a : scalar(ScalarOp::bitcast, to, {{a}}); }

  // An i64 value of an expression; `value_of` gives the value of each symbol. An invalid expression gives kNone.
  ValueId index(const IntExpr& e, const std::function<ValueId(Symbol)>& value_of);

  ValueId load(BufferId buffer, ValueId index) { return load(buffer, index, kNone, kNone); }
  ValueId load(BufferId buffer, ValueId index, ValueId guard, ValueId fill);
  void store(BufferId buffer, ValueId index, ValueId value, ValueId guard = kNone);

  using LoopBody = std::function<Ids(ValueId i, std::span<const ValueId> carried)>;
  Ids loop(LoopKind kind, ValueId lo, ValueId hi, int64_t step, const Ids& inits, Runs runs, const LoopBody& body);
  // A loop that carries nothing.
  void loop(LoopKind kind, ValueId lo, ValueId hi, int64_t step, Runs runs, const std::function<void(ValueId)>& body);
  Ids branch(ValueId condition, const std::function<Ids()>& then, const std::function<Ids()>& otherwise);
  // The final state: one value, for argmax and argmin the value and the index.
  Ids reduce(const ReduceSpec& spec, ValueId lo, ValueId hi, const std::function<ValueId(ValueId r)>& element);
  // `init` may be empty.
  void contract(const ContractTile& tile, const std::function<void(ValueId row, ValueId column, ValueId acc)>& epilogue,
                const std::function<ValueId(ValueId row, ValueId column)>& init = {});

  // Ends the body, drops what is not used, numbers the values in order and verifies.
  Result<Kernel> finish(IntExpr tasks);

 private:
  using Key = std::tuple<int32_t, int32_t, int32_t, int64_t, Ids>;  // op, dtype, buffer, immediate, operands
  struct Frame {
    Region region;
    std::map<Key, ValueId> known;
    Runs runs = Runs::always;
  };

  ValueId new_value(DType dtype, size_t depth);
  size_t depth_of(ValueId v) const { return depths_[static_cast<size_t>(v)]; }
  size_t depth_of(std::span<const ValueId> values) const;
  ValueId emit(Statement statement, DType dtype, size_t depth);
  std::optional<ValueId> fold(ScalarOp op, DType dtype, std::span<const ValueId> operands);
  std::optional<ValueId> fold_index(ScalarOp op, ValueId a, ValueId b);
  ValueId atom(const IntExpr::Atom& atom, const std::function<ValueId(Symbol)>& value_of);
  ValueId term(const IntExpr::Term& term, const std::function<ValueId(Symbol)>& value_of);
  // Opens a region, fills it and closes it with what `body` yields.
  Region region(const std::vector<DType>& arguments, Runs runs,
                const std::function<Ids(std::span<const ValueId>)>& body);
  void append(Statement statement) { frames_.back().region.body.push_back(std::move(statement)); }

  Kernel kernel_;
  std::vector<Frame> frames_;
  std::vector<size_t> depths_;                     // by value: the frame it stands in
  std::vector<std::optional<int64_t>> constants_;  // by value
  ValueId task_ = kNone;
};

}  // namespace quartet::kernel
