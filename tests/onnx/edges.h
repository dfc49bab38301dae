// Small ONNX models at the corners of their operators: through compiled code and through the interpreter, against fixed
// values.
#pragma once

#include <cmath>
#include <limits>

#include "unit/compiler/rig.h"
#include "unit/import/running.h"

namespace quartet::test {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

inline Tensor numbers(DType dtype, Dims dims, const std::vector<double>& values) {
  Tensor tensor = Tensor::zeros(dtype, std::move(dims));
  for (size_t i = 0; i < tensor.elements.size(); ++i) tensor.elements[i] = reference::bits_of(dtype, values[i]);
  return tensor;
}

// start, start + step ...
inline Tensor ramp(Dims dims, double start = 0, double step = 1) {
  Tensor tensor = Tensor::zeros(DType::f32, std::move(dims));
  for (size_t i = 0; i < tensor.elements.size(); ++i)
    tensor.elements[i] = reference::bits_of(DType::f32, start + step * static_cast<double>(i));
  return tensor;
}

inline std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for (const int64_t bits : tensor.elements)
    values.push_back(static_cast<double>(reference::number_of(tensor.dtype, bits)));
  return values;
}

inline bool close(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= 1e-5 + 1e-4 * std::fabs(b);
}

inline void expect_close(const Tensor& got, const Dims& dims, const std::vector<double>& wanted, const char* whose) {
  EXPECT_EQ(got.dims, dims) << whose;
  const std::vector<double> values = values_of(got);
  ASSERT_EQ(values.size(), wanted.size()) << whose;
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_TRUE(close(values[i], wanted[i])) << whose << " gives " << values[i] << ", not " << wanted[i] << " at " << i;
}

// A compiled model that runs on many inputs.
class Compiled {
 public:
  explicit Compiled(const OnnxModel& model) : graph_(imported(model)) {
    if (!graph_) return;
    auto program = engine_->compile({graph_, {}, host_cpu()});
    EXPECT_TRUE(program.ok()) << program.status().message();
    if (program.ok()) program_ = (*program)->program;
  }
  bool ok() const { return program_ != nullptr; }

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) const { return test::run(*program_, inputs); }
  Result<std::vector<Tensor>> interpret(const std::vector<Tensor>& inputs) const {
    return reference::interpret(*graph_, inputs);
  }

  // Output `o` has these dims and values.
  void expect(const std::vector<Tensor>& inputs, const Dims& dims, const std::vector<double>& values,
              size_t o = 0) const {
    ASSERT_TRUE(ok());
    const auto got = run(inputs), interpreted = interpret(inputs);
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_TRUE(interpreted.ok()) << interpreted.status().message();
    expect_close(got->at(o), dims, values, "compiled code");
    expect_close(interpreted->at(o), dims, values, "the interpreter");
  }

  // All outputs are what the interpreter gives.
  void expect_as_interpreted(const std::vector<Tensor>& inputs) const {
    ASSERT_TRUE(ok());
    const auto got = run(inputs), wanted = interpret(inputs);
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_TRUE(wanted.ok()) << wanted.status().message();
    for (size_t o = 0; o < wanted->size(); ++o)
      expect_close(got->at(o), wanted->at(o).dims, values_of(wanted->at(o)), "compiled code");
  }

  // A run on these inputs fails, and says why.
  std::string failure(const std::vector<Tensor>& inputs) const {
    const auto got = run(inputs);
    EXPECT_FALSE(got.ok());
    return got.ok() ? "" : got.status().message();
  }

 private:
  std::unique_ptr<compiler::Engine> engine_ = make_engine();
  std::shared_ptr<const graph::Graph> graph_;
  std::shared_ptr<const runtime::LoadedProgram> program_;
};

inline void expect_edge(const OnnxModel& model, const std::vector<Tensor>& inputs, const Dims& dims,
                        const std::vector<double>& values) {
  Compiled(model).expect(inputs, dims, values);
}

}  // namespace quartet::test
