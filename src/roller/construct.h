// Roller: constructs tile plans for a group; it does not search. Pure and fast: microseconds a plan.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "roller/plan.h"
#include "tile/fuse.h"

namespace quartet::roller {

// A task shorter than this is not worth a core of its own: handing one over costs a good part of a microsecond.
inline constexpr double kMinTaskSeconds = 4e-6;
// What a stage costs beside its work: dispatch and dependency of a kernel.
inline constexpr double kStageSeconds = 0.2e-6;
// What each task costs beside its work.
inline constexpr double kTaskSeconds = 0.05e-6;

// The k best plans for a group, best first: contractions by `wall`, others by `seconds`; at least one. Fails with
// failed_precondition when no plan can realise the group, e.g. an operand map that no packing of constant size can
// straighten.
Result<std::vector<Plan>> construct(const tile::TileGraph& graph, const tile::Fused& fused, const CpuModel& device,
                                    size_t k);
// The same for nodes not yet fused.
Result<std::vector<Plan>> construct(const tile::TileGraph& graph, const std::vector<int32_t>& nodes, int32_t core,
                                    int32_t domain, const std::vector<tile::TensorId>& outputs, const CpuModel& device,
                                    size_t k);

const char* kind_name(Plan::Kind kind);
const char* form_name(OperandForm form);
// One or two lines.
std::string print(const Plan& plan);

}  // namespace quartet::roller
