// Arithmetic at the ends of the number types: nothing crashes, and NaN, infinities and overflow are what is stated.
#include "onnx/edges.h"

namespace quartet {
namespace {

using test::Compiled;
using test::Dims;
using test::expect_edge;
using test::f32;
using test::floats;
using test::ints;
using test::kInf;
using test::kNan;
using test::numbers;
using test::OnnxModel;
using test::OnnxNode;

struct IntType {
  DType dtype;
  int32_t onnx;
  double low, high;  // that a double holds
};
const std::vector<IntType> kSigned = {{DType::i8, 3, -128, 127},
                                      {DType::i16, 5, -32768, 32767},
                                      {DType::i32, 6, -0x1p31, 0x1p31 - 1},
                                      {DType::i64, 7, -0x1p63, 0x1p62}};
const std::vector<IntType> kUnsigned = {
    {DType::u8, 2, 0, 255}, {DType::u16, 4, 0, 65535}, {DType::u32, 12, 0, 0x1p32 - 1}, {DType::u64, 13, 0, 0x1p63}};

OnnxModel binary(const OnnxNode& node, int32_t type, const std::vector<std::string>& dims) {
  return OnnxModel(18).input("a", dims, type).input("b", dims, type).node(node).output("y");
}

void expect_binary(const OnnxNode& node, const IntType& t, const std::vector<double>& a, const std::vector<double>& b,
                   const std::vector<double>& wanted) {
  SCOPED_TRACE(dtype_name(t.dtype));
  const auto n = static_cast<int64_t>(a.size());
  expect_edge(binary(node, t.onnx, {"n"}), {numbers(t.dtype, {n}, a), numbers(t.dtype, {n}, b)}, {n}, wanted);
}

TEST(OnnxNumbers, DivisionByZeroGivesZeroAndTheLowestByMinusOneItself) {
  for (const IntType& t : kSigned)
    expect_binary(OnnxNode("Div", {"a", "b"}, {"y"}), t, {7, -7, t.low, t.low, 0, t.high, -7, 7},
                  {0, 0, 0, -1, 0, -1, 2, -2}, {0, 0, 0, t.low, 0, -t.high, -3, -3});
  for (const IntType& t : kUnsigned)
    expect_binary(OnnxNode("Div", {"a", "b"}, {"y"}), t, {7, t.high, 0, t.high}, {0, 0, 0, 1}, {0, 0, 0, t.high});
}

TEST(OnnxNumbers, RemaindersByZeroLeaveTheDividend) {
  for (const IntType& t : kSigned) {
    expect_binary(OnnxNode("Mod", {"a", "b"}, {"y"}), t, {7, t.low, t.low, -7, 7, 0}, {0, 0, -1, 3, -3, 0},
                  {7, t.low, 0, 2, -2, 0});
    expect_binary(OnnxNode("Mod", {"a", "b"}, {"y"}).integer("fmod", 1), t, {7, t.low, t.low, -7, 7, 0},
                  {0, 0, -1, 3, -3, 0}, {7, t.low, 0, -1, 1, 0});
  }
  for (const IntType& t : kUnsigned)
    expect_binary(OnnxNode("Mod", {"a", "b"}, {"y"}), t, {7, t.high, 9}, {0, 0, 4}, {7, t.high, 1});
  expect_edge(binary(OnnxNode("Mod", {"a", "b"}, {"y"}).integer("fmod", 1), 1, {"n"}),
              {f32({5}, {5.5, -5.5, 5, kInf, 5}), f32({5}, {2, 2, 0, 2, kInf})}, {5}, {1.5, -1.5, kNan, kNan, 5});
}

TEST(OnnxNumbers, ShiftsByTheWidthAndBeyondGiveZero) {
  for (const IntType& t : kUnsigned) {
    const double width = 8.0 * static_cast<double>(size_of(t.dtype));
    for (const char* direction : {"LEFT", "RIGHT"})
      expect_binary(OnnxNode("BitShift", {"a", "b"}, {"y"}).text("direction", direction), t, {1, 1, t.high, 3},
                    {width, 200, width, 0}, {0, 0, 0, 3});
  }
}

TEST(OnnxNumbers, CastsOfFloatsSaturateAndNanIsZero) {
  std::vector<IntType> all = kSigned;
  all.insert(all.end(), kUnsigned.begin(), kUnsigned.end());
  for (const IntType& t : all) {
    SCOPED_TRACE(dtype_name(t.dtype));
    const OnnxModel model =
        OnnxModel(13).input("x", {"n"}).node(OnnxNode("Cast", {"x"}, {"y"}).integer("to", t.onnx)).output("y");
    const bool wide = size_of(t.dtype) == 8;
    const double top = wide ? (t.low < 0 ? 0x1p63 : 0x1p64) : t.high;  // as a double shows it
    expect_edge(model, {f32({7}, {kNan, kInf, -kInf, 1e30, -1e30, 2.9, -0.9})}, {7}, {0, top, t.low, top, t.low, 2, 0});
  }
}

TEST(OnnxNumbers, NanGoesThroughExtremes) {
  const auto of = [](const char* op) { return binary(OnnxNode(op, {"a", "b"}, {"y"}), 1, {"n"}); };
  const test::Tensor a = f32({5}, {kNan, 1, kInf, -kInf, kNan}), b = f32({5}, {1, kNan, 2, 2, kNan});
  expect_edge(of("Max"), {a, b}, {5}, {kNan, kNan, kInf, 2, kNan});
  expect_edge(of("Min"), {a, b}, {5}, {kNan, kNan, 2, -kInf, kNan});
  const auto one = [](const char* op) { return test::one_node(OnnxNode(op, {"x"}, {"y"}), {"n"}, 18); };
  expect_edge(one("Relu"), {f32({4}, {kNan, kInf, -kInf, -0.0})}, {4}, {kNan, kInf, 0, 0});
  expect_edge(one("Sign"), {f32({4}, {kNan, kInf, -kInf, 0})}, {4}, {kNan, 1, -1, 0});
  expect_edge(one("Sigmoid"), {f32({4}, {kNan, kInf, -kInf, -1000})}, {4}, {kNan, 1, 0, 0});
  expect_edge(one("Tanh"), {f32({4}, {kNan, kInf, -kInf, 1000})}, {4}, {kNan, 1, -1, 1});
  expect_edge(one("Softplus"), {f32({4}, {kNan, kInf, -kInf, 1000})}, {4}, {kNan, kInf, 0, 1000});
  expect_edge(one("Erf"), {f32({3}, {kNan, kInf, -kInf})}, {3}, {kNan, 1, -1});
  expect_edge(one("Round"), {f32({6}, {0.5, 1.5, -2.5, kInf, kNan, -0.4})}, {6}, {0, 2, -2, kInf, kNan, 0});
  expect_edge(one("IsInf"), {f32({4}, {kNan, kInf, -kInf, 3e38})}, {4}, {0, 1, 1, 0});
  expect_edge(one("IsNaN"), {f32({2}, {kNan, kInf})}, {2}, {1, 0});
  expect_edge(one("Sqrt"), {f32({4}, {-1, kInf, 0, kNan})}, {4}, {kNan, kInf, 0, kNan});
  expect_edge(one("Log"), {f32({4}, {-1, kInf, 0, kNan})}, {4}, {kNan, kInf, -kInf, kNan});
  expect_edge(one("Exp"), {f32({5}, {100, kInf, -kInf, kNan, -200})}, {5}, {kInf, kInf, 0, kNan, 0});
  expect_edge(one("Reciprocal"), {f32({3}, {0, kInf, kNan})}, {3}, {kInf, 0, kNan});
}

TEST(OnnxNumbers, ClipWithCrossedBoundsGivesTheUpperOne) {
  OnnxModel model(13);
  model.input("x", {"n"}).initializer(floats("l", {}, {3})).initializer(floats("h", {}, {1}));
  model.node(OnnxNode("Clip", {"x", "l", "h"}, {"y"})).output("y");
  expect_edge(model, {f32({4}, {0, 2, 5, kNan})}, {4}, {1, 1, 1, kNan});
}

TEST(OnnxNumbers, SoftmaxOfInfinitiesAndOfNothing) {
  for (const int64_t opset : {11, 13}) {
    const Compiled softmax(test::one_node(OnnxNode("Softmax", {"x"}, {"y"}).integer("axis", 1), {"n", "m"}, opset));
    softmax.expect({f32({2, 2}, {-kInf, 0, 1000, 1000})}, {2, 2}, {0, 1, 0.5, 0.5});
    softmax.expect({f32({2, 2}, {kInf, 0, -kInf, -kInf})}, {2, 2}, {kNan, kNan, kNan, kNan});
    softmax.expect({f32({1, 1}, {-5})}, {1, 1}, {1});
    softmax.expect({f32({0, 3}, {})}, {0, 3}, {});
    softmax.expect({f32({3, 0}, {})}, {3, 0}, {});
  }
}

TEST(OnnxNumbers, PoolsOfInfinitiesAndLowestNumbers) {
  const auto pool = [](const char* op, int32_t type) {
    OnnxModel m(13);
    m.input("x", {"1", "1", "n"}, type);
    m.node(OnnxNode(op, {"x"}, {"y"}).integers("kernel_shape", {2}).integers("pads", {1, 1}).integers("strides", {2}));
    return m.output("y");
  };
  expect_edge(pool("MaxPool", 1), {f32({1, 1, 4}, {-kInf, -kInf, kNan, 1})}, {1, 1, 3}, {-kInf, kNan, 1});
  expect_edge(pool("MaxPool", 3), {numbers(DType::i8, {1, 1, 3}, {-128, -128, 127})}, {1, 1, 2}, {-128, 127});
  expect_edge(pool("MaxPool", 2), {numbers(DType::u8, {1, 1, 1}, {0})}, {1, 1, 1}, {0});
  expect_edge(pool("AveragePool", 1), {f32({1, 1, 4}, {kInf, -kInf, 3, 5})}, {1, 1, 3}, {kInf, -kInf, 5});
}

TEST(OnnxNumbers, ArgMaxTakesNanForTheGreatest) {
  const auto arg = [](const char* op, int64_t last) {
    return test::one_node(OnnxNode(op, {"x"}, {"y"}).integer("select_last_index", last).integer("keepdims", 0), {"n"},
                          13);
  };
  expect_edge(arg("ArgMax", 0), {f32({4}, {1, kNan, kInf, kNan})}, {}, {1});
  expect_edge(arg("ArgMax", 1), {f32({4}, {1, kNan, kInf, kNan})}, {}, {3});
  expect_edge(arg("ArgMin", 0), {f32({3}, {-kInf, -kInf, 0})}, {}, {0});
  expect_edge(arg("ArgMin", 1), {f32({3}, {-kInf, -kInf, 0})}, {}, {1});
}

}  // namespace
}  // namespace quartet
