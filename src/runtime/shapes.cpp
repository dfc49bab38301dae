#include "runtime/shapes.h"

#include "base/checked.h"
#include "program/memory_plan.h"

namespace quartet::runtime {
namespace {

using program::Program;

// An expression in the words of the program's dim names.
std::string text_of(const IntExpr& e, const Program& program) {
  return e.to_text([&](Symbol s) { return program.dims[static_cast<size_t>(s)].name; });
}

Status mismatch(const Program& program, size_t input, size_t axis, const std::string& expected, int64_t given) {
  return {Code::invalid_argument, input_name(program, input) + ", axis " + std::to_string(axis) + ": expected " +
                                      expected + ", given " + std::to_string(given)};
}

Status check_form(const Program& program, Shapes shapes) {
  if (shapes.size() != program.inputs.size())
    return make_error(Code::invalid_argument, "the program has %zu inputs, %zu are given", program.inputs.size(),
                      shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].size() != program.inputs[i].shape.size())
      return Status(Code::invalid_argument, input_name(program, i) + ": expected " +
                                                std::to_string(program.inputs[i].shape.size()) + " axes, given " +
                                                std::to_string(shapes[i].size()));
    for (size_t axis = 0; axis < shapes[i].size(); ++axis)
      if (shapes[i][axis] < 0) return mismatch(program, i, axis, "an extent of at least 0", shapes[i][axis]);
  }
  return {};
}

}  // namespace

std::string input_name(const Program& program, size_t index) {
  return "input " + std::to_string(index) + " '" + program.inputs[index].name + "'";
}
std::string output_name(const Program& program, size_t index) {
  return "output " + std::to_string(index) + " '" + program.outputs[index].name + "'";
}

Status bind_dims(const Program& program, Shapes shapes, std::span<int64_t> dims) {
  QUARTET_TRY(check_form(program, shapes));
  constexpr int64_t kUnbound = -1;
  std::ranges::fill(dims, kUnbound);
  for (size_t i = 0; i < shapes.size(); ++i)
    for (size_t axis = 0; axis < shapes[i].size(); ++axis) {
      const auto symbol = program.inputs[i].shape[axis].as_symbol();
      if (!symbol) continue;
      const program::DimInfo& dim = program.dims[static_cast<size_t>(*symbol)];
      int64_t& value = dims[static_cast<size_t>(*symbol)];
      const int64_t given = shapes[i][axis];
      if (value == kUnbound && given < dim.lower)
        return mismatch(program, i, axis, "at least " + std::to_string(dim.lower) + " (" + dim.name + ")", given);
      if (value != kUnbound && value != given)
        return mismatch(program, i, axis, std::to_string(value) + " (" + dim.name + ", as another axis has it)", given);
      value = given;
    }
  // What no input has nothing uses, or the run sets it.
  for (size_t d = 0; d < program.dims.size(); ++d)
    if (dims[d] == kUnbound && !program.dims[d].upper) dims[d] = program.dims[d].lower;
  for (size_t d = 0; d < program.dims.size(); ++d) {
    if (!program.dims[d].upper) continue;
    QUARTET_ASSIGN(dims[d], count_at(*program.dims[d].upper, dims, "the bound of a dim"));
  }
  for (size_t i = 0; i < shapes.size(); ++i)
    for (size_t axis = 0; axis < shapes[i].size(); ++axis) {
      const IntExpr& extent = program.inputs[i].shape[axis];
      const auto wanted = program::value_at(extent, dims);
      if (wanted && *wanted == shapes[i][axis]) continue;
      std::string expected = wanted ? std::to_string(*wanted) : "a number";
      if (!extent.is_constant()) expected += " (" + text_of(extent, program) + ")";
      return mismatch(program, i, axis, expected, shapes[i][axis]);
    }
  for (const program::Assumption& assumption : program.assumptions) {
    const auto a = program::value_at(assumption.a, dims), b = program::value_at(assumption.b, dims);
    if (a && b && *a == *b) continue;
    const auto shown = [](const std::optional<int64_t>& value) { return value ? std::to_string(*value) : "too large"; };
    return Status(Code::invalid_argument, "the inputs' dims do not go together: " + text_of(assumption.a, program) +
                                              " is " + shown(a) + ", " + text_of(assumption.b, program) + " is " +
                                              shown(b) + ", and they must be equal");
  }
  return {};
}

