#include "runtime/frame.h"

#include <algorithm>
#include <cstring>

#include "base/os.h"
#include "program/memory_plan.h"
#include "runtime/float_environment.h"

namespace quartet::runtime {

using program::BufferRef;
using program::Storage;

Frame::Frame(const LoadedProgram& program, std::span<const program::Stage> stages, std::span<const int64_t> dims,
             int vEUs)
    : program_(program),
      stages_(stages),
      dims_(dims.begin(), dims.end()),
      live_(dims.begin(), dims.end()),
      known_(dims.size(), true),
      requested_vEUs_(vEUs) {}

Result<std::unique_ptr<Frame>> Frame::make(const LoadedProgram& program, List list, std::span<const int64_t> dims,
                                           int vEUs) {
  if (vEUs < 1 || vEUs > WorkerPool::kMaxVEUs)
    return make_error(Code::invalid_argument, "%d vEUs; a run has 1 to %d", vEUs, WorkerPool::kMaxVEUs);
  const program::Program& p = program.program();
  std::unique_ptr<Frame> frame(new Frame(program, list == List::stages ? p.stages : p.prepare, dims, vEUs));
  if (const Status status = frame->build(list); !status.ok()) return status.with_stage("runtime");
  return frame;
}

Status Frame::build(List list) {
  const program::Program& p = program_.program();
  QUARTET_ASSIGN(layout_, workspace_at(p, stages_, list == List::stages, dims_, requested_vEUs_));
  scratch_bytes_ = layout_.scratch_bytes;
  stage_varies_.resize(stages_.size());
  stage_scratch_.resize(stages_.size());
  if (list == List::stages) {
    QUARTET_TRY(build_tensors());
    // Static plans were checked when the program was loaded.
    if (!p.dims.empty()) QUARTET_TRY(program::check_places(p, dims_));
    for (const program::WorkspaceSlot& slot : p.workspace) {
      QUARTET_ASSIGN(const int64_t offset, count_at(slot.offset, dims_, "the offset of a workspace slot"));
      slot_offsets_.push_back(offset);
    }
  }
  size_place_tables();
  if (list == List::stages) {
    make_rooms();
    find_items();
  }
  QUARTET_TRY(build_steps());
  if (list == List::prepare) {
    actions_.emplace_back();
    add_run(0, stages_.size());
  } else {
    QUARTET_TRY(build_copies());
    QUARTET_TRY(build_body());
  }
  return {};
}

// Places are pointed to, so the tables do not grow later.
void Frame::size_place_tables() {
  const program::Program& p = program_.program();
  const auto table = [&](Storage storage) -> std::vector<Place>& { return places_[static_cast<size_t>(storage)]; };
  table(Storage::input).resize(p.inputs.size());
  table(Storage::output).resize(p.outputs.size());
  table(Storage::constant).resize(p.constants.size());
  table(Storage::prepared).resize(p.prepared.size());
  table(Storage::workspace).resize(p.workspace.size());
  table(Storage::view).resize(p.views.size());
  // Kernels only read constants; the calling convention has no const.
  for (size_t i = 0; i < p.constants.size(); ++i)
    table(Storage::constant)[i].address = const_cast<void*>(program_.constant(static_cast<int32_t>(i)));
  for (size_t i = 0; i < p.prepared.size(); ++i)
    table(Storage::prepared)[i].address = program_.prepared(static_cast<int32_t>(i));
}

Frame::Place& Frame::place(const BufferRef& ref) {
  return places_[static_cast<size_t>(ref.storage)][static_cast<size_t>(ref.index)];
}

Status Frame::build_tensors() {
  const program::Program& p = program_.program();
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    QUARTET_ASSIGN(const Extents extents, extents_at(p.inputs[i], dims_, input_name(p, i)));
    input_bytes_.push_back(extents.bytes);
  }
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    QUARTET_ASSIGN(Extents extents, planned_extents(p, p.outputs[i], dims_, output_name(p, i)));
    outputs_.push_back(std::move(extents));
  }
  actual_outputs_ = outputs_;
  return {};
}

