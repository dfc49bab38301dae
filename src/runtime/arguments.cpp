#include "runtime/arguments.h"

#include "runtime/shapes.h"

namespace quartet::runtime {

std::string TensorPlace::name() const { return output ? output_name(program, index) : input_name(program, index); }

Status check_memory(const void* data, uint64_t given, uint64_t needed, const TensorPlace& place) {
  const auto refuse = [&](const std::string& reason) {
    return Status(Code::invalid_argument, place.name() + ": " + reason);
  };
  const size_t element = size_of(place.dtype());
  if (needed == 0) return {};
  if (data == nullptr) return refuse("the pointer is null, but its shape needs " + std::to_string(needed) + " bytes");
  if (given < needed)
    return refuse(std::to_string(given) + " bytes are given, its shape needs " + std::to_string(needed));
  if (element > 1 && reinterpret_cast<uintptr_t>(data) % element != 0)
    return refuse("the pointer is not aligned to " + std::to_string(element) + " bytes, the size of " +
                  dtype_name(place.dtype()));
  return {};
}

Status check_shape(std::span<const int64_t> expected, std::span<const int64_t> given, const TensorPlace& place) {
  if (given.size() != expected.size())
    return {Code::invalid_argument, place.name() + ": expected " + std::to_string(expected.size()) + " axes, given " +
                                        std::to_string(given.size())};
  for (size_t axis = 0; axis < given.size(); ++axis)
    if (expected[axis] >= 0 && given[axis] != expected[axis])
      return {Code::invalid_argument, place.name() + ", axis " + std::to_string(axis) + ": expected " +
                                          std::to_string(expected[axis]) + ", given " + std::to_string(given[axis])};
  return {};
}

Status check_workspace(const void* data, uint64_t given, uint64_t needed) {
  if (given < needed)
    return make_error(Code::invalid_argument, "the workspace given has %llu bytes, the run needs %llu",
                      static_cast<unsigned long long>(given), static_cast<unsigned long long>(needed));
  if (reinterpret_cast<uintptr_t>(data) % Block::kAlignment != 0)
    return make_error(Code::invalid_argument, "the workspace given is not aligned to %zu bytes", Block::kAlignment);
  return {};
}

Status check_overlaps(const program::Program& program, std::span<const Stretch> inputs,
                      std::span<const Stretch> outputs, const Stretch& workspace) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (outputs[o].overlaps(inputs[i]))
        return {Code::invalid_argument, output_name(program, o) + " overlaps " + input_name(program, i)};
    for (size_t other = o + 1; other < outputs.size(); ++other)
      if (outputs[o].overlaps(outputs[other]))
        return {Code::invalid_argument, output_name(program, o) + " overlaps " + output_name(program, other)};
    if (outputs[o].overlaps(workspace))
      return {Code::invalid_argument, output_name(program, o) + " overlaps the workspace"};
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].overlaps(workspace))
      return {Code::invalid_argument, input_name(program, i) + " overlaps the workspace"};
  return {};
}

}  // namespace quartet::runtime
