#include "device/families.h"

#include <array>

namespace quartet {
namespace {

struct Row {
  CpuIdentity::Vendor vendor;
  int family, model_from, model_to;
  FamilyRates rates;
};

constexpr auto kIntel = CpuIdentity::Vendor::intel;
constexpr auto kAmd = CpuIdentity::Vendor::amd;

constexpr FamilyRates kGeneric;
constexpr FamilyRates kHaswell{"haswell", 2.8e9, 1, 2, 1, 56, 24, 8, 11e9};
constexpr FamilyRates kSkylake{"skylake", 3.4e9, 1, 2, 1, 56, 28, 10, 14e9};
constexpr FamilyRates kSkylakeServer{"skylake-server", 2.6e9, 1, 2, 2, 110, 44, 8, 12e9};
constexpr FamilyRates kIceLake{"icelake", 3.2e9, 1, 2, 1, 110, 44, 12, 16e9};
constexpr FamilyRates kIceLakeServer{"icelake-server", 2.8e9, 1, 2, 2, 110, 44, 8, 12e9};
constexpr FamilyRates kSapphireRapids{"sapphirerapids", 3.0e9, 1, 2, 2, 120, 48, 8.5, 13e9};
constexpr FamilyRates kAlderLake{"alderlake", 4.0e9, 1, 2, 1, 90, 44, 14, 25e9};
constexpr FamilyRates kZen{"zen", 3.0e9, 1, 1, 0.5, 28, 24, 14, 14e9};
constexpr FamilyRates kZen2{"zen2", 3.2e9, 2, 2, 1, 60, 28, 18, 18e9};
constexpr FamilyRates kZen3{"zen3", 3.4e9, 2, 2, 1, 60, 28, 22, 20e9};
constexpr FamilyRates kZen4{"zen4", 3.6e9, 2, 2, 1, 62, 28, 22, 22e9};
constexpr FamilyRates kZen5{"zen5", 3.8e9, 2, 2, 2, 120, 56, 26, 28e9};
constexpr FamilyRates kZen5Narrow{"zen5-mobile", 3.6e9, 2, 2, 1, 62, 28, 22, 24e9};

constexpr std::array kRows = {
    Row{kIntel, 6, 0x3c, 0x3d, kHaswell},        Row{kIntel, 6, 0x3f, 0x3f, kHaswell},
    Row{kIntel, 6, 0x45, 0x47, kHaswell},        Row{kIntel, 6, 0x4f, 0x4f, kHaswell},
    Row{kIntel, 6, 0x56, 0x56, kHaswell},        Row{kIntel, 6, 0x4e, 0x4e, kSkylake},
    Row{kIntel, 6, 0x5e, 0x5e, kSkylake},        Row{kIntel, 6, 0x8e, 0x8e, kSkylake},
    Row{kIntel, 6, 0x9e, 0x9e, kSkylake},        Row{kIntel, 6, 0xa5, 0xa6, kSkylake},
    Row{kIntel, 6, 0x55, 0x55, kSkylakeServer},  Row{kIntel, 6, 0x7d, 0x7e, kIceLake},
    Row{kIntel, 6, 0x8c, 0x8d, kIceLake},  // Tiger Lake
    Row{kIntel, 6, 0xa7, 0xa7, kIceLake},  // Rocket Lake
    Row{kIntel, 6, 0x6a, 0x6c, kIceLakeServer},  Row{kIntel, 6, 0x8f, 0x8f, kSapphireRapids},
    Row{kIntel, 6, 0xcf, 0xcf, kSapphireRapids},  // Emerald Rapids
    Row{kIntel, 6, 0xad, 0xae, kSapphireRapids},  // Granite Rapids
    Row{kIntel, 6, 0x97, 0x97, kAlderLake},      Row{kIntel, 6, 0x9a, 0x9a, kAlderLake},
    Row{kIntel, 6, 0xb7, 0xb7, kAlderLake},  // Raptor Lake
    Row{kIntel, 6, 0xba, 0xba, kAlderLake},      Row{kIntel, 6, 0xbf, 0xbf, kAlderLake},
    Row{kAmd, 0x17, 0x00, 0x2f, kZen},           Row{kAmd, 0x17, 0x30, 0xff, kZen2},
    Row{kAmd, 0x19, 0x00, 0x0f, kZen3},          Row{kAmd, 0x19, 0x10, 0x1f, kZen4},
    Row{kAmd, 0x19, 0x20, 0x5f, kZen3},          Row{kAmd, 0x19, 0x60, 0xff, kZen4},
    Row{kAmd, 0x1a, 0x20, 0x2f, kZen5Narrow},    Row{kAmd, 0x1a, 0x60, 0x6f, kZen5Narrow},
    Row{kAmd, 0x1a, 0x00, 0xff, kZen5},
};

}  // namespace

const FamilyRates& family_rates(const CpuIdentity& identity) {
  if (identity.vendor == kIntel && identity.has_amx) return kSapphireRapids;
  for (const Row& row : kRows) {
    if (row.vendor == identity.vendor && row.family == identity.family && row.model_from <= identity.model &&
        identity.model <= row.model_to) {
      return row.rates;
    }
  }
  return kGeneric;
}

double mul_adds_per_cycle(const FamilyRates& rates, Isa isa) {
  switch (isa) {
    case Isa::sse2:
      return rates.mul_add_128;
    case Isa::avx2:
      return rates.fma_256;
    case Isa::avx512:
      break;
  }
  return rates.fma_512;
}

}  // namespace quartet
