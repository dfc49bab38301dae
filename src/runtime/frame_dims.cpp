// Dims that the run sets, and the numbers that depend on them.
#include <algorithm>
#include <cstring>

#include "program/memory_plan.h"
#include "runtime/frame.h"

namespace quartet::runtime {

using program::Storage;

void Frame::add_item(Item::Kind kind, size_t index, std::initializer_list<std::span<const IntExpr>> lists,
                     size_t instruction) {
  if (items_of_.empty()) return;
  Item item{kind, index, {}, instruction};
  for (const auto list : lists)
    for (const IntExpr& e : list)
      for (const Symbol s : e.symbols())
        if (program_.program().dims[static_cast<size_t>(s)].run) item.dims.push_back(s);
  std::ranges::sort(item.dims);
  const auto repeated = std::ranges::unique(item.dims);
  item.dims.erase(repeated.begin(), repeated.end());
  if (item.dims.empty()) return;
  for (const int32_t dim : item.dims) items_of_[static_cast<size_t>(dim)].push_back(items_.size());
  if (kind == Item::Kind::stage) stage_varies_[index] = true;
  items_.push_back(std::move(item));
}

// Copies join when their actions are made.
void Frame::find_items() {
  const program::Program& p = program_.program();
  if (std::ranges::none_of(p.dims, [](const program::DimInfo& dim) { return dim.run; })) return;
  items_of_.resize(p.dims.size());
  for (size_t d = 0; d < p.dims.size(); ++d) {
    known_[d] = !p.dims[d].is_open();
    any_open_ |= p.dims[d].is_open();
  }
  using Kind = Item::Kind;
  for (size_t i = 0; i < p.workspace.size(); ++i) {
    add_item(Kind::slot, i, {{&p.workspace[i].bytes, 1}});
    places_[static_cast<size_t>(Storage::workspace)][i].need =
        static_cast<uint64_t>(program::value_at(p.workspace[i].bytes, dims_).value_or(0));
  }
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    add_item(Kind::output, i, {p.outputs[i].shape});
    places_[static_cast<size_t>(Storage::output)][i].need = outputs_[i].bytes;
  }
  for (size_t i = 0; i < p.stages.size(); ++i) {
    const program::KernelInfo& kernel = p.kernels[static_cast<size_t>(p.stages[i].kernel)];
    add_item(Kind::stage, i, {{&p.stages[i].tasks, 1}, {&kernel.scratch_bytes, 1}, kernel.dims});
  }
  for (size_t i = 0; i < p.loops.size(); ++i)
    if (p.loops[i].count) add_item(Kind::loop, i, {{&*p.loops[i].count, 1}});
  for (size_t i = 0; i < p.views.size(); ++i)
    add_item(Kind::view, i, {{&p.views[i].first, 1}, {&p.views[i].stride, 1}, {&p.views[i].bytes, 1}});
}

bool Frame::is_known(const Item& item) const {
  return std::ranges::all_of(item.dims, [&](int32_t dim) { return known_[static_cast<size_t>(dim)]; });
}

// A new run: what the last one set is forgotten.
Status Frame::begin_dims() {
  if (items_of_.empty()) return {};
  const std::vector<program::DimInfo>& dims = program_.program().dims;
  for (size_t d = 0; d < dims.size(); ++d) known_[d] = !dims[d].is_open();
  for (size_t d = 0; d < dims.size(); ++d) {
    const program::DimInfo& dim = dims[d];
    if (dim.run && !dim.is_open() && live_[d] != dims_[d]) {
      live_[d] = dims_[d];
      QUARTET_TRY(refresh(static_cast<int32_t>(d)));
    }
  }
  return {};
}

