// A model from an instruction-set class and the rates of a family; what named models and the host probe share.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/families.h"

namespace quartet {

// Everything but features and cores; cache sizes are those of a small common core: L1 32 KiB, L2 512 KiB,
// L3 16 MiB shared.
CpuModel class_model(Isa isa, const FamilyRates& rates);

// LLVM names of the features every processor of the class has, sorted.
std::vector<std::string> class_features(Isa isa);

}  // namespace quartet
