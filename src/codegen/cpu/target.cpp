#include "codegen/cpu/target.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>

namespace quartet::codegen {
namespace {

// What every member of a class has; the emitters rely on it.
std::initializer_list<const char*> class_features(Isa isa) {
  static constexpr std::initializer_list<const char*> kSse2 = {"+sse2"};
  static constexpr std::initializer_list<const char*> kAvx2 = {"+avx2", "+f16c", "+fma"};
  static constexpr std::initializer_list<const char*> kAvx512 = {"+avx2",    "+avx512bw", "+avx512cd", "+avx512dq",
                                                                 "+avx512f", "+avx512vl", "+f16c",     "+fma"};
  switch (isa) {
    case Isa::avx512:
      return kAvx512;
    case Isa::avx2:
      return kAvx2;
    case Isa::sse2:
      break;
  }
  return kSse2;
}

bool well_formed(const std::string& feature) {
  if (feature.size() < 2 || feature.size() > 64 || feature[0] != '+') return false;
  return std::all_of(feature.begin() + 1, feature.end(), [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace

Result<Target> make_target(const CpuModel& model) {
  if (model.isa > Isa::avx512) return Status(Code::unsupported, "an unknown instruction-set class");
  const int bytes = model.isa == Isa::avx512 ? 64 : model.isa == Isa::avx2 ? 32 : 16;
  if (model.vector_bytes != bytes)
    return make_error(Code::unsupported, "class %s with vectors of %d bytes", isa_name(model.isa), model.vector_bytes);
  Target target;
  target.isa = model.isa;
  target.vector_bytes = bytes;
  for (const char* feature : class_features(model.isa))
    target.features += (target.features.empty() ? "" : ",") + std::string(feature);
  for (const std::string& feature : model.features) {
    if (!well_formed(feature))
      return make_error(Code::invalid_argument, "'%.64s' is no feature to add", feature.c_str());
    // A wider register file belongs to a higher class.
    if (model.isa != Isa::avx512 && feature.starts_with("+avx512"))
      return make_error(Code::invalid_argument, "feature %s is beyond class %s", feature.c_str(), isa_name(model.isa));
    if (model.isa == Isa::sse2 && (feature.starts_with("+avx") || feature == "+fma" || feature == "+f16c"))
      return make_error(Code::invalid_argument, "feature %s is beyond class %s", feature.c_str(), isa_name(model.isa));
    target.features += "," + feature;
  }
  return target;
}

}  // namespace quartet::codegen
