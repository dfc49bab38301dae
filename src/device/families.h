// Rates by processor family: what CPUID does not tell. Bytes per cycle are what one core sustains reading.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/device.h"

namespace quartet {

// Who made the processor and which one it is, as CPUID leaf 1 counts (family and model with their extensions).
struct CpuIdentity {
  enum class Vendor : uint8_t { other, intel, amd };
  Vendor vendor = Vendor::other;
  int family = 0;
  int model = 0;
  bool has_amx = false;  // some hypervisors name an older model than the features they pass on
};

struct FamilyRates {
  std::string_view name = "generic";
  double clock_hz = 2.5e9;  // sustained under vector load
  double mul_add_128 = 1;   // multiply-adds of 16-byte vectors per cycle, as multiply and add
  double fma_256 = 2;       // multiply-adds of 32-byte vectors per cycle
  double fma_512 = 1;       // of 64-byte vectors; a double-pumped unit counts half
  double l1_bytes = 64;     // per cycle and core
  double l2_bytes = 32;
  double l3_bytes = 8;
  double dram_bytes_per_second = 12e9;  // one core
};

// The row of the table that fits, or the generic one.
const FamilyRates& family_rates(const CpuIdentity& identity);

// Multiply-adds of full vectors of the class per cycle.
double mul_adds_per_cycle(const FamilyRates& rates, Isa isa);

}  // namespace quartet
