// Ops whose results' dims only the run knows, through compiled code.
#include <gtest/gtest.h>

#include "unit/compiler/rig.h"
#include "unit/import/running.h"

namespace quartet {
namespace {

using reference::Tensor;
using test::f32;
using test::OnnxModel;
using test::OnnxNode;

Tensor i64(std::vector<int64_t> dims, std::vector<int64_t> values) {
  return {DType::i64, std::move(dims), std::move(values)};
}

// Compiled code, on one vEU and on three; its bits are the interpreter's.
Result<std::vector<Tensor>> run_model(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  static const auto engine = test::make_engine();
  static const auto pool =
      std::make_shared<runtime::WorkerPool>(runtime::WorkerPool::Options{.threads = 2, .jobs = nullptr});
  const auto graph = test::imported(model);
  if (!graph) return Status(Code::internal, "not imported");
  QUARTET_ASSIGN(const auto program, engine->compile({graph, {}, host_cpu()}));
  const auto wanted = reference::interpret(*graph, inputs);
  const auto got = test::run(*program->program, inputs), again = test::run(*program->program, inputs, {3, pool});
  EXPECT_EQ(got.ok(), wanted.ok()) << wanted.status().message();
  EXPECT_EQ(got.ok(), again.ok());
  if (!got.ok()) return got.status();
  for (size_t o = 0; o < got->size() && wanted.ok() && again.ok(); ++o) {
    EXPECT_EQ((*got)[o].dims, (*wanted)[o].dims) << "output " << o;
    EXPECT_EQ((*got)[o].elements, (*wanted)[o].elements) << "output " << o;
    EXPECT_EQ((*got)[o].elements, (*again)[o].elements) << "output " << o;
  }
  return *got;
}

void expect_compiled(const OnnxModel& model, const std::vector<Tensor>& inputs, const std::vector<int64_t>& dims,
                     const std::vector<double>& values) {
  const auto got = run_model(model, inputs);
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ((*got)[0].dims, dims);
  EXPECT_EQ((*got)[0].elements, f32(dims, values).elements);
}

std::string compiled_failure(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  const auto got = run_model(model, inputs);
  EXPECT_FALSE(got.ok());
  return got.ok() ? "" : got.status().message();
}

Tensor bools(std::vector<int64_t> dims, std::vector<int64_t> values) {
  return {DType::boolean, std::move(dims), std::move(values)};
}

// What NonZero of a [3, n] must be, by looking.
Tensor places(const Tensor& x) {
  std::vector<int64_t> rows, columns;
  for (size_t i = 0; i < x.elements.size(); ++i) {
    if (x.elements[i] == 0) continue;
    rows.push_back(static_cast<int64_t>(i) / x.dims[1]);
    columns.push_back(static_cast<int64_t>(i) % x.dims[1]);
  }
  Tensor result{DType::i64, {2, static_cast<int64_t>(rows.size())}, rows};
  result.elements.insert(result.elements.end(), columns.begin(), columns.end());
  return result;
}

TEST(OnnxRunDims, NonZeroOfAnySize) {
  OnnxModel model(13);
  model.input("x", {"3", "n"}, 7)
      .node(OnnxNode("NonZero", {"x"}, {"p"}))
      .node(OnnxNode("Add", {"p", "p"}, {"q"}))
      .output("p")
      .output("q");
  for (const int64_t n : {0, 1, 5, 64, 100, 5000})
    for (const int64_t period : {1, 2, 7, 1000000}) {
      Tensor x = Tensor::zeros(DType::i64, {3, n});
      for (size_t i = 0; i < x.elements.size(); ++i)
        x.elements[i] = (static_cast<int64_t>(i) * 31 + 5) % period == 0 ? static_cast<int64_t>(i) + 1 : 0;
      const auto got = run_model(model, {x});
      ASSERT_TRUE(got.ok()) << got.status().message();
      const Tensor want = places(x);
      EXPECT_EQ((*got)[0].dims, want.dims) << n << " " << period;
      EXPECT_EQ((*got)[0].elements, want.elements) << n << " " << period;
      EXPECT_EQ((*got)[1].dims, want.dims);
    }
}

TEST(OnnxRunDims, CompressGathersWhatIsChosen) {
  OnnxModel model(13);
  model.input("x", {"3", "2"})
      .input("c", {"m"}, 9)
      .node(OnnxNode("Compress", {"x", "c"}, {"y"}).integer("axis", 0))
      .node(OnnxNode("ReduceSum", {"y"}, {"s"}).integer("keepdims", 0))
      .output("y")
      .output("s");
  const Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  expect_compiled(model, {x, bools({3}, {1, 0, 1})}, {2, 2}, {1, 2, 5, 6});
  expect_compiled(model, {x, bools({2}, {0, 1})}, {1, 2}, {3, 4});
  expect_compiled(model, {x, bools({5}, {0, 0, 0, 1, 1})}, {0, 2}, {});
}

TEST(OnnxRunDims, RangesAndFillsOfComputedLengths) {
  OnnxModel model(13);
  model.input("n", {"1"}, 7)
      .input("x", {"4"})
      .node(OnnxNode("Add", {"n", "n"}, {"twice"}))
      .node(OnnxNode("ConstantOfShape", {"twice"}, {"zeros"}))
      .node(OnnxNode("Expand", {"zeros", "twice"}, {"wide"}))
      .node(OnnxNode("Tile", {"x", "twice"}, {"tiled"}))
      .node(OnnxNode("Concat", {"wide", "tiled"}, {"y"}).integer("axis", 0))
      .output("y");
  const Tensor x = f32({4}, {1, 2, 3, 4});
  expect_compiled(model, {i64({1}, {1}), x}, {10}, {0, 0, 1, 2, 3, 4, 1, 2, 3, 4});
  expect_compiled(model, {i64({1}, {0}), x}, {0}, {});
  EXPECT_NE(compiled_failure(model, {i64({1}, {-2}), x}).find("element 0 is no extent: -4"), std::string::npos);
}

TEST(OnnxRunDims, SlicesByComputedBounds) {
  OnnxModel model(13);
  model.initializer(test::ints("axes", {1}, {0}))
      .input("b", {"1"}, 7)
      .input("e", {"1"}, 7)
      .input("x", {"5", "2"})
      .node(OnnxNode("Neg", {"b"}, {"from"}))
      .node(OnnxNode("Slice", {"x", "from", "e", "axes"}, {"y"}))
      .output("y", {"unknown", "2"});
  const Tensor x = f32({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  expect_compiled(model, {i64({1}, {-1}), i64({1}, {3}), x}, {2, 2}, {2, 3, 4, 5});
  expect_compiled(model, {i64({1}, {2}), i64({1}, {100}), x}, {2, 2}, {6, 7, 8, 9});
  expect_compiled(model, {i64({1}, {-4}), i64({1}, {2}), x}, {0, 2}, {});
}

TEST(OnnxRunDims, DimsThatMustBeEqualAreHeldToIt) {
  OnnxModel model(13);
  model.input("x", {"4"}, 9)
      .input("y", {"4"}, 9)
      .input("v", {"4"})
      .node(OnnxNode("Compress", {"v", "x"}, {"a"}))
      .node(OnnxNode("Compress", {"v", "y"}, {"b"}))
      .node(OnnxNode("Add", {"a", "b"}, {"s"}))
      .output("s");
  const Tensor v = f32({4}, {1, 2, 4, 8});
  expect_compiled(model, {bools({4}, {1, 1, 0, 0}), bools({4}, {0, 0, 1, 1}), v}, {2}, {5, 10});
  EXPECT_NE(compiled_failure(model, {bools({4}, {1, 1, 0, 0}), bools({4}, {0, 0, 0, 1}), v}).find("do not go together"),
            std::string::npos);
}

TEST(OnnxRunDims, UniqueInOrderAndSorted) {
  for (const int64_t sorted : {0, 1}) {
    OnnxModel model(13);
    model.input("x", {"n"})
        .node(OnnxNode("Unique", {"x"}, {"y", "first", "back", "count"}).integer("sorted", sorted))
        .output("y")
        .output("first")
        .output("back")
        .output("count");
    const auto got = run_model(model, {f32({7}, {3, 1, 2, 1, 3, 3, 0})});
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ((*got)[1].elements, sorted ? (std::vector<int64_t>{6, 1, 2, 0}) : (std::vector<int64_t>{0, 1, 2, 6}));
    EXPECT_EQ((*got)[2].elements,
              sorted ? (std::vector<int64_t>{3, 1, 2, 1, 3, 3, 0}) : (std::vector<int64_t>{0, 1, 2, 1, 0, 0, 3}));
    EXPECT_EQ((*got)[3].elements, sorted ? (std::vector<int64_t>{1, 2, 1, 3}) : (std::vector<int64_t>{3, 2, 1, 1}));
  }
}

}  // namespace
}  // namespace quartet
