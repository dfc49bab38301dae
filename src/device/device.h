// Device models: the numbers that describe a target. The quartet decides by them alone, and the target text of a model
// is part of every cache key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/status.h"

namespace quartet {

// Instruction-set classes of x86-64. The class fixes arithmetic (FMA or not) and the order of reductions; what else a
// processor has (VNNI, AMX ...) comes as features and never changes a strict result.
enum class Isa : uint8_t { sse2 = 0, avx2 = 1, avx512 = 2 };
const char* isa_name(Isa isa);  // "sse2", "avx2", "avx512"

struct MemoryLevel {
  std::string name;      // "L1", "L2", "L3", "DRAM"
  int64_t capacity = 0;  // bytes available to one core (shared levels: in all); 0 for the last level
  int32_t line = 64;     // transaction, bytes
  double bandwidth = 0;  // bytes per second for one core
  bool shared = false;   // by all cores
};

struct CpuModel {
  std::string name;  // processor family or "generic"; for people
  Isa isa = Isa::sse2;
  std::vector<std::string> features;  // LLVM feature names the generated code may use, sorted ("+avx2", "+fma" ...)
  int32_t vector_bytes = 16;          // 16, 32, 64
  int32_t vector_registers = 16;
  bool fma = false;
  int32_t cores = 1;
  double clock_hz = 2e9;
  double fma_per_cycle = 2;         // vector multiply-adds per cycle and core (double-pumped AVX-512: 1)
  std::vector<MemoryLevel> levels;  // near to far: L1, L2, (L3), DRAM

  // Lanes of a full vector of elements of `bytes` bytes.
  int32_t lanes(size_t bytes) const { return vector_bytes / static_cast<int32_t>(bytes); }
  // Peak f32 operations per second of one core (a multiply-add counts two).
  double peak_flops_f32() const { return clock_hz * fma_per_cycle * 2 * lanes(4); }
  const MemoryLevel* level(std::string_view name) const;

  // What decides generated code's legality: "x86_64 avx512 +avx512f..."; in every key.
  std::string target_text() const;
  // All of it, for exact look-ups.
  Digest digest() const;
};

// The processor this process runs on: CPUID with OS support checked (XGETBV), cache sizes from CPUID or sysfs-free
// leaves, rates from the family table. `limit` caps the class (never raises it above the host's).
CpuModel host_cpu();
CpuModel host_cpu(Isa limit);
// A named model for ahead-of-time compiles and tests: "sse2", "avx2", "avx512" (generic numbers); with `cores`.
Result<CpuModel> named_cpu(std::string_view name);

void write(ByteWriter& out, const CpuModel& model);
CpuModel read_cpu_model(ByteReader& in);

}  // namespace quartet