Status Frame::set_dim(int32_t number, int64_t value) {
  const auto d = static_cast<size_t>(number);
  const program::DimInfo& dim = program_.program().dims[d];
  if (value < dim.lower || (!dim.is_open() && value > dims_[d]))
    return make_error(Code::resource_exhausted, "dim '%s' is set to %lld, beyond its bounds", dim.name.c_str(),
                      static_cast<long long>(value));
  if (known_[d] && live_[d] == value) return {};
  live_[d] = value;
  known_[d] = true;
  return refresh(number);
}

Status Frame::read_dim(const Action& action) {
  QUARTET_TRY(check_there(action.from));
  int64_t value = 0;
  std::memcpy(&value, action.from->address, sizeof value);
  const program::DimInfo& dim = program_.program().dims[static_cast<size_t>(action.first)];
  if (value < dim.lower || (!dim.is_open() && value > dims_[static_cast<size_t>(action.first)]))
    return make_error(Code::failed_precondition, "%s: %lld",
                      program_.program().messages[static_cast<size_t>(action.last)].c_str(),
                      static_cast<long long>(value));
  return set_dim(action.first, value);
}

// Evaluates anew what depends on a dim, as far as everything else is known that it depends on.
Status Frame::refresh(int32_t dim) {
  for (const size_t item : items_of_[static_cast<size_t>(dim)])
    if (is_known(items_[item])) QUARTET_TRY(evaluate(items_[item]));
  return {};
}

Status Frame::evaluate(const Item& item) {
  switch (item.kind) {
    case Item::Kind::slot:
      return evaluate_slot(item.index);
    case Item::Kind::output:
      return evaluate_output(item.index);
    case Item::Kind::stage:
      return evaluate_stage(item.index);
    case Item::Kind::loop:
      return fill_loop(item.index);
    case Item::Kind::view:
      return fill_view(item.index);
    case Item::Kind::copy: {
      QUARTET_ASSIGN(const int64_t bytes,
                     count_at(program_.program().body[item.instruction].bytes, live_, "the size of a copy"));
      actions_[item.index].bytes = static_cast<uint64_t>(bytes);
      return {};
    }
  }
  return {};
}

namespace {

Status too_much(const std::string& what) {
  return {Code::resource_exhausted, what + " needs more memory than was planned for the bounds of its dims"};
}

}  // namespace

Status Frame::evaluate_slot(size_t slot) {
  const IntExpr& bytes = program_.program().workspace[slot].bytes;
  QUARTET_ASSIGN(const int64_t needed, count_at(bytes, live_, "the size of a workspace slot"));
  Place& at = places_[static_cast<size_t>(Storage::workspace)][slot];
  at.need = static_cast<uint64_t>(needed);
  if (at.room >= 0 || needed <= program::value_at(bytes, dims_).value_or(0)) return {};
  return too_much("workspace slot " + std::to_string(slot));
}

Status Frame::evaluate_output(size_t output) {
  const program::Program& p = program_.program();
  QUARTET_ASSIGN(actual_outputs_[output], extents_at(p.outputs[output], live_, output_name(p, output)));
  Place& at = places_[static_cast<size_t>(Storage::output)][output];
  at.need = actual_outputs_[output].bytes;
  if (at.room >= 0 || at.need <= outputs_[output].bytes) return {};
  return too_much(output_name(p, output));
}

Status Frame::evaluate_stage(size_t stage) {
  const program::Program& p = program_.program();
  const program::KernelInfo& kernel = p.kernels[static_cast<size_t>(p.stages[stage].kernel)];
  QUARTET_ASSIGN(const int64_t scratch, count_at(kernel.scratch_bytes, live_, "the scratch size of a kernel"));
  if (static_cast<uint64_t>(scratch) > layout_.scratch_bytes && !program::is_open(p, kernel.scratch_bytes))
    return too_much("the scratch of kernel '" + kernel.name + "'");
  QUARTET_TRY(fill_step(stage));
  stage_scratch_[stage] = static_cast<uint64_t>(scratch);
  for (Run& run : runs_)
    if (stage >= run.first && stage < run.first + run.count) run.stale = true;
  return {};
}

}  // namespace quartet::runtime
