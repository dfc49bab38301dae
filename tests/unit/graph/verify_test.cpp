#include "graph/verify_built.h"
#include "graph_testing.h"

namespace quartet::graph {
namespace {

constexpr std::string_view kText = R"(graph(%x: f32[n, 4], %p: bool[]) {
  %c = constant f32[4] [1, 2, 3, 4]
  %y = add %x, %c
  %z = if %p then { %i = neg %y yield %i } else { yield %y }
  %s = reduce_sum %z {axes = [1]}
  return %s
})";

// What verify says of the graph after a change.
template <class Change>
std::string after(const Change& change) {
  Graph graph = *parsed(kText);
  EXPECT_TRUE(verify(graph).ok());
  change(graph);
  const Status status = verify(graph);
  EXPECT_FALSE(status.ok());
  return status.message();
}

Block& body(Graph& graph) { return graph.functions[0].body; }

TEST(Verify, Ids) {
  EXPECT_EQ(after([](Graph& g) { body(g).ops[1].operands[0] = 99; }), "op 1 (add): operand: no value 99");
  EXPECT_EQ(after([](Graph& g) { body(g).ops[1].operands[0] = -1; }), "op 1 (add): operand 0 is absent");
  EXPECT_EQ(after([](Graph& g) { std::swap(body(g).ops[0], body(g).ops[1]); }),
            "op 0 (add): operand: value 2 is used before it is defined");
  EXPECT_EQ(after([](Graph& g) { body(g).ops[1].results[0] = 0; }), "op 1 (add): value 0 is defined twice");
  EXPECT_EQ(after([](Graph& g) { g.functions[0].values.push_back(g.functions[0].values[0]); }),
            "value 7 is defined nowhere");
  EXPECT_EQ(after([](Graph& g) { body(g).results[0] = 4; }), "a block's result: value 4 is of a region that has ended");
}

TEST(Verify, TypesAndAttributes) {
  EXPECT_EQ(after([](Graph& g) { g.functions[0].values[3].type.dtype = DType::i32; }),
            "op 1 (add): result 0 is recorded as i32[n, 4], its type is f32[n, 4]");
  EXPECT_EQ(after([](Graph& g) { body(g).ops[3].attrs.clear(); }),
            "op 4 (reduce_sum): reduce_sum needs the attribute axes");
  EXPECT_EQ(after([](Graph& g) { body(g).ops[3].attrs[AttrKey::axes] = std::vector<int64_t>{1, 0}; }),
            "op 4 (reduce_sum): axes: 0 after 1; axes ascend without repeats");
  EXPECT_EQ(after([](Graph& g) { body(g).ops[3].attrs[AttrKey::axes] = int64_t{1}; }),
            "op 4 (reduce_sum): axes is integers, not an integer");
  EXPECT_EQ(after([](Graph& g) { body(g).ops[3].attrs[AttrKey::keepdims] = int64_t{0}; }),
            "op 4 (reduce_sum): attribute keepdims is written though it is the default");
  EXPECT_EQ(after([](Graph& g) { body(g).ops[1].code = static_cast<OpCode>(9999); }),
            "op 1 (invalid): op number 9999 is none");
  EXPECT_EQ(after([](Graph& g) { body(g).ops[0].constant = 7; }), "op 0 (constant): no constant of that number");
  EXPECT_EQ(after([](Graph& g) { body(g).ops[1].callee = 0; }),
            "op 1 (add): a constant or callee where none belongs, or none where one does");
}

// A builder has inferred what follows from operands; what blocks and functions say, and everything else, is looked at.
TEST(Verify, ABuildersTypesAreNotInferredAgain) {
  const auto built = [](const auto& change) {
    Graph graph = *parsed(kText);
    change(graph);
    return verify_built(graph);
  };
  EXPECT_TRUE(built([](Graph&) {}).ok());
  EXPECT_TRUE(built([](Graph& g) { body(g).ops[3].attrs.clear(); }).ok());
  EXPECT_FALSE(built([](Graph& g) { body(g).ops[2].regions.pop_back(); }).ok());
  EXPECT_FALSE(built([](Graph& g) { g.functions[0].values[5].type.dtype = DType::i32; }).ok());
  EXPECT_FALSE(built([](Graph& g) { body(g).ops[0].constant = 7; }).ok());
  EXPECT_FALSE(built([](Graph& g) { std::swap(body(g).ops[0], body(g).ops[1]); }).ok());
}

TEST(Verify, RegionsFunctionsAndInterface) {
  EXPECT_EQ(after([](Graph& g) { body(g).ops[2].regions.pop_back(); }), "op 2 (if): 1 regions, wanted 2");
  EXPECT_EQ(after([](Graph& g) { body(g).ops[2].regions[0].ops[0].operands[0] = 6; }),
            "op 3 (neg): operand: value 6 is used before it is defined");
  EXPECT_EQ(after([](Graph& g) { g.functions[0].output_names.clear(); }), "1 outputs and 0 names for them");
  EXPECT_EQ(after([](Graph& g) { g.functions[0].values[1].name = "x"; }), "input 'x' has no name of its own");
  EXPECT_EQ(after([](Graph& g) { g.functions.clear(); }), "no main function");
  EXPECT_EQ(after([](Graph& g) { g.functions.push_back(g.functions[0]); }), "function 'main' has no name of its own");
  EXPECT_EQ(after([](Graph& g) { g.constants[0].bytes = 15; }), "constant 0 is not the bytes of a static type");
}

