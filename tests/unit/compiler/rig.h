// Engines for tests: compile a graph, run it, get bytes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "compiler/engine.h"
#include "reference/graph_interpreter.h"
#include "runtime/executor.h"

namespace quartet::test {

inline std::unique_ptr<compiler::Engine> make_engine(std::shared_ptr<cache::Cache> cache = nullptr) {
  compiler::EngineOptions options;
  options.llvm_path = QUARTET_TEST_LLVM;
  return std::make_unique<compiler::Engine>(real_os(), std::move(cache), options);
}

struct RunSettings {
  int vEUs = 1;
  std::shared_ptr<runtime::WorkerPool> pool;
};

// Memory with a pattern before and after, so that a write outside shows.
class Guarded {
 public:
  explicit Guarded(size_t size) : bytes_(size + 2 * kZone, kPattern), size_(size) {}
  void* data() { return bytes_.data() + kZone; }
  Bytes take() {
    for (size_t i = 0; i < kZone; ++i) {
      EXPECT_EQ(bytes_[i], kPattern) << "written before an output";
      EXPECT_EQ(bytes_[kZone + size_ + i], kPattern) << "written after an output";
    }
    return {bytes_.begin() + kZone, bytes_.begin() + static_cast<std::ptrdiff_t>(kZone + size_)};
  }

 private:
  static constexpr size_t kZone = 64;
  static constexpr uint8_t kPattern = 0xa5;
  Bytes bytes_;
  size_t size_;
};

inline Result<std::vector<reference::Tensor>> run(const runtime::LoadedProgram& program,
                                                  const std::vector<reference::Tensor>& inputs,
                                                  const RunSettings& settings = {}) {
  std::vector<Bytes> memory;
  std::vector<runtime::InputTensor> in;
  std::vector<std::span<const int64_t>> shapes;
  for (const reference::Tensor& tensor : inputs) memory.push_back(tensor.to_memory());
  for (size_t i = 0; i < inputs.size(); ++i) {
    in.push_back({memory[i].data(), memory[i].size(), inputs[i].dims});
    shapes.emplace_back(inputs[i].dims);
  }
  QUARTET_ASSIGN(const std::vector<runtime::Shape> output_shapes, program.output_shapes(shapes));
  // Outputs whose size the run alone knows are in memory that it makes.
  std::vector<Guarded> guarded;
  std::vector<runtime::Block> made(output_shapes.size());
  std::vector<runtime::OutputTensor> out;
  std::vector<bool> open;
  for (size_t o = 0; o < output_shapes.size(); ++o) {
    open.push_back(std::ranges::find(output_shapes[o], -1) != output_shapes[o].end());
    size_t bytes = size_of(program.outputs()[o].dtype);
    for (const int64_t d : output_shapes[o]) bytes *= static_cast<size_t>(std::max<int64_t>(d, 0));
    guarded.emplace_back(bytes);
    out.push_back({nullptr, bytes, std::nullopt, &made[o]});
  }
  for (size_t o = 0; o < out.size(); ++o)
    if (!open[o]) out[o].data = guarded[o].data();
  runtime::RunOptions options;
  options.vEUs = settings.vEUs;
  options.pool = settings.pool.get();
  std::vector<runtime::Shape> actual;
  options.output_shapes = &actual;
  QUARTET_TRY(runtime::run(program, in, out, options));
  std::vector<reference::Tensor> results;
  for (size_t o = 0; o < out.size(); ++o) {
    const Bytes bytes = guarded[o].take();
    const void* data = open[o] ? static_cast<const void*>(made[o].data()) : bytes.data();
    results.push_back(reference::Tensor::from_memory(program.outputs()[o].dtype, actual[o], data));
  }
  return results;
}

}  // namespace quartet::test
