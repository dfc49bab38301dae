// Random programs whose every stage is the same plain function, and what they must compute.
//
// All tensors are u32. A stage with n operands computes, for each element i of its result,
//   r = salt; for each operand x: r = r * 31 + x[(i * 7 + 3) mod size of x]; result[i] = r
// so that each task reads what many tasks of earlier stages wrote.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "base/kernel_abi.h"
#include "program/program.h"

namespace quartet::program::testing {

struct RandomOptions {
  int stages = 12;
  bool symbolic = false;  // sizes are multiples of dim s0, else numbers
  double task_cost = 3e-6;
  int64_t max_elements = 200;
};

// dims: elements of the result, elements a task, salt, operands, then the elements of each operand.
// Scratch must be the running task's own: a result is spoiled if somebody else writes to it meanwhile.
inline void mix_kernel(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end, void* scratch) {
  const int64_t elements = dims[0], chunk = dims[1], operands = dims[3];
  auto* result = static_cast<uint32_t*>(buffers[operands]);
  auto* note = static_cast<volatile int64_t*>(scratch);
  for (int64_t task = begin; task < end; ++task) {
    if (note != nullptr) *note = task;
    const int64_t first = task * chunk, last = std::min(elements, first + chunk);
    for (int64_t i = first; i < last; ++i) {
      auto r = static_cast<uint32_t>(dims[2]);
      for (int64_t k = 0; k < operands; ++k)
        r = r * 31 + static_cast<const uint32_t*>(buffers[k])[(i * 7 + 3) % dims[4 + k]];
      result[i] = r;
    }
    if (note != nullptr && *note != task) result[first] ^= 1;
  }
}

class RandomProgram {
 public:
  RandomProgram(uint64_t seed, RandomOptions options) : random_(seed), options_(options) {
    if (options.symbolic) program.dims.push_back({"n", 1});
    const IntExpr input_size = size();
    program.inputs.push_back({"x", DType::u32, {options.symbolic ? IntExpr::symbol(0) : input_size}});
    program.inputs.push_back({"y", DType::u32, {size(), IntExpr(3)}});
    add_constant();
    values_.push_back({{Storage::input, 0}, program.inputs[0].shape[0], -1});
    values_.push_back({{Storage::input, 1}, program.inputs[1].shape[0] * IntExpr(3), -1});
    values_.push_back({{Storage::constant, 0}, IntExpr(16), -1});
    values_.push_back({{Storage::prepared, 0}, IntExpr(24), -1});
    for (int i = 0; i < options.stages; ++i) add_stage(i);
    program.outputs.push_back({"copied", DType::u32, program.inputs[0].shape});
    program.copies.push_back({{Storage::input, 0}, static_cast<int32_t>(program.outputs.size() - 1)});
    sort_by_wave();
    plan_memory(program);
  }

  Program program;
  Bytes constant_data;

  // What the outputs must be, by evaluating the stages one after another in memory of their own.
  std::vector<std::vector<uint32_t>> expected(const std::vector<std::vector<uint32_t>>& inputs, int64_t n) const {
    const std::vector<int64_t> dims{n};
    std::vector<std::vector<uint32_t>> outputs(program.outputs.size()), slots(program.workspace.size()), prepared(1);
    std::vector<uint32_t> constant(16);
    std::copy(constant_data.begin(), constant_data.end(), reinterpret_cast<uint8_t*>(constant.data()));
    const auto buffer = [&](const BufferRef& ref) -> std::vector<uint32_t>& {
      switch (ref.storage) {
        case Storage::input:
          return const_cast<std::vector<uint32_t>&>(inputs[static_cast<size_t>(ref.index)]);
        case Storage::output:
          return outputs[static_cast<size_t>(ref.index)];
        case Storage::constant:
          return constant;
        case Storage::prepared:
          return prepared[0];
        case Storage::workspace:
        case Storage::view:
          break;
      }
      return slots[static_cast<size_t>(ref.index)];
    };
    const auto run = [&](const Stage& stage) {
      const KernelInfo& kernel = program.kernels[static_cast<size_t>(stage.kernel)];
      std::vector<int64_t> values;
      values.reserve(kernel.dims.size());
      for (const IntExpr& dim : kernel.dims) values.push_back(value(dim, n));
      std::vector<void*> buffers;
      buffers.reserve(stage.arguments.size());
      buffer(stage.arguments.back()).assign(static_cast<size_t>(values[0]), 0);
      for (const BufferRef& ref : stage.arguments) buffers.push_back(buffer(ref).data());
      mix_kernel(buffers.data(), values.data(), 0, value(stage.tasks, n), nullptr);
    };
    for (const Stage& stage : program.prepare) run(stage);
    for (const Stage& stage : program.stages) run(stage);
    for (const Program::Copy& copy : program.copies) outputs[static_cast<size_t>(copy.output)] = buffer(copy.from);
    return outputs;
  }

