// Loads random programs with plain functions as kernels, and runs them on checked memory.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "runtime/executor.h"
#include "unit/program/random_program.h"

namespace quartet::runtime::testing {

using program::testing::mix_kernel;
using program::testing::RandomOptions;
using program::testing::RandomProgram;

using Data = std::vector<std::vector<uint32_t>>;

inline Result<std::shared_ptr<const LoadedProgram>> load(const RandomProgram& random, LoadOptions options = {},
                                                         KernelFunction kernel = mix_kernel) {
  auto bytes = std::make_shared<Bytes>(random.constant_data);
  const Digest digest = random.program.constants[0].digest;
  options.constants = [bytes, digest](const Digest& wanted) -> std::optional<ConstantData> {
    if (wanted != digest) return std::nullopt;
    return ConstantData{bytes->data(), bytes->size(), bytes};
  };
  const std::vector<KernelFunction> functions(random.program.kernels.size(), kernel);
  return LoadedProgram::from_functions(random.program, functions, options);
}

// Inputs and outputs of one run with dim n. Every tensor starts at an address that is only element-aligned, and outputs
// have a guard word on each side.
class Arguments {
 public:
  static constexpr uint32_t kGuard = 0xdeadbeef, kUnwritten = 0xcdcdcdcd;

  Arguments(const LoadedProgram& program, Data inputs, int64_t n) : inputs_(std::move(inputs)) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      in_shapes_.push_back(shape(program.inputs()[i], n));
      inputs_[i].insert(inputs_[i].begin(), kGuard);
    }
    for (const program::TensorInfo& info : program.outputs()) {
      out_shapes_.push_back(shape(info, n));
      size_t elements = 1;
      for (const int64_t extent : out_shapes_.back()) elements *= static_cast<size_t>(extent);
      outputs_.emplace_back(elements + 2, kUnwritten);
      outputs_.back().front() = outputs_.back().back() = kGuard;
    }
  }

  std::vector<InputTensor> inputs() const {
    std::vector<InputTensor> list;
    list.reserve(inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i)
      list.push_back({inputs_[i].data() + 1, (inputs_[i].size() - 1) * 4, in_shapes_[i]});
    return list;
  }
  std::vector<OutputTensor> outputs() {
    std::vector<OutputTensor> list;
    list.reserve(outputs_.size());
    for (size_t i = 0; i < outputs_.size(); ++i)
      list.push_back({outputs_[i].data() + 1, (outputs_[i].size() - 2) * 4, out_shapes_[i]});
    return list;
  }
  // What the outputs hold; fails if a guard was written over. Clears them for the next run.
  Data take() {
    Data result;
    for (std::vector<uint32_t>& output : outputs_) {
      EXPECT_EQ(output.front(), kGuard);
      EXPECT_EQ(output.back(), kGuard);
      result.emplace_back(output.begin() + 1, output.end() - 1);
      std::fill(output.begin() + 1, output.end() - 1, kUnwritten);
    }
    return result;
  }

 private:
  static Shape shape(const program::TensorInfo& info, int64_t n) {
    Shape extents;
    for (const IntExpr& e : info.shape) extents.push_back(RandomProgram::value(e, n));
    return extents;
  }

  Data inputs_, outputs_;
  std::vector<Shape> in_shapes_, out_shapes_;
};

}  // namespace quartet::runtime::testing