void Frame::add_argument(const BufferRef& ref) {
  Place& at = place(ref);
  at.pointers.push_back(static_cast<uint32_t>(pointers_.size()));
  pointers_.push_back(at.address);
}

Status Frame::build_steps() {
  const program::Program& p = program_.program();
  // Steps point into these two, so they must not grow once steps exist.
  size_t pointers = 0, dims = 0;
  for (const program::Stage& stage : stages_) {
    pointers += stage.arguments.size();
    dims += p.kernels[static_cast<size_t>(stage.kernel)].dims.size();
  }
  pointers_.reserve(pointers);
  kernel_dims_.reserve(dims);
  for (const program::Stage& stage : stages_) {
    const program::KernelInfo& kernel = p.kernels[static_cast<size_t>(stage.kernel)];
    steps_.push_back({program_.function(stage.kernel), pointers_.data() + pointers_.size(),
                      kernel_dims_.data() + kernel_dims_.size()});
    for (const BufferRef& ref : stage.arguments) add_argument(ref);
    kernel_dims_.resize(kernel_dims_.size() + kernel.dims.size());
    tasks_.push_back(0);
    QUARTET_TRY(fill_step(steps_.size() - 1));
  }
  return {};
}

// The numbers of a stage for the dims as they are; those of open dims wait until these are set.
Status Frame::fill_step(size_t number) {
  const program::Stage& stage = stages_[number];
  const program::KernelInfo& kernel = program_.program().kernels[static_cast<size_t>(stage.kernel)];
  const auto waits = [&](const IntExpr& e) {
    return e.contains_any([&](Symbol s) { return !known_[static_cast<size_t>(s)]; });
  };
  if (any_open_ && (waits(stage.tasks) || std::ranges::any_of(kernel.dims, waits))) return {};
  auto* const values = kernel_dims_.data() + (steps_[number].dims - kernel_dims_.data());
  for (size_t d = 0; d < kernel.dims.size(); ++d) {
    const auto value = program::value_at(kernel.dims[d], live_);
    if (!value)
      return {Code::resource_exhausted,
              "a dim of kernel '" + kernel.name + "', " + kernel.dims[d].to_text() + ", overflows"};
    values[d] = *value;
  }
  QUARTET_ASSIGN(tasks_[number], count_at(stage.tasks, live_, "the number of tasks"));
  return {};
}

Status Frame::build_copies() {
  for (const program::Program::Copy& copy : program_.program().copies) {
    Copy entry{nullptr, -1, nullptr, copy.output, outputs_[static_cast<size_t>(copy.output)].bytes};
    if (copy.from.storage == Storage::input) entry.input = copy.from.index;
    if (copy.from.storage == Storage::constant) entry.from = program_.constant(copy.from.index);
    if (copy.from.storage == Storage::prepared) entry.from = program_.prepared(copy.from.index);
    if (entry.bytes != 0) copies_.push_back(entry);
  }
  return {};
}

void Frame::add_run(size_t first, size_t count) {
  Run run;
  run.first = first;
  run.count = count;
  run.times = times_count_;
  place_run(run);
  bool varies = false;
  for (size_t s = first; s < first + count; ++s) {
    varies |= stage_varies_[s];
    for (const BufferRef& ref : stages_[s].arguments)
      if (const Place& at = place(ref); at.room >= 0 && std::ranges::find(run.growing, &at) == run.growing.end())
        run.growing.push_back(&at);
  }
  times_count_ += varies ? count * static_cast<size_t>(requested_vEUs_) : run.ranges.size();
  runs_.push_back(std::move(run));
}

// Places the stages as one row of phases.
void Frame::place_run(Run& run) {
  const program::Placement placement =
      program::place(stages_.subspan(run.first, run.count),
                     std::span<const int64_t>(tasks_).subspan(run.first, run.count), requested_vEUs_);
  run.phases.clear();
  run.segments.clear();
  run.ranges.clear();
  run.parallel = run.stale = false;
  for (size_t p = 0; p < placement.phases.size(); ++p) {
    run.phases.push_back({placement.phases[p].parallel, placement.phases[p].cost});
    run.parallel |= placement.phases[p].parallel;
    for (size_t v = 0; v < placement.lists.size(); ++v) {
      const auto begin = static_cast<uint32_t>(run.ranges.size());
      for (int32_t r = placement.cuts[v][p]; r < placement.cuts[v][p + 1]; ++r) {
        const program::TaskRange& range = placement.lists[v][static_cast<size_t>(r)];
        const size_t stage = run.first + static_cast<size_t>(range.stage);
        run.ranges.push_back(
            {&steps_[stage], range.begin, range.end, static_cast<int32_t>(stage), static_cast<int32_t>(v)});
      }
      run.segments.push_back({begin, static_cast<uint32_t>(run.ranges.size())});
    }
  }
}

