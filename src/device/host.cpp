// The probe of the running processor: CPUID for what it has, XGETBV for what the system saves, the family table for the
// rates. The only other question asked is how many cores this process may use.
#include <cpuid.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "device/class_model.h"

namespace quartet {
namespace {

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

// Zeros for a leaf the processor does not have.
Registers cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  Registers r;
  if (__get_cpuid_max(leaf & 0x80000000u, nullptr) < leaf) return r;
  __cpuid_count(leaf, subleaf, r.a, r.b, r.c, r.d);
  return r;
}

bool bit(uint32_t value, int number) { return (value >> number & 1u) != 0; }

// Which register states the system saves (XCR0); 0 without OSXSAVE.
uint64_t saved_states() {
  if (!bit(cpuid(1).c, 27)) return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

CpuIdentity identify() {
  CpuIdentity id;
  const Registers zero = cpuid(0);
  char vendor[12];
  std::memcpy(vendor, &zero.b, 4);
  std::memcpy(vendor + 4, &zero.d, 4);
  std::memcpy(vendor + 8, &zero.c, 4);
  if (std::memcmp(vendor, "GenuineIntel", 12) == 0) id.vendor = CpuIdentity::Vendor::intel;
  if (std::memcmp(vendor, "AuthenticAMD", 12) == 0) id.vendor = CpuIdentity::Vendor::amd;
  const uint32_t signature = cpuid(1).a;
  id.family = static_cast<int>(signature >> 8 & 15u);
  id.model = static_cast<int>(signature >> 4 & 15u);
  if (id.family == 15) id.family += static_cast<int>(signature >> 20 & 255u);
  if (id.family == 6 || id.family >= 15) id.model += static_cast<int>(signature >> 12 & 0xf0u);
  id.has_amx = bit(cpuid(7).d, 24);
  return id;
}

struct FeatureBits {
  Registers basic = cpuid(1), extended = cpuid(7), more = cpuid(7, 1), amd = cpuid(0x80000001u);
  bool ymm = false, zmm = false;

  FeatureBits() {
    const uint64_t saved = saved_states();
    ymm = (saved & 0x6u) == 0x6u;
    zmm = ymm && (saved & 0xe0u) == 0xe0u;
  }

  Isa isa() const {
    const uint32_t b = extended.b;
    const bool avx2 = ymm && bit(basic.c, 28) && bit(basic.c, 12) && bit(basic.c, 29) && bit(b, 5) && bit(b, 3) &&
                      bit(b, 8) && bit(amd.c, 5) && bit(basic.c, 23);
    const bool avx512 = avx2 && zmm && bit(b, 16) && bit(b, 17) && bit(b, 28) && bit(b, 30) && bit(b, 31);
    return avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::sse2;
  }
};

// Beyond the class: what generated code may use without changing a strict result. avx512bf16 stays out, since its
// conversion flushes denormals; so do matrix units, which no strict kernel uses.
std::vector<std::string> host_features(const FeatureBits& bits, Isa isa) {
  std::vector<std::string> found = class_features(isa);
  const auto add = [&](bool present, const char* name) {
    if (present && std::find(found.begin(), found.end(), name) == found.end()) found.emplace_back(name);
  };
  add(bit(bits.basic.c, 0), "+sse3");
  add(bit(bits.basic.c, 9), "+ssse3");
  add(bit(bits.basic.c, 19), "+sse4.1");
  add(bit(bits.basic.c, 20), "+sse4.2");
  add(bit(bits.basic.c, 22), "+movbe");
  add(bit(bits.basic.c, 23), "+popcnt");
  add(bit(bits.amd.c, 5), "+lzcnt");
  add(bit(bits.extended.b, 3), "+bmi");
  add(bit(bits.extended.b, 8), "+bmi2");
  if (isa >= Isa::avx2) add(bit(bits.more.a, 4), "+avxvnni");
  if (isa >= Isa::avx512) {
    add(bit(bits.extended.b, 21), "+avx512ifma");
    add(bit(bits.extended.c, 1), "+avx512vbmi");
    add(bit(bits.extended.c, 6), "+avx512vbmi2");
    add(bit(bits.extended.c, 11), "+avx512vnni");
    add(bit(bits.extended.c, 12), "+avx512bitalg");
    add(bit(bits.extended.c, 14), "+avx512vpopcntdq");
    add(bit(bits.extended.d, 23), "+avx512fp16");
  }
  std::sort(found.begin(), found.end());
  return found;
}

// What CPUID says, asked once per process: it cannot change, and under a hypervisor each question is a trap. It owns no
// memory: that would be the first context's, and outlive it.
struct Probe {
  static constexpr uint32_t kMostCaches = 16;

  FeatureBits bits;
  CpuIdentity id = identify();
  std::array<Registers, kMostCaches> caches;  // leaf 4 on Intel and 0x8000001D on AMD (the same layout)
  uint32_t cache_count = 0;

  Probe() {
    const uint32_t leaf = id.vendor == CpuIdentity::Vendor::amd ? 0x8000001du : 4u;
    while (cache_count < kMostCaches) {
      const Registers r = cpuid(leaf, cache_count);
      if ((r.a & 31u) == 0) break;
      caches[cache_count++] = r;
    }
  }
};
static_assert(std::is_trivially_destructible_v<Probe>);

// Data and unified caches.
void set_caches(CpuModel& model, const Probe& probe) {
  bool has_l3 = false, any = false;
  for (uint32_t i = 0; i < probe.cache_count; ++i) {
    const Registers& r = probe.caches[i];
    const uint32_t type = r.a & 31u, number = r.a >> 5 & 7u;
    if (type == 2 || number < 1 || number > 3) continue;  // instructions only
    const int64_t line = (r.b & 0xfffu) + 1, partitions = (r.b >> 12 & 0x3ffu) + 1, ways = (r.b >> 22) + 1;
    MemoryLevel& level = model.levels[number - 1];
    level.capacity = line * partitions * ways * (int64_t{r.c} + 1);
    level.line = static_cast<int32_t>(line);
    any = true;
    has_l3 = has_l3 || number == 3;
  }
  if (any && !has_l3) model.levels.erase(model.levels.begin() + 2);
}

int32_t usable_cores() {
  // The mask is as long as the kernel wants: grow until it fits.
  for (int cpus = 1024; cpus <= 1 << 18; cpus *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
    if (set == nullptr) return 1;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    CPU_ZERO_S(bytes, set);
    const int failed = sched_getaffinity(0, bytes, set);
    const int count = failed == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (failed == 0) return std::max(count, 1);
  }
  return 1;
}

}  // namespace

CpuModel host_cpu() { return host_cpu(Isa::avx512); }

CpuModel host_cpu(Isa limit) {
  static const Probe probe;
  const Isa isa = std::min(limit, probe.bits.isa());
  CpuModel model = class_model(isa, family_rates(probe.id));
  model.features = host_features(probe.bits, isa);
  set_caches(model, probe);
  model.cores = usable_cores();
  return model;
}

}  // namespace quartet
