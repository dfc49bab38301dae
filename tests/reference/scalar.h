// The scalar operations, evaluated one value at a time, exactly as base/scalar_ops.def defines them. Values are
// canonical bits: signed integers sign-extended, everything else zero-extended, bool 0 or 1.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/dtype.h"
#include "base/scalar_ops.h"

namespace quartet::reference {

// `result` and `operand`: types of the result and of the (last) operand, which differ for comparisons, casts and
// bitcasts. `fused`: the class has FMA. Nothing for the transcendental operations, which kernel/expand.h turns into the
// others.
std::optional<int64_t> evaluate(ScalarOp op, DType result, DType operand, std::span<const int64_t> operands,
                                bool fused);

// -1, 0, 1 as `a` is worse than, as good as or better than `b` for argmax (argmin with `smallest`): NaN is best of all.
int compare_best(DType dtype, int64_t a, int64_t b, bool smallest);

}  // namespace quartet::reference
