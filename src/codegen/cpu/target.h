// What the emitters need to know of the processor they emit for.
#pragma once

#include <string>

#include "base/dtype.h"
#include "base/status.h"
#include "device/device.h"

namespace quartet::codegen {

struct Target {
  Isa isa = Isa::sse2;
  int vector_bytes = 16;
  std::string features;  // LLVM's list, the class's own first: "+avx2,+fma,..."

  bool has_fma() const { return isa != Isa::sse2; }
  // f16 conversions, rounding and f32 masks as instructions.
  bool has_avx2() const { return isa != Isa::sse2; }
  // Whether loads and stores of elements of this size can be masked by one instruction.
  bool masks_access(size_t bytes) const { return isa == Isa::avx512 || (isa == Isa::avx2 && bytes >= 4); }
  // Lanes of one register of elements of this size.
  int lanes(size_t bytes) const { return vector_bytes / static_cast<int>(bytes); }
};

// Refuses models whose class, width and features do not fit together, and features that would change what the class
// means.
Result<Target> make_target(const CpuModel& model);

}  // namespace quartet::codegen