void Frame::set_input(size_t index, const void* data) {
  move(place({Storage::input, static_cast<int32_t>(index)}), const_cast<void*>(data));
  for (Copy& copy : copies_)
    if (copy.input == static_cast<int32_t>(index)) copy.from = data;
}

void Frame::set_output(size_t index, void* data) {
  move(place({Storage::output, static_cast<int32_t>(index)}), data);
  for (Copy& copy : copies_)
    if (copy.output == static_cast<int32_t>(index)) copy.to = data;
}

void Frame::set_workspace(void* data) {
  if (data == workspace_ && data != nullptr) return;
  workspace_ = data;
  auto* base = static_cast<std::byte*>(data);
  for (size_t slot = 0; slot < slot_offsets_.size(); ++slot)
    if (Place& at = places_[static_cast<size_t>(Storage::workspace)][slot]; at.room < 0)
      move(at, base == nullptr ? nullptr : base + slot_offsets_[slot]);
  if (own_scratch_.size() != 0) return;
  scratch_ = layout_.scratch_bytes == 0 || base == nullptr ? nullptr : base + layout_.arena_bytes;
}

template <bool timed>
void Frame::run_ranges(const Run& run, Segment segment, int32_t vEU) {
  void* const scratch = scratch_ == nullptr ? nullptr : scratch_ + static_cast<uint64_t>(vEU) * scratch_bytes_;
  for (uint32_t i = segment.begin; i < segment.end; ++i) {
    const Range& range = run.ranges[i];
    int64_t before = 0;
    if constexpr (timed) before = real_os().monotonic_ns();
    range.step->function(range.step->buffers, range.step->dims, range.begin, range.end, scratch);
    if constexpr (timed)
      times_[run.times + i] = {range.stage, range.vEU, range.begin, range.end, before, real_os().monotonic_ns()};
  }
}

void Frame::run_segment(int32_t phase, int32_t vEU) {
  const Run& run = *running_;
  const Segment segment =
      run.segments[static_cast<size_t>(phase) * static_cast<size_t>(requested_vEUs_) + static_cast<size_t>(vEU)];
  if (segment.begin == segment.end) return;
  const FloatEnvironment environment(program_.program().flush_denormals);
  if (times_ != nullptr)
    run_ranges<true>(run, segment, vEU);
  else
    run_ranges<false>(run, segment, vEU);
}

Status Frame::run(WorkerPool* pool, std::vector<RangeTime>* times) {
  QUARTET_TRY(begin_dims());
  for (const Copy& copy : copies_) std::memcpy(copy.to, copy.from, copy.bytes);
  if (times != nullptr) times->assign(times_count_, {});
  times_ = times != nullptr ? times->data() : nullptr;
  const FloatEnvironment environment(program_.program().flush_denormals);
  return run_actions(requested_vEUs_ > 1 ? pool : nullptr);
}

void Frame::run_phases(Run& run, WorkerPool* pool) {
  if (run.stale) place_run(run);
  if (run.parallel && pool != nullptr) {
    running_ = &run;
    set_phases(run.phases, requested_vEUs_);
    pool->run(*this);
    return;
  }
  const auto width = static_cast<size_t>(requested_vEUs_);
  for (size_t s = 0; s < run.segments.size(); ++s) {
    if (run.segments[s].begin == run.segments[s].end) continue;
    const auto vEU = static_cast<int32_t>(s % width);
    if (times_ != nullptr)
      run_ranges<true>(run, run.segments[s], vEU);
    else
      run_ranges<false>(run, run.segments[s], vEU);
  }
}

}  // namespace quartet::runtime
