// What the build says of itself.
#pragma once

namespace quartet::capi {

inline constexpr const char* kVersion = QUARTET_VERSION;
inline constexpr bool kHasCpuCompiler = QUARTET_HAS_LLVM != 0;

}  // namespace quartet::capi
