// Ifs, loops, scans and recurrent cells at the corners: no trips, values from around, names used twice, empty
// sequences.
#include "onnx/edges.h"

namespace quartet {
namespace {

using test::Compiled;
using test::Dims;
using test::expect_edge;
using test::f32;
using test::floats;
using test::i64;
using test::ints;
using test::numbers;
using test::OnnxModel;
using test::OnnxNode;
using test::OnnxTensor;
using test::ramp;

OnnxTensor flag(const std::string& name, bool value) { return {name, 9, {}, std::string(1, value ? '\1' : '\0')}; }

// ---- If ----

OnnxModel chosen(const OnnxModel& yes, const OnnxModel& no, const std::vector<std::string>& condition = {}) {
  OnnxModel model(17);
  model.input("c", condition, 9).input("x", {"3"});
  OnnxNode node("If", {"c"}, {"y"});
  node.graph("then_branch", yes.graph()).graph("else_branch", no.graph());
  return model.node(node).output("y");
}

TEST(OnnxControl, BranchesGiveOuterValuesInitializersAndNamesUsedTwice) {
  OnnxModel negated(17), outer(17), inner(17);
  negated.node(OnnxNode("Neg", {"x"}, {"r"})).output("r");
  outer.output("x");
  inner.initializer(floats("r", {3}, {7, 8, 9})).output("r");
  const auto both = [](const OnnxModel& model, const Dims& dims, const std::vector<double>& yes,
                       const std::vector<double>& no) {
    const Compiled compiled(model);
    compiled.expect({numbers(DType::boolean, dims, {1}), ramp({3}, 1)}, {3}, yes);
    compiled.expect({numbers(DType::boolean, dims, {0}), ramp({3}, 1)}, {3}, no);
  };
  both(chosen(outer, negated), {}, {1, 2, 3}, {-1, -2, -3});
  both(chosen(inner, negated), {}, {7, 8, 9}, {-1, -2, -3});
  both(chosen(inner, outer, {"1"}), {1}, {7, 8, 9}, {1, 2, 3});
}

// ---- Loop ----

struct LoopSpec {
  std::string trip = "n", condition;
  std::vector<OnnxTensor> constants = {ints("n", {}, {3})};
};

// A body with the carried values and results named; `nodes` compute them. "k2" is the condition, from "k" unless given.
OnnxModel looped(const LoopSpec& spec, const std::vector<std::string>& carried, const std::vector<OnnxNode>& nodes,
                 const std::vector<std::string>& results) {
  OnnxModel body(17);
  body.input("i", {}, 7).input("k", {}, 9);
  for (size_t i = 0; i < carried.size(); ++i) body.input("s" + std::to_string(i), {"3"});
  for (const OnnxNode& node : nodes) body.node(node);
  for (const std::string& result : results) body.output(result);
  std::vector<std::string> inputs = {spec.trip, spec.condition}, outputs;
  inputs.insert(inputs.end(), carried.begin(), carried.end());
  for (size_t i = 0; i + 1 < results.size(); ++i) outputs.push_back("y" + std::to_string(i));
  OnnxModel model(17);
  model.input("x", {"3"}).initializer(floats("zero", {3}, {0, 0, 0}));
  for (const OnnxTensor& constant : spec.constants) model.initializer(constant);
  model.node(OnnxNode("Loop", inputs, outputs).graph("body", body.graph()));
  for (const std::string& output : outputs) model.output(output);
  return model;
}
OnnxNode same_condition() { return OnnxNode("Identity", {"k"}, {"k2"}); }

TEST(OnnxControl, TripCountsOfNothing) {
  const std::vector<OnnxNode> nodes = {same_condition(), OnnxNode("Add", {"s0", "x"}, {"a"})};
  for (const int64_t trips : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    LoopSpec spec;
    spec.constants = {ints("n", {}, {trips})};
    const Compiled compiled(looped(spec, {"zero"}, nodes, {"k2", "a", "s0"}));
    compiled.expect({ramp({3}, 1)}, {3}, {0, 0, 0}, 0);
    compiled.expect({ramp({3}, 1)}, {0, 3}, {}, 1);
  }
  LoopSpec never;
  never.condition = "c";
  never.constants = {ints("n", {}, {5}), flag("c", false)};
  const Compiled compiled(looped(never, {"x"}, nodes, {"k2", "a", "s0"}));
  compiled.expect({ramp({3}, 1)}, {3}, {1, 2, 3}, 0);
  compiled.expect({ramp({3}, 1)}, {0, 3}, {}, 1);
}

TEST(OnnxControl, ALoopOfManyTripsEndsByItsCondition) {
  LoopSpec spec;
  spec.condition = "c";
  spec.constants = {ints("n", {}, {INT64_MAX}), flag("c", true), ints("limit", {}, {4})};
  const Compiled compiled(looped(
      spec, {"zero"}, {OnnxNode("Less", {"i", "limit"}, {"k2"}), OnnxNode("Add", {"s0", "x"}, {"a"})}, {"k2", "a"}));
  compiled.expect({ramp({3}, 1)}, {3}, {5, 10, 15});
  // Without a condition given, the body's is ignored.
  LoopSpec counted;
  counted.constants = {ints("n", {}, {6}), ints("limit", {}, {1})};
  expect_edge(looped(counted, {"zero"}, {OnnxNode("Less", {"i", "limit"}, {"k2"}), OnnxNode("Add", {"s0", "x"}, {"a"})},
                     {"k2", "a"}),
              {ramp({3}, 1)}, {3}, {6, 12, 18});
}

TEST(OnnxControl, CarriedValuesThatSwapRepeatOrComeFromAround) {
  const Compiled swapped(looped({}, {"x", "zero"}, {same_condition()}, {"k2", "s1", "s0"}));
  swapped.expect({ramp({3}, 1)}, {3}, {0, 0, 0}, 0);
  swapped.expect({ramp({3}, 1)}, {3}, {1, 2, 3}, 1);
  const Compiled outer(looped({}, {"zero"}, {same_condition()}, {"k2", "x", "x"}));
  outer.expect({ramp({3}, 1)}, {3}, {1, 2, 3}, 0);
  outer.expect({ramp({3}, 1)}, {3, 3}, {1, 2, 3, 1, 2, 3, 1, 2, 3}, 1);
  const Compiled twice(
      looped({}, {"x", "x"}, {same_condition(), OnnxNode("Add", {"s0", "s1"}, {"a"})}, {"k2", "a", "a", "s1"}));
  twice.expect({ramp({3}, 1)}, {3}, {8, 16, 24}, 0);
  twice.expect({ramp({3}, 1)}, {3}, {8, 16, 24}, 1);
  twice.expect({ramp({3}, 1)}, {3, 3}, {1, 2, 3, 2, 4, 6, 4, 8, 12}, 2);
}

TEST(OnnxControl, ATripCountThatDependsOnTheLoopAround) {
  OnnxModel inner(17);
  inner.input("j", {}, 7).input("kk", {}, 9).input("b", {"3"});
  inner.node(OnnxNode("Identity", {"kk"}, {"kk2"})).node(OnnxNode("Add", {"b", "x"}, {"b2"}));
  inner.output("kk2").output("b2");
  OnnxNode node("Loop", {"i", "", "s0"}, {"a"});
  node.graph("body", inner.graph());
  LoopSpec spec;
  spec.constants = {ints("n", {}, {5})};
  expect_edge(looped(spec, {"zero"}, {same_condition(), node}, {"k2", "a"}), {ramp({3}, 1)}, {3}, {10, 20, 30});
}

// ---- Scan ----

TEST(OnnxControl, ScansOfAnyLengthAndBothWays) {
  OnnxModel body(17);
  body.input("h", {"2"}).input("row", {"2"});
  body.node(OnnxNode("Add", {"h", "row"}, {"h2"})).output("h2").output("h");
  const auto scan = [&](int64_t in, int64_t out, const char* length) {
    OnnxModel model(17);
    model.input("rows", {length, "2"}).initializer(floats("first", {2}, {10, 20}));
    OnnxNode node("Scan", {"first", "rows"}, {"last", "all"});
    node.graph("body", body.graph()).integer("num_scan_inputs", 1);
    node.integers("scan_input_directions", {in}).integers("scan_output_directions", {out});
    return model.node(node).output("last").output("all");
  };
  const Compiled forward(scan(0, 0, "t")), backward(scan(1, 1, "t"));
  for (const Compiled* compiled : {&forward, &backward}) {
    compiled->expect({ramp({0, 2})}, {2}, {10, 20}, 0);
    compiled->expect({ramp({0, 2})}, {0, 2}, {}, 1);
    compiled->expect({ramp({1, 2}, 1)}, {1, 2}, {10, 20}, 1);
  }
  forward.expect({ramp({3, 2}, 1)}, {3, 2}, {10, 20, 11, 22, 14, 26}, 1);
  backward.expect({ramp({3, 2}, 1)}, {3, 2}, {18, 30, 15, 26, 10, 20}, 1);
  const Compiled none(scan(0, 0, "0"));
  none.expect({ramp({0, 2})}, {2}, {10, 20}, 0);
  none.expect({ramp({0, 2})}, {0, 2}, {}, 1);
}

// ---- Recurrent cells ----

// One unit, all weights 1: h' = relu(x + h).
TEST(OnnxControl, RecurrentCellsOfNoStepsAndEmptyBatches) {
  OnnxModel model(14);
  model.input("x", {"t", "b", "1"}).input("h", {"1", "b", "1"}).initializer(floats("w", {1, 1, 1}, {1}));
  model.initializer(floats("r", {1, 1, 1}, {1}));
  OnnxNode node("RNN", {"x", "w", "r", "", "", "h"}, {"y", "last"});
  node.integer("hidden_size", 1).texts("activations", {"Relu"});
  model.node(node).output("y").output("last");
  const Compiled compiled(model);
  compiled.expect({ramp({0, 2, 1}), f32({1, 2, 1}, {5, 6})}, {0, 1, 2, 1}, {}, 0);
  compiled.expect({ramp({0, 2, 1}), f32({1, 2, 1}, {5, 6})}, {1, 2, 1}, {5, 6}, 1);
  compiled.expect({ramp({2, 0, 1}), f32({1, 0, 1}, {})}, {2, 1, 0, 1}, {}, 0);
  compiled.expect({ramp({3, 1, 1}, 1), f32({1, 1, 1}, {0})}, {3, 1, 1, 1}, {1, 3, 6}, 0);
  EXPECT_FALSE(compiled.failure({ramp({3, 2, 1}), f32({1, 1, 1}, {0})}).empty());
}

TEST(OnnxControl, SequencesEndWhereTheirLengthsSay) {
  for (const char* direction : {"forward", "reverse"}) {
    OnnxModel model(14);
    model.input("x", {"t", "b", "1"}).input("l", {"b"}, 6).initializer(floats("w", {1, 1, 1}, {1}));
    model.initializer(floats("r", {1, 1, 1}, {1})).initializer(floats("h", {1, 3, 1}, {100, 100, 100}));
    OnnxNode node("RNN", {"x", "w", "r", "", "l", "h"}, {"y", "last"});
    node.integer("hidden_size", 1).texts("activations", {"Relu"}).text("direction", direction);
    model.node(node).output("y").output("last");
    const Compiled compiled(model);
    const std::vector<test::Tensor> inputs = {f32({2, 3, 1}, {1, 2, 3, 10, 20, 30}),
                                              numbers(DType::i32, {3}, {2, 1, 0})};
    const bool forward = direction[0] == 'f';
    compiled.expect(
        inputs, {2, 1, 3, 1},
        forward ? std::vector<double>{101, 102, 0, 111, 0, 0} : std::vector<double>{111, 102, 0, 110, 0, 0});
    compiled.expect(inputs, {1, 3, 1}, {111, 102, 100}, 1);
  }
}

TEST(OnnxControl, CellsOfAllKindsOverManySizes) {
  const std::vector<std::pair<const char*, int64_t>> kinds = {{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}};
  for (const auto& [op, gates] : kinds)
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      SCOPED_TRACE(std::string(op) + " " + direction);
      const int64_t directions = direction[0] == 'b' ? 2 : 1, hidden = 3;
      const auto weights = [](const char* name, Dims dims) {
        std::vector<float> values(static_cast<size_t>(dims[0] * dims[1] * dims[2]));
        for (size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(i * 7 % 11) - 0.5f;
        return floats(name, std::move(dims), values);
      };
      OnnxModel model(14);
      model.input("x", {"t", "b", "2"}).initializer(weights("w", {directions, gates * hidden, 2}));
      model.initializer(weights("r", {directions, gates * hidden, hidden}));
      OnnxNode node(op, {"x", "w", "r"}, {"y", "h"});
      node.integer("hidden_size", hidden).text("direction", direction).number("clip", 0.7f);
      model.node(node).output("y").output("h");
      const Compiled compiled(model);
      for (const int64_t t : {0, 1, 2, 17})
        for (const int64_t b : {0, 1, 3}) compiled.expect_as_interpreted({ramp({t, b, 2}, -1, 0.05)});
    }
}

}  // namespace
}  // namespace quartet
