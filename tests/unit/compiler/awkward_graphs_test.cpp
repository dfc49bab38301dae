// Graphs that fusion could put into a kernel that cannot be made: they compile, and give what the interpreter gives.
#include <gtest/gtest.h>

#include "graph/graph.h"
#include "reference/graph_ops.h"
#include "unit/compiler/rig.h"

namespace quartet {
namespace {

using reference::Tensor;

// Small whole numbers, so that every result is exact.
Tensor small_numbers(const graph::TensorType& type) {
  Tensor tensor;
  tensor.dtype = type.dtype;
  size_t count = 1;
  for (const IntExpr& dim : type.shape) {
    tensor.dims.push_back(*dim.constant());
    count *= static_cast<size_t>(*dim.constant());
  }
  for (size_t i = 0; i < count; ++i)
    tensor.elements.push_back(reference::bits_of(type.dtype, static_cast<long double>(i * 7 % 11) - 5));
  return tensor;
}

void expect_as_interpreted(const char* text) {
  SCOPED_TRACE(text);
  const auto graph = graph::parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  std::vector<Tensor> inputs;
  for (const graph::ValueId input : (*graph)->main().body.arguments)
    inputs.push_back(small_numbers((*graph)->main().values[static_cast<size_t>(input)].type));
  const auto want = reference::interpret(**graph, inputs);
  ASSERT_TRUE(want.ok()) << want.status().message();
  const auto engine = test::make_engine();
  for (const Isa isa : {Isa::sse2, Isa::avx2, Isa::avx512}) {
    if (host_cpu().isa < isa) continue;
    const auto program = engine->compile({*graph, {}, host_cpu(isa)});
    ASSERT_TRUE(program.ok()) << program.status().message();
    const auto got = test::run(*(*program)->program, inputs);
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_EQ(got->size(), want->size());
    for (size_t o = 0; o < want->size(); ++o) EXPECT_EQ((*got)[o].elements, (*want)[o].elements);
  }
}

TEST(AwkwardGraphs, FloatRemaindersBesideContractions) {
  expect_as_interpreted(
      "graph (%a: f32[8, 16], %b: f32[16, 8], %c: f32[8]) { %0 = matmul %a, %b  %1 = abs %c  %2 = add %1, %1  "
      "%3 = constant f32 all 1  %4 = add %2, %3  %5 = rem %0, %4  return %5 }");
  expect_as_interpreted(
      "graph (%a: f64[5, 7], %b: f64[7]) { %0 = matmul %a, %b  %1 = constant f64 all 3  %2 = floor_mod %0, %1  "
      "%3 = rem %0, %1  return %2, %3, %0 }");
  expect_as_interpreted(
      "graph (%a: f16[3, 9], %b: f16[9, 33]) { %1 = constant f16 all 3  %2 = rem %a, %1  %3 = matmul %2, %b  "
      "%4 = rem %3, %1  %5 = reduce_sum %4 {axes = [1]}  return %5 }");
}

// A dim that was declared and then not needed.
TEST(AwkwardGraphs, UnusedDims) {
  expect_as_interpreted("dim j in [1, _] graph (%a: f32[2, 3]) { %0 = neg %a  return %0 }");
}

}  // namespace
}  // namespace quartet