Result<int64_t> count_at(const IntExpr& e, std::span<const int64_t> dims, const char* what) {
  const auto value = program::value_at(e, dims);
  if (value && *value >= 0) return *value;
  return Status(Code::resource_exhausted,
                std::string(what) + " " + e.to_text() + (value ? " is negative" : " overflows"));
}

Result<Extents> extents_at(const program::TensorInfo& tensor, std::span<const int64_t> dims, const std::string& who) {
  Extents extents;
  uint64_t bytes = size_of(tensor.dtype);
  bool empty = false;
  std::optional<uint64_t> product = bytes;
  for (const IntExpr& e : tensor.shape) {
    QUARTET_ASSIGN(const int64_t extent, count_at(e, dims, (who + ": the extent").c_str()));
    extents.shape.push_back(extent);
    empty |= extent == 0;
    if (product && extent != 0) product = checked_mul(*product, static_cast<uint64_t>(extent));
  }
  if (!empty && (!product || *product > static_cast<uint64_t>(INT64_MAX)))
    return Status(Code::resource_exhausted, who + ": its size overflows");
  extents.bytes = empty ? 0 : *product;
  return extents;
}

Result<Extents> planned_extents(const Program& program, const program::TensorInfo& tensor,
                                std::span<const int64_t> dims, const std::string& who) {
  program::TensorInfo known = tensor;
  for (IntExpr& e : known.shape)
    if (program::is_open(program, e)) e = IntExpr(1);
  QUARTET_ASSIGN(Extents extents, extents_at(known, dims, who));
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    if (!program::is_open(program, tensor.shape[axis])) continue;
    extents.shape[axis] = kOpenExtent;
    extents.bytes = 0;
  }
  return extents;
}

Result<WorkspaceLayout> workspace_at(const Program& program, std::span<const program::Stage> stages, bool arena,
                                     std::span<const int64_t> dims, int vEUs) {
  constexpr size_t kAlignment = 64;
  WorkspaceLayout layout;
  if (arena) {
    QUARTET_ASSIGN(const int64_t bytes, count_at(program.workspace_bytes, dims, "the workspace size"));
    layout.arena_bytes = static_cast<uint64_t>(bytes);
  }
  for (const program::Stage& stage : stages) {
    const program::KernelInfo& kernel = program.kernels[static_cast<size_t>(stage.kernel)];
    if (program::is_open(program, kernel.scratch_bytes)) continue;
    QUARTET_ASSIGN(const int64_t scratch, count_at(kernel.scratch_bytes, dims, "the scratch size of a kernel"));
    layout.scratch_bytes = std::max(layout.scratch_bytes, static_cast<uint64_t>(scratch));
  }
  const auto arena_rounded = checked_round_up(layout.arena_bytes, kAlignment);
  const auto scratch = checked_round_up(layout.scratch_bytes, kAlignment);
  const auto all_scratch = scratch ? checked_mul<uint64_t>(*scratch, static_cast<uint64_t>(vEUs)) : std::nullopt;
  const auto total = arena_rounded && all_scratch ? checked_add<uint64_t>(*arena_rounded, *all_scratch) : std::nullopt;
  if (!total) return Status(Code::resource_exhausted, "the workspace size overflows");
  layout.arena_bytes = *arena_rounded;
  layout.scratch_bytes = *scratch;
  layout.total = *total;
  return layout;
}

}  // namespace quartet::runtime