TEST(Verify, Symbols) {
  EXPECT_EQ(after([](Graph& g) { g.symbols[0].kind = DimSymbol::Kind::run; }),
            "the run-known dim n is used where it is not known");
  EXPECT_EQ(after([](Graph& g) { g.symbols.clear(); }), "value 0: f32, dim 0: 'symbol0' is no extent");
  EXPECT_EQ(after([](Graph& g) { g.symbols[0].upper = IntExpr::symbol(0); }),
            "dim n: its bound is no expression over earlier dims");
}

TEST(Verify, RunKnownDimsLiveFromTheirBirth) {
  const std::string loop =
      "%a, %b = loop _, %p, %x {trip = [t]} do (%i: i64[], %c: bool[], %v: f32[2]) { yield %c, %v, %v }";
  EXPECT_TRUE(parsed("dim t run\ngraph(%x: f32[2], %p: bool[]) { " + loop + " %r = neg %b return %r }"));
  expect_parse_error("dim t run\ngraph(%x: f32[2], %p: bool[]) { %d = dims {shape = [t]} " + loop + " return %b }",
                     "op 0 (dims): the run-known dim t is used where it is not known");
  expect_parse_error(
      "dim t run\ngraph(%x: f32[2], %p: bool[]) { %r = if %p then { " + loop +
          " %s = reduce_sum %b {axes = [0]} yield %s } else { yield %x } %d = dims {shape = [t]} return %d }",
      "the run-known dim t is used where it is not known");
}

TEST(Verify, DimsThatLoopsIfsAndNumbersGiveBirthTo) {
  const std::string head = "dim s run\ndim t run\ngraph(%x: f32[2], %p: bool[], %n: i64[], %y: f32[n]) { ";
  const auto loop = [](const char* attrs, const char* yielded) {
    return std::string("%a, %b = loop %n, _, %x, %x {") + attrs +
           "} do (%i: i64[], %c: bool[], %v: f32[s], %w: f32[s]) { %l = concat %v, %x {axis = 0} yield %c, " + yielded +
           " } ";
  };
  const std::string good = head + loop("births = [s]", "%l, %l") + "%r = add %a, %b return %r }";
  const auto graph = parsed(good);
  ASSERT_TRUE(graph);
  EXPECT_EQ(print(*graph), print(*parsed(print(*graph))));
  const auto bytes = serialize(*graph);
  const auto again = deserialize(bytes);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(print(**again), print(*graph));
  expect_parse_error(head + loop("births = [s]", "%l, %w") + "return %a }",
                     "carried value 1 yielded is f32[s], wanted f32[s + 2]");
  expect_parse_error(head + loop("births = [n]", "%l, %l") + "return %a }", "carried value 0 at first is f32[2]");
  expect_parse_error(head + loop("births = [s, s]", "%l, %l") + "return %a }", "s is born twice");
  expect_parse_error(head + "%d = dims {shape = [s]} " + loop("births = [s]", "%l, %l") + "return %d }",
                     "s is used where it is not known");
  expect_parse_error(head +
                         "%a, %b = loop %n, _, %x {births = [s], trip = [t]} do (%i: i64[], %c: bool[], %v: f32[s]) { "
                         "%l = concat %v, %x {axis = 0} yield %c, %l, %v } return %a }",
                     "a stacked value's dim s changes from iteration to iteration");
  const auto sides = [](const char* attrs) {
    return std::string("%a, %b = if %p {") + attrs + "} then { yield %x, %x } else { yield %y, %y } ";
  };
  EXPECT_TRUE(parsed(head + sides("births = [s, s], places = [0, 0, 1, 0]") + "%r = add %a, %b return %r }"));
  EXPECT_TRUE(parsed(head + sides("births = [s, t], places = [0, 0, 1, 0]") + "return %a, %b }"));
  expect_parse_error(head + sides("births = [s], places = [0, 0]") + "return %a }",
                     "result 1 of else is f32[n], wanted f32[2]");
  expect_parse_error(head + sides("births = [s], places = [0, 1]") + "return %a }", "places do not say where");
  expect_parse_error(head + sides("births = [s]") + "return %a }", "places do not say where");
  expect_parse_error(head + sides("births = [2, s], places = [0, 0, 1, 0]") + "return %a }", "2 is no run-known dim");
  EXPECT_TRUE(parsed(
      head + "bind %n {births = [s], reason = \"r\"} %r = iota {shape = [s], axis = 0, dtype = i64} return %r }"));
  expect_parse_error(head + "bind %p {births = [s], reason = \"r\"} return %x }", "the number is bool[], wanted i64[]");
  expect_parse_error(head + "bind %n {births = [s, t], reason = \"r\"} return %x }", "2 births, wanted 1");
}

TEST(Verify, RegionsNestToALimit) {
  std::string text = "graph(%p: bool[]) { ";
  std::string end;
  for (int i = 0; i < 70; ++i) {
    text += "%a" + std::to_string(i) + " = if %p then { ";
    end = "yield %p } else { yield %p } " + end;
  }
  expect_parse_error(text + end + "return %a0 }", "nested deeper than 24");
}

}  // namespace
}  // namespace quartet::graph
