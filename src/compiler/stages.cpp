#include "compiler/stages.h"

#include <algorithm>

namespace quartet::compiler {

namespace {

using program::BufferRef;
using program::Storage;

// Bytes that tell whether two kernels are the same code: all but the name.
Digest kernel_identity(const kernel::Kernel& kernel) {
  kernel::Kernel nameless = kernel;
  nameless.name.clear();
  for (auto& buffer : nameless.buffers) buffer.name.clear();
  return digest_of(kernel::serialize(nameless));
}

}  // namespace

StageBuilder::StageBuilder(Assembly& result, const graph::Graph& given) : result_(result), program_(result.program) {
  for (const graph::Constant& constant : given.constants) given_.insert(constant.digest);
}

BufferRef StageBuilder::constant(const graph::Constant& source) {
  const auto [at, added] = constants_.try_emplace(source.digest, static_cast<int32_t>(program_.constants.size()));
  if (added) {
    program::ConstantInfo info{source.digest, source.bytes, {}};
    if (source.bytes <= kInlineBytes)
      info.inline_data.assign(source.data, source.data + source.bytes);
    else if (!given_.count(source.digest))
      result_.carried.push_back(&source);
    program_.constants.push_back(std::move(info));
  }
  return {Storage::constant, at->second};
}

BufferRef StageBuilder::workspace(IntExpr bytes, bool grows) {
  const int32_t region = grows || program::is_open(program_, bytes) ? 0 : -1;
  program_.workspace.push_back({std::move(bytes), 0, -1, {}, region});
  return {Storage::workspace, static_cast<int32_t>(program_.workspace.size() - 1)};
}

// Every tensor some kernel touches gets one home.
void StageBuilder::place_tensors(const graph::Graph& graph, std::span<const BufferRef> inputs,
                                 std::span<const BufferRef> outputs) {
  const tile::TileGraph& tiles = piece_->tiles;
  home_.assign(tiles.tensors.size(), std::nullopt);
  std::vector<bool> stored(tiles.tensors.size());
  for (const welder::Group& group : piece_->groups)
    for (const tile::TensorId t : group.outputs) stored[static_cast<size_t>(t)] = true;
  for (size_t t = 0; t < tiles.tensors.size(); ++t) {
    const tile::Tensor& tensor = tiles.tensors[t];
    if (tensor.input >= 0) {
      home_[t] = inputs[static_cast<size_t>(tensor.input)];
    } else if (tensor.constant >= 0) {
      home_[t] = constant(graph.constants[static_cast<size_t>(tensor.constant)]);
    } else if (!stored[t]) {
      continue;
    } else if (!tensor.outputs.empty()) {
      home_[t] = outputs[static_cast<size_t>(tensor.outputs.front())];
    } else {
      home_[t] = workspace(tensor.type.elements() * IntExpr(static_cast<int64_t>(size_of(tensor.type.dtype))));
    }
  }
}

int32_t StageBuilder::add_kernel(const kernel::Lowered& lowered) {
  const kernel::Kernel& kernel = lowered.kernel;
  const auto to_program = [&](const IntExpr& e) {
    return e.substitute([&](Symbol s) -> std::optional<IntExpr> {
      return static_cast<size_t>(s) < lowered.dims.size()
                 ? std::optional(IntExpr::symbol(lowered.dims[static_cast<size_t>(s)]))
                 : std::nullopt;
    });
  };
  program::KernelInfo info;
  info.name = kernel.name;
  info.arguments = kernel.argument_count();
  for (const Symbol s : lowered.dims) info.dims.push_back(IntExpr::symbol(s));
  for (const kernel::Buffer& buffer : kernel.buffers)
    if (buffer.scope == kernel::Scope::task) {
      const IntExpr bytes = to_program(buffer.elements) * IntExpr(static_cast<int64_t>(size_of(buffer.dtype)));
      info.scratch_bytes += ceil_div(bytes, IntExpr(64)) * IntExpr(64);
    }
  tasks_.push_back(to_program(kernel.tasks));
  const auto [at, added] =
      kernel_ids_.try_emplace(kernel_identity(kernel), static_cast<int32_t>(result_.kernels.size()));
  if (added) result_.kernels.push_back(kernel);
  result_.code.push_back(at->second);
  program_.kernels.push_back(std::move(info));
  return static_cast<int32_t>(program_.kernels.size() - 1);
}

Result<program::Stage> StageBuilder::make_stage(const kernel::Lowered& lowered, double seconds) {
  program::Stage stage;
  stage.kernel = add_kernel(lowered);
  stage.tasks = tasks_.back();
  const double tasks = static_cast<double>(stage.tasks.constant().value_or(1));
  stage.task_cost = tasks > 0 ? seconds / tasks : 0;
  for (const kernel::Argument& argument : lowered.arguments) {
    const auto t = static_cast<size_t>(argument.tensor);
    if (argument.kind == kernel::Argument::Kind::panels) {
      const auto found = panels_.find(argument.tensor);
      if (found == panels_.end())
        return make_error(Code::internal, "kernel '%s' reads panels that nothing packs", lowered.kernel.name.c_str());
      stage.arguments.push_back(found->second);
      continue;
    }
    if (!home_[t])
      return make_error(Code::internal, "kernel '%s' uses tensor %d, which has no home", lowered.kernel.name.c_str(),
                        argument.tensor);
    stage.arguments.push_back(*home_[t]);
  }
  return stage;
}

Status StageBuilder::add_group(int32_t g) {
  const welder::Group& group = piece_->groups[static_cast<size_t>(g)];
  const kernel::LoweredGroup& lowered = piece_->lowered[static_cast<size_t>(g)];
  panels_.clear();
  std::vector<int32_t> after;
  for (const int32_t other : piece_->schedule.after[static_cast<size_t>(g)])
    after.push_back(stage_of_group_[static_cast<size_t>(other)]);
  for (const kernel::Packing& packing : lowered.packings) {
    const tile::TensorId tensor = packing.lowered.arguments.front().tensor;
    if (packing.prepare) {
      panels_[tensor] = {Storage::prepared, static_cast<int32_t>(program_.prepared.size())};
      program_.prepared.push_back({packing.bytes});
      QUARTET_ASSIGN(program::Stage stage, make_stage(packing.lowered, 0));
      program_.prepare.push_back(std::move(stage));
      continue;
    }
    panels_[tensor] = workspace(packing.bytes);
    QUARTET_ASSIGN(program::Stage stage, make_stage(packing.lowered, 0));
    stage.after = after;
    stages_.push_back(std::move(stage));
    packing_stages_.push_back(static_cast<int32_t>(stages_.size() - 1));
  }
  QUARTET_ASSIGN(program::Stage stage, make_stage(lowered.main, group.plan.seconds));
  stage.after = after;
  stage.after.insert(stage.after.end(), packing_stages_.begin(), packing_stages_.end());
  packing_stages_.clear();
  stage_of_group_.resize(piece_->groups.size(), -1);
  stage_of_group_[static_cast<size_t>(g)] = static_cast<int32_t>(stages_.size());
  stages_.push_back(std::move(stage));
  return {};
}

// Waves are the stages' levels (a packing stage makes a wave before its group); stages stand by wave.
void StageBuilder::sort_stages() {
  std::vector<program::Stage>& stages = stages_;
  for (program::Stage& stage : stages) {
    stage.wave = 0;
    for (const int32_t other : stage.after)
      stage.wave = std::max(stage.wave, stages[static_cast<size_t>(other)].wave + 1);
  }
  std::vector<int32_t> order(stages.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const int32_t wave_a = stages[static_cast<size_t>(a)].wave, wave_b = stages[static_cast<size_t>(b)].wave;
    return wave_a != wave_b ? wave_a < wave_b : a < b;
  });
  std::vector<int32_t> position(stages.size());
  for (size_t i = 0; i < order.size(); ++i) position[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  std::vector<program::Stage> sorted;
  for (const int32_t old : order) {
    program::Stage stage = std::move(stages[static_cast<size_t>(old)]);
    for (int32_t& other : stage.after) other = position[static_cast<size_t>(other)];
    std::sort(stage.after.begin(), stage.after.end());
    sorted.push_back(std::move(stage));
  }
  stages = std::move(sorted);
}

Result<StageBuilder::Range> StageBuilder::add(const Piece& piece, const graph::Graph& graph,
                                              std::span<const BufferRef> inputs, std::span<const BufferRef> outputs) {
  piece_ = &piece;
  stages_.clear();
  stage_of_group_.assign(piece.groups.size(), -1);
  place_tensors(graph, inputs, outputs);
  for (const int32_t g : piece.schedule.order) QUARTET_TRY(add_group(g));
  sort_stages();
  // Numbers in the program: waves go on where the last segment's ended.
  const auto first = static_cast<int32_t>(program_.stages.size());
  const int32_t wave = program_.stages.empty() ? 0 : program_.stages.back().wave + 1;
  for (program::Stage& stage : stages_) {
    stage.wave += wave;
    for (int32_t& other : stage.after) other += first;
    program_.stages.push_back(std::move(stage));
  }
  return Range{first, static_cast<int32_t>(stages_.size())};
}

}  // namespace quartet::compiler
