// How large an integer expression may be. What is larger is invalid, as an overflow is: texts and files may say
// anything, and everything recurses over depth and loops over terms.
#pragma once

#include <cstddef>

namespace quartet {

inline constexpr size_t kMaxExprTerms = 1024;
inline constexpr size_t kMaxExprProducts = 16 * kMaxExprTerms;  // of terms, in one multiplication
inline constexpr size_t kMaxExprFactors = 64;                   // of one term
inline constexpr int kMaxExprDepth = 32;                        // functions one inside the other

}  // namespace quartet
