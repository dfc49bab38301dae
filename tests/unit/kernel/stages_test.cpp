// Whole graphs through simplify, tile, weld and lower, their kernels interpreted, for every instruction-set class: the
// graph interpreter's values, and bit for bit the same fused or not, static or symbolic.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "kernel/expand.h"
#include "kernel/lower.h"
#include "reference/generator.h"
#include "reference/graph_ops.h"
#include "reference/kernel_interpreter.h"
#include "simplify/simplify.h"

namespace quartet::kernel {
namespace {

using reference::Tensor;

class Stages {
 public:
  Stages(std::shared_ptr<const graph::Graph> graph, Isa isa, bool fusion) : isa_(isa) {
    status_ = build(std::move(graph), fusion);
  }

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) {
    QUARTET_TRY(status_);
    bind(inputs);
    for (const LoweredGroup& group : lowered_) {
      for (const Packing& packing : group.packings) QUARTET_TRY(execute(packing.lowered));
      QUARTET_TRY(execute(group.main));
    }
    std::vector<Tensor> results;
    for (const tile::TensorId t : tiles_.outputs) {
      const graph::TensorType& type = tiles_.tensors[static_cast<size_t>(t)].type;
      std::vector<int64_t> shape;
      for (const IntExpr& extent : type.shape) shape.push_back(value(extent));
      results.push_back(Tensor::from_memory(type.dtype, std::move(shape), memory_[{0, t}].data()));
    }
    return results;
  }

 private:
  Status build(std::shared_ptr<const graph::Graph> graph, bool fusion) {
    QUARTET_ASSIGN(graph_, simplify::simplify(graph));
    QUARTET_ASSIGN(tiles_, tile::from_graph(*graph_));
    QUARTET_ASSIGN(const CpuModel device, named_cpu(isa_name(isa_)));
    welder::Options options;
    options.fusion = fusion;
    QUARTET_ASSIGN(const auto groups, welder::weld(tiles_, device, options));
    for (const welder::Group& group : groups) {
      QUARTET_ASSIGN(LoweredGroup lowered, lower(tiles_, group, device));
      lowered_.push_back(std::move(lowered));
    }
    return {};
  }

  int64_t value(const IntExpr& e) const {
    return e
        .evaluate([this](Symbol s) {
          const auto found = dims_.find(s);
          return found == dims_.end() ? std::nullopt : std::optional(found->second);
        })
        .value();
  }

  void bind(const std::vector<Tensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const tile::TensorId t = tiles_.inputs[i];
      const graph::Shape& shape = tiles_.tensors[static_cast<size_t>(t)].type.shape;
      for (size_t d = 0; d < shape.size(); ++d)
        if (const auto symbol = shape[d].as_symbol()) dims_[*symbol] = inputs[i].dims[d];
      memory_[{0, t}] = inputs[i].to_memory();
    }
    for (size_t t = 0; t < tiles_.tensors.size(); ++t)
      if (const int32_t c = tiles_.tensors[t].constant; c >= 0) {
        const graph::Constant& constant = graph_->constants[static_cast<size_t>(c)];
        memory_[{0, static_cast<tile::TensorId>(t)}].assign(constant.data, constant.data + constant.bytes);
      }
  }

  Status execute(const Lowered& lowered) {
    QUARTET_ASSIGN(const Kernel kernel, expand(lowered.kernel, isa_));
    std::vector<int64_t> dims;
    for (const Symbol s : lowered.dims) dims.push_back(dims_.at(s));
    std::vector<std::span<uint8_t>> spans;
    for (size_t i = 0; i < lowered.arguments.size(); ++i) {
      const Buffer& buffer = kernel.buffers[i];
      auto& bytes = memory_[{static_cast<int>(lowered.arguments[i].kind), lowered.arguments[i].tensor}];
      const auto count =
          buffer.elements.evaluate([&](Symbol s) { return std::optional(dims[static_cast<size_t>(s)]); });
      if (buffer.scope == Scope::argument_out) bytes.assign(static_cast<size_t>(*count) * size_of(buffer.dtype), 0xa5);
      spans.emplace_back(bytes);
    }
    const auto tasks = reference::interpret(kernel, isa_, spans, dims);
    return tasks.ok() ? Status() : tasks.status();
  }

  const Isa isa_;
  Status status_;
  std::shared_ptr<const graph::Graph> graph_;
  tile::TileGraph tiles_;
  std::vector<LoweredGroup> lowered_;
  std::map<Symbol, int64_t> dims_;
  std::map<std::pair<int, tile::TensorId>, std::vector<uint8_t>> memory_;
};

bool is_nan(const Tensor& t, size_t i) {
  return is_float(t.dtype) && std::isnan(reference::number_of(t.dtype, t.elements[i]));
}

void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t o = 0; o < a.size(); ++o) {
    ASSERT_EQ(a[o].dims, b[o].dims) << what;
    for (size_t i = 0; i < a[o].elements.size(); ++i)
      if (!(is_nan(a[o], i) && is_nan(b[o], i)))
        ASSERT_EQ(a[o].elements[i], b[o].elements[i]) << what << ", output " << o << ", element " << i;
  }
}

// What rounds exactly on every way must have the interpreter's bits.
void expect_exact(const std::vector<Tensor>& got, const std::vector<Tensor>& want, const std::vector<bool>& exact) {
  for (size_t o = 0; o < got.size(); ++o) {
    ASSERT_EQ(got[o].dims, want[o].dims);
    if (!exact[o]) continue;
    for (size_t i = 0; i < got[o].elements.size(); ++i)
      if (!(is_nan(got[o], i) && is_nan(want[o], i)))
        ASSERT_EQ(got[o].elements[i], want[o].elements[i]) << "output " << o << ", element " << i;
  }
}

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(Stages, RandomGraphsOnEveryClass) {
  const uint64_t first = setting("QUARTET_RANDOM_SEED", 1), count = setting("QUARTET_RANDOM_GRAPHS", 60);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto made = reference::random_graph(seed);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const auto want = reference::interpret(*made->fixed, made->inputs);
    ASSERT_TRUE(want.ok()) << want.status().message();
    for (const Isa isa : {Isa::sse2, Isa::avx2, Isa::avx512}) {
      SCOPED_TRACE(isa_name(isa));
      const auto fused = Stages(made->fixed, isa, true).run(made->inputs);
      ASSERT_TRUE(fused.ok()) << fused.status().message();
      expect_exact(*fused, *want, made->exact);
      const auto alone = Stages(made->fixed, isa, false).run(made->inputs);
      ASSERT_TRUE(alone.ok()) << alone.status().message();
      expect_same(*fused, *alone, "unfused");
      const auto symbolic = Stages(made->symbolic, isa, true).run(made->inputs);
      ASSERT_TRUE(symbolic.ok()) << symbolic.status().message();
      expect_same(*fused, *symbolic, "symbolic");
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace quartet::kernel
