// Random kernels against the interpreter: index arithmetic of every form, guards, gathers, nested loops, branches and
// reductions, with bounds that are constants or dims. A failure names its seed.
#include <gtest/gtest.h>

#include <random>

#include "compiled.h"
#include "kernel/builder.h"

namespace quartet::testing {
namespace {

using kernel::BufferId;
using kernel::Builder;
using kernel::Ids;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::ReduceOp;
using kernel::Runs;
using kernel::Scope;
using kernel::ValueId;

constexpr int64_t kTable = 97;    // elements of each table that is read
constexpr int64_t kColumns = 70;  // at most, of the vector loop
constexpr int64_t kRows = 5;      // at most, of the serial loop around it

class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed), b_("seed " + std::to_string(seed)) {}

  Result<Kernel> write() {
    b_.set_dims(3, pick(2) ? std::vector<IntExpr>{kRows, kColumns, 9} : std::vector<IntExpr>{});
    const auto table = [&](DType type) {
      return b_.buffer({"", type, Scope::argument_in, kTable, static_cast<int32_t>(size_of(type))});
    };
    floats_ = table(DType::f32);
    shorts_ = table(DType::i32);
    longs_ = table(DType::i64);
    const BufferId reals = b_.buffer({"", DType::f32, Scope::argument_out, kRows * kColumns, 4});
    const BufferId wholes = b_.buffer({"", DType::i64, Scope::argument_out, kRows * kColumns, 8});
    const ValueId rows = pick(2) ? b_.dim(0) : b_.i64(kRows);
    const ValueId lo = pick(2) ? b_.i64(0) : b_.i64(static_cast<int64_t>(pick(20)));
    const ValueId hi = pick(2) ? b_.dim(1) : b_.i64(static_cast<int64_t>(pick(kColumns)) + 1);
    b_.loop(LoopKind::serial, b_.i64(0), rows, 1, Runs::maybe, [&](ValueId row) {
      indices_ = {row, b_.dim(1), b_.dim(2), b_.i64(3), b_.i64(-7)};
      grow_indices(3);
      const std::vector<ValueId> outside = indices_;
      b_.loop(LoopKind::vector, lo, hi, 1, Runs::maybe, [&](ValueId column) {
        indices_ = outside;
        indices_.push_back(column);
        indices_.push_back(column);
        reals_ = {b_.real(DType::f32, 0.5), b_.cast(DType::f32, column)};
        conditions_ = {b_.less(row, b_.i64(2))};
        body(3);
        const ValueId at = b_.add(b_.mul(row, b_.i64(kColumns)), column);
        b_.store(reals, at, any(reals_), pick(3) ? kernel::kNone : any(conditions_));
        b_.store(wholes, at, any(indices_));
      });
      indices_ = outside;
    });
    return b_.finish(1);
  }

 private:
  uint64_t pick(uint64_t below) { return random_() % below; }
  ValueId any(const std::vector<ValueId>& from) { return from[pick(from.size())]; }
  ValueId positive() {
    return pick(3) == 0 ? b_.max(b_.dim(2), b_.i64(1)) : b_.i64(1 + static_cast<int64_t>(pick(40)));
  }
  // An index into a table, in one of the ways that keep it inside.
  ValueId inside(ValueId x) {
    if (pick(2)) return b_.binary(ScalarOp::floor_mod, x, b_.i64(kTable));
    return b_.max(b_.min(x, b_.i64(kTable - 1)), b_.i64(0));
  }

  void grow_indices(int steps) {
    for (int i = 0; i < steps; ++i) indices_.push_back(index_step());
  }

  ValueId index_step() {
    const ValueId x = any(indices_), y = any(indices_);
    switch (pick(13)) {
      case 0:
      case 1:
        return b_.add(x, y);
      case 2:
        return b_.sub(x, y);
      case 3:
        return b_.mul(x, b_.i64(static_cast<int64_t>(pick(9)) - 3));
      case 4:
        return b_.mul(x, y);
      case 5:
        return b_.binary(ScalarOp::floor_div, x, positive());
      case 6:
        return b_.binary(ScalarOp::floor_mod, x, positive());
      case 7:
        return b_.binary(pick(2) ? ScalarOp::div : ScalarOp::rem, x, y);
      case 8:
        return pick(2) ? b_.min(x, y) : b_.max(x, y);
      case 9:
        return conditions_.empty() ? x : b_.select(any(conditions_), x, y);
      case 10:
        return b_.cast(DType::i64, b_.load(shorts_, inside(x)));
      case 11:
        return b_.load(longs_, inside(x));
      default:
        return b_.binary(ScalarOp::bit_and, x, b_.i64(static_cast<int64_t>(pick(64))));
    }
  }

  void body(int depth) {
    for (uint64_t i = 0; i < 3 + pick(6); ++i) step(depth);
  }

