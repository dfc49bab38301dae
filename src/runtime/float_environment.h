// The floating-point control register while kernels run.
#pragma once

#include <cstdint>

namespace quartet::runtime {

// Until destroyed: round to nearest, all exceptions masked, denormals kept or (flush) taken and given as zero. Then the
// register is what it was, sticky flags included.
class FloatEnvironment {
 public:
  explicit FloatEnvironment(bool flush_denormals) {
#if defined(__x86_64__)
    saved_ = __builtin_ia32_stmxcsr();
    const uint32_t wanted = flush_denormals ? 0x9fc0u : 0x1f80u;
    if ((saved_ & ~kStickyFlags) != wanted) __builtin_ia32_ldmxcsr(wanted);
#else
    (void)flush_denormals;
#endif
  }
  ~FloatEnvironment() {
#if defined(__x86_64__)
    if (__builtin_ia32_stmxcsr() != saved_) __builtin_ia32_ldmxcsr(saved_);
#endif
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  static constexpr uint32_t kStickyFlags = 0x3f;
  uint32_t saved_ = 0;
};

}  // namespace quartet::runtime
