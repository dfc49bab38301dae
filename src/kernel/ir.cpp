#include "kernel/ir.h"

#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/half.h"
#include "kernel/ops.h"

namespace quartet::kernel {
namespace {
struct Row {
  const char* name;
  int operands, results;
};
constexpr Row kRows[] = {
#define QUARTET_KERNEL_OP(name, operands, results, doc) {#name, operands, results},
#include "kernel/ops.def"
#undef QUARTET_KERNEL_OP
};
static_assert(static_cast<int>(Op::bitcast) - static_cast<int>(Op::add) + 1 == kScalarOpCount);
static_assert(static_cast<int>(Op::yield) + 1 == kOpCount);

constexpr const char* kReduceNames[] = {"sum", "product", "max", "min", "all", "any", "argmax", "argmin"};
constexpr const char* kLoopNames[] = {"serial", "unrolled", "vector"};
constexpr const char* kScopeNames[] = {"in", "out", "inout", "task"};

template <class E, size_t N>
std::optional<E> find_name(const char* const (&names)[N], std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (name == names[i]) return static_cast<E>(i);
  return std::nullopt;
}

template <class E, size_t N>
const char* name_of(const char* const (&names)[N], E value) {
  return static_cast<size_t>(value) < N ? names[static_cast<size_t>(value)] : "invalid";
}
}  // namespace

const char* op_name(Op op) { return static_cast<int>(op) < kOpCount ? kRows[static_cast<int>(op)].name : "invalid"; }
int op_operands(Op op) { return static_cast<int>(op) < kOpCount ? kRows[static_cast<int>(op)].operands : 0; }
int op_results(Op op) { return static_cast<int>(op) < kOpCount ? kRows[static_cast<int>(op)].results : 0; }
std::optional<Op> op_from_name(std::string_view name) {
  for (int i = 0; i < kOpCount; ++i)
    if (name == kRows[i].name) return static_cast<Op>(i);
  return std::nullopt;
}

const char* reduce_op_name(ReduceOp op) { return name_of(kReduceNames, op); }
std::optional<ReduceOp> reduce_op_from_name(std::string_view name) { return find_name<ReduceOp>(kReduceNames, name); }
const char* loop_kind_name(LoopKind kind) { return name_of(kLoopNames, kind); }
std::optional<LoopKind> loop_kind_from_name(std::string_view name) { return find_name<LoopKind>(kLoopNames, name); }
const char* scope_name(Scope scope) { return name_of(kScopeNames, scope); }
std::optional<Scope> scope_from_name(std::string_view name) { return find_name<Scope>(kScopeNames, name); }

bool defined_for(ScalarOp op, DType type) {
  const bool number = is_float(type) || is_int(type);
  switch (op) {
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::div:
    case ScalarOp::rem:
    case ScalarOp::min:
    case ScalarOp::max:
    case ScalarOp::neg:
    case ScalarOp::abs:
    case ScalarOp::lt:
    case ScalarOp::le:
      return number;
    case ScalarOp::floor_div:
    case ScalarOp::floor_mod:
    case ScalarOp::shift_left:
    case ScalarOp::shift_right:
      return is_int(type);
    case ScalarOp::fma:
      return type == DType::f32 || type == DType::f64;
    case ScalarOp::sqrt:
    case ScalarOp::floor:
    case ScalarOp::ceil:
    case ScalarOp::trunc:
    case ScalarOp::round_even:
    case ScalarOp::exp:
    case ScalarOp::log:
    case ScalarOp::tanh:
    case ScalarOp::erf:
    case ScalarOp::sigmoid:
    case ScalarOp::sin:
    case ScalarOp::cos:
    case ScalarOp::pow:
      return is_float(type);
    case ScalarOp::bit_and:
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor:
    case ScalarOp::bit_not:
      return is_int(type) || type == DType::boolean;
    case ScalarOp::eq:
    case ScalarOp::ne:
    case ScalarOp::select:
    case ScalarOp::cast:
      return is_valid(type);
    case ScalarOp::bitcast:
      return number;
  }
  return false;
}

int32_t Kernel::argument_count() const {
  int32_t count = 0;
  for (const Buffer& buffer : buffers) count += buffer.scope != Scope::task;
  return count;
}

namespace {
// Rounds a double to f16 or bf16 once: through f32 with the last bit made sticky (round to odd).
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (!std::isfinite(nearest) || static_cast<double>(nearest) == value) return nearest;
  const float toward_zero =
      std::fabs(static_cast<double>(nearest)) > std::fabs(value) ? std::nextafterf(nearest, 0.0f) : nearest;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(toward_zero) | 1u);
}
}  // namespace

int64_t float_bits(DType dtype, double value) {
  switch (dtype) {
    case DType::f64:
      return std::bit_cast<int64_t>(value);
    case DType::f32:
      return static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(value)));
    case DType::f16:
      return f32_to_f16(round_to_odd(value));
    case DType::bf16:
      return f32_to_bf16(round_to_odd(value));
    default:
      return 0;
  }
}

double float_value(DType dtype, int64_t bits) {
  switch (dtype) {
    case DType::f64:
      return std::bit_cast<double>(bits);
    case DType::f32:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case DType::f16:
      return static_cast<double>(f16_to_f32(static_cast<uint16_t>(bits)));
    case DType::bf16:
      return static_cast<double>(bf16_to_f32(static_cast<uint16_t>(bits)));
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace quartet::kernel