  void step(int depth) {
    const ValueId x = any(reals_), y = any(reals_);
    switch (pick(depth > 0 ? 12 : 8)) {
      case 0:
      case 1:
        grow_indices(2);
        break;
      case 2:
        conditions_.push_back(b_.binary(pick(2) ? ScalarOp::lt : ScalarOp::le, any(indices_), any(indices_)));
        break;
      case 3:
        conditions_.push_back(b_.binary(pick(2) ? ScalarOp::eq : ScalarOp::lt, x, y));
        break;
      case 4:
        reals_.push_back(b_.load(floats_, inside(any(indices_))));
        break;
      case 5: {  // the guard is what keeps it inside
        const ValueId at = any(indices_);
        const ValueId guard =
            b_.binary(ScalarOp::bit_and, b_.binary(ScalarOp::le, b_.i64(0), at), b_.less(at, b_.i64(kTable)));
        reals_.push_back(b_.load(floats_, at, guard, x));
        break;
      }
      case 6:
        reals_.push_back(b_.binary(pick(2) ? ScalarOp::add : ScalarOp::max, x, y));
        break;
      case 7:
        reals_.push_back(b_.cast(DType::f32, any(indices_)));
        break;
      case 8:
        reduction(depth);
        break;
      case 9:
        carried_loop(depth);
        break;
      case 10:
        sides(depth);
        break;
      default:
        reals_.push_back(b_.select(any(conditions_), x, y));
        break;
    }
  }

  template <class Fill>
  auto scoped(Fill&& fill) {
    const auto indices = indices_, reals = reals_, conditions = conditions_;
    auto result = fill();
    indices_ = indices;
    reals_ = reals;
    conditions_ = conditions;
    return result;
  }

  ValueId extent() { return pick(2) ? b_.dim(2) : b_.i64(static_cast<int64_t>(pick(20))); }

  void reduction(int depth) {
    static constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::argmax,
                                        ReduceOp::argmin};
    const kernel::ReduceSpec spec{kOps[pick(5)], DType::f32, 1 << pick(5), pick(2) ? 0 : 32};
    const Ids state = b_.reduce(spec, b_.i64(0), extent(), [&](ValueId r) {
      return scoped([&] {
        indices_.push_back(r);
        body(depth - 1);
        return any(reals_);
      });
    });
    reals_.push_back(state[0]);
    if (state.size() > 1) indices_.push_back(state[1]);
  }

  void carried_loop(int depth) {
    const Ids out =
        b_.loop(LoopKind::serial, b_.i64(0), extent(), 1 + static_cast<int64_t>(pick(3)), {any(reals_), any(indices_)},
                Runs::maybe, [&](ValueId i, std::span<const ValueId> carried) -> Ids {
                  return scoped([&]() -> Ids {
                    indices_.push_back(i);
                    indices_.push_back(carried[1]);
                    reals_.push_back(carried[0]);
                    body(depth - 1);
                    return {any(reals_), b_.binary(ScalarOp::floor_mod, any(indices_), b_.i64(1000))};
                  });
                });
    reals_.push_back(out[0]);
    indices_.push_back(out[1]);
  }

  void sides(int depth) {
    const auto side = [&] {
      return scoped([&]() -> Ids {
        body(depth - 1);
        return {any(reals_), any(indices_)};
      });
    };
    const Ids out = b_.branch(b_.less(b_.dim(2), b_.i64(5)), side, side);
    reals_.push_back(out[0]);
    indices_.push_back(out[1]);
  }

  std::mt19937_64 random_;
  Builder b_;
  BufferId floats_ = kernel::kNone, shorts_ = kernel::kNone, longs_ = kernel::kNone;
  std::vector<ValueId> indices_, reals_, conditions_;
};

class RandomCode : public ::testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Classes, RandomCode, ::testing::ValuesIn(kClasses),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

void run_seeds(uint64_t first, uint64_t count, Isa isa) {
  std::vector<Kernel> kernels;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    auto kernel = Writer(seed).write();
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    kernels.push_back(kernel.take());
  }
  const auto image = compile(kernels, isa);
  ASSERT_TRUE(image.ok()) << image.status().message();
  if (!runs_here(isa)) return;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::vector<Argument> arguments{ordinary(DType::f32, kTable, i), mixed(DType::i32, kTable, i),
                                          mixed(DType::i64, kTable, i), Argument(kRows * kColumns * 4),
                                          Argument(kRows * kColumns * 8)};
    for (const auto& dims : {std::vector<int64_t>{1, 1, 1}, {2, 17, 4}, {5, 70, 9}, {3, 33, 0}}) {
      const std::string found = difference(kernels[i], (*image)->function(i), isa, arguments, dims);
      EXPECT_TRUE(found.empty()) << found << ", dims " << dims[0] << " " << dims[1] << " " << dims[2];
    }
  }
}

TEST_P(RandomCode, GivesTheInterpretersBits) { run_seeds(0, 60, GetParam()); }

TEST_P(RandomCode, DISABLED_OverManySeeds) {
  for (uint64_t first = 1000; first < 2200 && !HasFailure(); first += 60) run_seeds(first, 60, GetParam());
}

}  // namespace
}  // namespace quartet::testing
