#include "compiler/assemble.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

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

class Assembler {
 public:
  Assembler(const graph::Graph& graph, const graph::Graph& given, const tile::TileGraph& tiles,
            const std::vector<welder::Group>& groups, const rammer::Schedule& schedule,
            std::vector<kernel::LoweredGroup> lowered)
      : graph_(graph), tiles_(tiles), groups_(groups), schedule_(schedule), lowered_(std::move(lowered)) {
    for (const graph::Constant& constant : given.constants) given_.insert(constant.digest);
  }

  Result<Assembly> run() {
    describe();
    place_tensors();
    for (const int32_t g : schedule_.order) QUARTET_TRY(add_group(g));
    sort_stages();
    program::plan_memory(result_.program);
    for (size_t s = 0; s < program_.stages.size(); ++s)
      program_.body.push_back({program::InstructionKind::stage, static_cast<int32_t>(s)});
    QUARTET_TRY(program::verify(program_));
    return std::move(result_);
  }

 private:
  void describe() {
    for (const graph::DimSymbol& symbol : tiles_.symbols) program_.dims.push_back({symbol.name, symbol.lower});
    const graph::Function& main = graph_.main();
    const auto describe_value = [&](graph::ValueId id, const std::string& name) {
      const graph::TensorType& type = main.values[static_cast<size_t>(id)].type;
      return program::TensorInfo{name, type.dtype, type.shape};
    };
    for (const graph::ValueId id : main.body.arguments)
      program_.inputs.push_back(describe_value(id, main.values[static_cast<size_t>(id)].name));
    for (size_t i = 0; i < main.body.results.size(); ++i)
      program_.outputs.push_back(describe_value(main.body.results[i], main.output_names[i]));
  }

  BufferRef constant(int32_t number) {
    const auto [at, added] = constants_.try_emplace(number, static_cast<int32_t>(program_.constants.size()));
    if (added) {
      const graph::Constant& source = graph_.constants[static_cast<size_t>(number)];
      program::ConstantInfo info{source.digest, source.bytes, {}};
      if (source.bytes <= kInlineBytes)
        info.inline_data.assign(source.data, source.data + source.bytes);
      else if (!given_.count(source.digest))
        result_.carried.push_back(&source);
      program_.constants.push_back(std::move(info));
    }
    return {Storage::constant, at->second};
  }

  BufferRef workspace(IntExpr bytes) {
    program_.workspace.push_back({std::move(bytes), 0, 0, {}});
    return {Storage::workspace, static_cast<int32_t>(program_.workspace.size() - 1)};
  }

  // Every tensor some kernel touches gets one home; an output that has its home elsewhere is copied at the end.
  void place_tensors() {
    home_.resize(tiles_.tensors.size());
    std::vector<bool> stored(tiles_.tensors.size());
    for (const welder::Group& group : groups_)
      for (const tile::TensorId t : group.outputs) stored[static_cast<size_t>(t)] = true;
    for (size_t t = 0; t < tiles_.tensors.size(); ++t) {
      const tile::Tensor& tensor = tiles_.tensors[t];
      std::vector<int32_t> outputs = tensor.outputs;
      if (tensor.input >= 0) {
        home_[t] = {Storage::input, tensor.input};
      } else if (tensor.constant >= 0) {
        home_[t] = constant(tensor.constant);
      } else if (!stored[t]) {
        continue;
      } else if (!outputs.empty()) {
        home_[t] = {Storage::output, outputs.front()};
        outputs.erase(outputs.begin());
      } else {
        home_[t] = workspace(tensor.type.elements() * IntExpr(static_cast<int64_t>(size_of(tensor.type.dtype))));
      }
      for (const int32_t output : outputs) program_.copies.push_back({*home_[t], output});
    }
  }

  int32_t add_kernel(const kernel::Lowered& lowered) {
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

  Result<program::Stage> make_stage(const kernel::Lowered& lowered, double seconds) {
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

  Status add_group(int32_t g) {
    const welder::Group& group = groups_[static_cast<size_t>(g)];
    kernel::LoweredGroup& lowered = lowered_[static_cast<size_t>(g)];
    panels_.clear();
    std::vector<int32_t> after;
    for (const int32_t other : schedule_.after[static_cast<size_t>(g)])
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
      program_.stages.push_back(std::move(stage));
      packing_stages_.push_back(static_cast<int32_t>(program_.stages.size() - 1));
    }
    QUARTET_ASSIGN(program::Stage stage, make_stage(lowered.main, group.plan.seconds));
    stage.after = after;
    stage.after.insert(stage.after.end(), packing_stages_.begin(), packing_stages_.end());
    packing_stages_.clear();
    stage_of_group_.resize(groups_.size(), -1);
    stage_of_group_[static_cast<size_t>(g)] = static_cast<int32_t>(program_.stages.size());
    program_.stages.push_back(std::move(stage));
    return {};
  }

  // Waves are the stages' levels (a packing stage makes a wave before its group); stages stand by wave.
  void sort_stages() {
    std::vector<program::Stage>& stages = program_.stages;
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

  const graph::Graph& graph_;
  const tile::TileGraph& tiles_;
  const std::vector<welder::Group>& groups_;
  const rammer::Schedule& schedule_;
  std::vector<kernel::LoweredGroup> lowered_;
  std::unordered_set<Digest> given_;

  Assembly result_;
  program::Program& program_ = result_.program;
  std::map<int32_t, int32_t> constants_;        // graph constant -> program constant
  std::vector<std::optional<BufferRef>> home_;  // per tensor
  std::map<tile::TensorId, BufferRef> panels_;  // of the group at hand
  std::vector<int32_t> packing_stages_;         // of the group at hand
  std::vector<int32_t> stage_of_group_;
  std::vector<IntExpr> tasks_;
  std::unordered_map<Digest, int32_t> kernel_ids_;
};

}  // namespace

Result<Assembly> assemble(const graph::Graph& graph, const graph::Graph& given, const tile::TileGraph& tiles,
                          const std::vector<welder::Group>& groups, const rammer::Schedule& schedule,
                          std::vector<kernel::LoweredGroup> lowered) {
  return Assembler(graph, given, tiles, groups, schedule, std::move(lowered)).run();
}

}  // namespace quartet::compiler
