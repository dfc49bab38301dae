// Named models, for ahead-of-time compiles and tests.
#include "device/class_model.h"

namespace quartet {

CpuModel class_model(Isa isa, const FamilyRates& rates) {
  CpuModel model;
  model.name = std::string(rates.name);
  model.isa = isa;
  model.vector_bytes = isa == Isa::sse2 ? 16 : isa == Isa::avx2 ? 32 : 64;
  model.vector_registers = isa == Isa::avx512 ? 32 : 16;
  model.fma = isa != Isa::sse2;
  model.clock_hz = rates.clock_hz;
  model.fma_per_cycle = mul_adds_per_cycle(rates, isa);
  // A narrower class loads narrower vectors: two a cycle at best.
  const double l1_bytes = std::min(rates.l1_bytes, 2.0 * model.vector_bytes);
  model.levels = {
      {"L1", 32 << 10, 64, l1_bytes * rates.clock_hz, false},
      {"L2", 512 << 10, 64, std::min(rates.l2_bytes, l1_bytes) * rates.clock_hz, false},
      {"L3", 16 << 20, 64, std::min(rates.l3_bytes, l1_bytes) * rates.clock_hz, true},
      {"DRAM", 0, 64, rates.dram_bytes_per_second, true},
  };
  return model;
}

std::vector<std::string> class_features(Isa isa) {
  switch (isa) {
    case Isa::sse2:
      return {"+sse2"};
    case Isa::avx2:
      return {"+avx", "+avx2", "+bmi", "+bmi2", "+f16c", "+fma", "+lzcnt", "+popcnt", "+sse2", "+sse4.1", "+sse4.2"};
    case Isa::avx512:
      break;
  }
  std::vector<std::string> all = class_features(Isa::avx2);
  all.insert(all.end(), {"+avx512bw", "+avx512cd", "+avx512dq", "+avx512f", "+avx512vl"});
  std::sort(all.begin(), all.end());
  return all;
}

Result<CpuModel> named_cpu(std::string_view name) {
  for (const Isa isa : {Isa::sse2, Isa::avx2, Isa::avx512}) {
    if (name != isa_name(isa)) continue;
    CpuModel model = class_model(isa, family_rates({}));
    model.features = class_features(isa);
    return model;
  }
  return make_error(Code::not_found, "no processor model is named '%.*s'; there are sse2, avx2 and avx512",
                    static_cast<int>(name.size()), name.data());
}

}  // namespace quartet