  static int64_t value(const IntExpr& e, int64_t n) {
    return e.evaluate([&](Symbol) -> std::optional<int64_t> { return n; }).value_or(-1);
  }

  std::vector<std::vector<uint32_t>> random_inputs(int64_t n) {
    std::vector<std::vector<uint32_t>> inputs;
    for (const TensorInfo& input : program.inputs) {
      int64_t elements = 1;
      for (const IntExpr& extent : input.shape) elements *= value(extent, n);
      std::vector<uint32_t> data(static_cast<size_t>(elements));
      for (uint32_t& v : data) v = static_cast<uint32_t>(random_());
      inputs.push_back(std::move(data));
    }
    return inputs;
  }

 private:
  struct Value {
    BufferRef ref;
    IntExpr elements;
    int32_t stage;  // that makes it, or -1
  };

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  IntExpr size() {
    if (options_.symbolic && pick(0, 3) != 0) return IntExpr::symbol(0) * IntExpr(pick(1, 4)) + IntExpr(pick(0, 1) * 5);
    return IntExpr(pick(1, options_.max_elements));
  }

  void add_constant() {
    for (int i = 0; i < 64; ++i) constant_data.push_back(static_cast<uint8_t>(random_()));
    program.constants.push_back({digest_of(constant_data), constant_data.size(), {}});
    program.prepared.push_back({IntExpr(24 * 4)});
    program.kernels.push_back(
        {"pack", 0, 0, {IntExpr(24), IntExpr(5), IntExpr(77), IntExpr(1), IntExpr(16)}, IntExpr(0), 2});
    program.prepare.push_back({0, {{Storage::constant, 0}, {Storage::prepared, 0}}, IntExpr(5), {}, 0, 1e-6, false});
  }

  void add_stage(int number) {
    const bool output = number == options_.stages - 1 || pick(0, 5) == 0;
    const IntExpr elements = size();
    const int64_t chunk = pick(1, 40);
    Stage stage;
    KernelInfo kernel{"mix" + std::to_string(number), 0, 0, {elements, IntExpr(chunk), IntExpr(pick(0, 1000))},
                      IntExpr(pick(0, 1) * 64),       0};
    const int64_t operands = pick(1, 3);
    kernel.dims.push_back(IntExpr(operands));
    for (int64_t k = 0; k < operands; ++k) {
      const Value& value = values_[static_cast<size_t>(pick(0, static_cast<int64_t>(values_.size()) - 1))];
      stage.arguments.push_back(value.ref);
      kernel.dims.push_back(value.elements);
      if (value.stage >= 0) {
        stage.after.push_back(value.stage);
        stage.wave = std::max(stage.wave, program.stages[static_cast<size_t>(value.stage)].wave + 1);
      }
    }
    BufferRef target{Storage::workspace, static_cast<int32_t>(program.workspace.size())};
    if (output) {
      target = {Storage::output, static_cast<int32_t>(program.outputs.size())};
      program.outputs.push_back({"out" + std::to_string(number), DType::u32, {elements}});
    } else {
      program.workspace.push_back({elements * IntExpr(4), 0, 0, IntExpr(0)});
    }
    stage.arguments.push_back(target);
    kernel.arguments = static_cast<int32_t>(stage.arguments.size());
    stage.kernel = static_cast<int32_t>(program.kernels.size());
    stage.tasks = ceil_div(elements, IntExpr(chunk));
    stage.task_cost = options_.task_cost;
    program.kernels.push_back(std::move(kernel));
    program.stages.push_back(std::move(stage));
    values_.push_back({target, elements, number});
  }

  void sort_by_wave() {
    std::vector<int32_t> order;
    order.reserve(program.stages.size());
    for (size_t i = 0; i < program.stages.size(); ++i) order.push_back(static_cast<int32_t>(i));
    const auto wave = [&](int32_t i) { return program.stages[static_cast<size_t>(i)].wave; };
    std::ranges::sort(order, {}, [&](int32_t i) { return std::pair(wave(i), i); });
    std::vector<int32_t> place(order.size());
    for (size_t i = 0; i < order.size(); ++i) place[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
    std::vector<Stage> sorted;
    for (const int32_t i : order) {
      Stage stage = program.stages[static_cast<size_t>(i)];
      for (int32_t& before : stage.after) before = place[static_cast<size_t>(before)];
      sorted.push_back(std::move(stage));
    }
    program.stages = std::move(sorted);
    program.run_all();
  }

  std::mt19937_64 random_;
  RandomOptions options_;
  std::vector<Value> values_;
};

}  // namespace quartet::program::testing
