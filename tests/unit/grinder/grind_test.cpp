#include "grinder/grind.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "grinder/place.h"

namespace quartet::grinder {
namespace {

using graph::OpCode;

std::shared_ptr<const graph::Graph> parsed(const std::string& text) {
  auto graph = graph::parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *graph : nullptr;
}

Ground ground(const std::string& text) {
  const auto graph = parsed(text);
  if (!graph) return {};
  auto made = grind(graph);
  EXPECT_TRUE(made.ok()) << made.status().message();
  if (!made.ok()) return {};
  EXPECT_TRUE(graph::verify(*made->graph).ok()) << graph::verify(*made->graph).message();
  return *made;
}

int64_t count(const graph::Block& block, OpCode code, bool inside) {
  int64_t found = 0;
  for (const graph::Op& op : block.ops) {
    found += op.code == code ? 1 : 0;
    if (inside)
      for (const graph::Block& region : op.regions) found += count(region, code, true);
  }
  return found;
}
int64_t count(const Ground& ground, OpCode code, bool inside = true) {
  return count(ground.graph->main().body, code, inside);
}

TEST(Grind, ACallBecomesTheFunctionsBody) {
  const Ground made = ground(R"(
      function @twice(%a: f32[4]) -> (f32[4]) { %b = add %a, %a
        return %b }
      graph(%x: f32[4]) { %y = call @twice %x
        %z = call @twice %y
        return %z })");
  EXPECT_TRUE(made.changed);
  EXPECT_EQ(count(made, OpCode::call), 0);
  EXPECT_EQ(count(made, OpCode::add), 2);
}

TEST(Grind, ARecursiveFunctionStays) {
  const Ground made = ground(R"(
      function @f(%c: bool, %a: f32[4]) -> (f32[4]) {
        %r = if %c : f32[4] then {
          %no = logical_not %c
          %b = call @f %no, %a
          yield %b
        } else { yield %a }
        return %r }
      graph(%c: bool, %x: f32[4]) { %y = call @f %c, %x
        return %y })");
  EXPECT_EQ(count(made, OpCode::call), 1);
  const auto placed = place(made.graph);
  ASSERT_FALSE(placed.ok());
  EXPECT_EQ(placed.status().code(), Code::unsupported);
  EXPECT_NE(placed.status().message().find("recursive function 'f'"), std::string::npos) << placed.status().message();
}

std::string loop_of(const std::string& trips, const std::string& type, const std::string& body) {
  return "graph(%x: " + type + ", %w: " + type + ") {\n %n = constant i64[] [" + trips + "]\n" +
         " %y = loop %n, _, %x : " + type + " do (%i: i64, %go: bool, %s: " + type + ") {\n" + body +
         " yield %go, %t }\n return %y }";
}

TEST(Grind, ShortLoopsAreUnrolled) {
  const std::string body = " %t = mul %s, %w\n";
  for (const char* trips : {"0", "1", "8"}) {
    const Ground made = ground(loop_of(trips, "f32[4]", body));
    EXPECT_EQ(count(made, OpCode::loop), 0) << trips;
    EXPECT_EQ(count(made, OpCode::mul), std::stoll(trips));
  }
  EXPECT_EQ(count(ground(loop_of("9", "f32[4]", body)), OpCode::loop), 1);
}

TEST(Grind, WhatAnIterationDoesNotChangeIsComputedOnce) {
  const Ground made = ground(loop_of("100", "f32[4, 4]", " %v = matmul %w, %w\n %t = matmul %s, %v\n"));
  EXPECT_TRUE(made.changed);
  EXPECT_EQ(count(made, OpCode::matmul, false), 1);
  EXPECT_EQ(count(made, OpCode::matmul), 2);
}

TEST(Grind, AViewAloneStaysInside) {
  const Ground made = ground(loop_of("100", "f32[4, 4]", " %v = transpose %w {perm = [1, 0]}\n %t = add %s, %v\n"));
  EXPECT_FALSE(made.changed);
}

TEST(Grind, ABodysConditionIsTrue) {
  const Ground made = ground(R"(graph(%n: i64, %x: bool) {
      %y = loop %n, _, %x : bool do (%i: i64, %go: bool, %s: bool) { %t = bit_xor %s, %go
        yield %go, %t }
      return %y })");
  const graph::Op& loop = *std::ranges::find(made.graph->main().body.ops, OpCode::loop, &graph::Op::code);
  const graph::ValueId condition = loop.regions[0].arguments[1];
  for (const graph::Op& op : loop.regions[0].ops)
    EXPECT_EQ(std::ranges::count(op.operands, condition), 0) << graph::op_info(op.code).name;
  EXPECT_NE(loop.regions[0].results[0], condition);
}

std::string if_of(const std::string& type, const std::string& side) {
  return "graph(%c: bool, %x: " + type + ") {\n %r = if %c : " + type + " then {\n" + side +
         " yield %y } else { yield %x }\n return %r }";
}

TEST(Grind, CheapSidesAreSelected) {
  const Ground small = ground(if_of("f32[4]", " %y = exp %x\n"));
  EXPECT_EQ(count(small, OpCode::if_), 0);
  EXPECT_EQ(count(small, OpCode::select), 1);
  EXPECT_EQ(count(ground(if_of("f32[4000]", " %y = exp %x\n")), OpCode::if_), 1);
  EXPECT_EQ(count(ground(if_of("f32[4, 4]", " %y = matmul %x, %x\n")), OpCode::if_), 1);
}

// ---- Place ----

TEST(Place, AGraphWithoutControlIsOneSegment) {
  const auto placed = place(parsed("graph(%x: f32[4]) { %y = exp %x\n return %y }"));
  ASSERT_TRUE(placed.ok());
  EXPECT_TRUE(placed->is_straight());
}

TEST(Place, SegmentsAreFew) {
  // Two independent ifs stand after one segment; what does not need them goes before.
  const auto placed = place(parsed(R"(graph(%c: bool, %d: bool, %x: f32[4, 4]) {
      %a = exp %x
      %p = if %c : f32[4, 4] then { %m = matmul %a, %a
        yield %m } else { yield %x }
      %b = sin %x
      %q = if %d : f32[4, 4] then { %n = matmul %b, %b
        yield %n } else { yield %x }
      %s = add %p, %q
      return %s })"));
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  ASSERT_EQ(placed->steps.size(), 4u);
  EXPECT_EQ(placed->segments[static_cast<size_t>(placed->steps[0].segment)].graph->main().body.ops.size(), 2u);
  EXPECT_TRUE(placed->steps[1].control && placed->steps[2].control);
  EXPECT_EQ(placed->segments.size(), 4u);
}

TEST(Place, ViewsAreReadThroughFromEverySegment) {
  const auto placed = place(parsed(R"(graph(%n: i64, %x: f32[2, 8]) {
      %a = exp %x
      %v = reshape %a {shape = [4, 4]}
      %w = sin %v
      %y = loop %n, _, %w : f32[4, 4] do (%i: i64, %go: bool, %s: f32[4, 4]) {
        %true = constant bool[] [true]
        %t = matmul %s, %v
        yield %true, %t }
      return %y })"));
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  ASSERT_EQ(placed->segments.size(), 2u);
  // The first gives exp and sin, not the view; the loop's reads exp through a view of its own.
  EXPECT_EQ(placed->segments[0].outputs.size(), 2u);
  EXPECT_EQ(placed->segments[1].graph->main().body.ops.size(), 2u);
  const Segment& body = placed->segments[1];
  EXPECT_TRUE(std::ranges::count(body.inputs, placed->graph->main().body.ops[0].results[0]));
}

TEST(Place, RowsByTheIterationAreWindows) {
  const auto make = [](const std::string& trips, const std::string& index) {
    return place(parsed("graph(%x: f32[6, 4], %h: f32[4]) {\n %n = constant i64[] [" + trips + R"(]
      %five = constant i64[] [5]
      %true = constant bool[] [true]
      %y = loop %n, _, %h : f32[4] do (%i: i64, %go: bool, %s: f32[4]) {
        %back = sub %five, %i
        %row = gather %x, )" +
                        index + R"( {axis = 0}
        %t = add %s, %row
        yield %true, %t }
      return %y })"));
  };
  const auto forward = make("6", "%i"), backward = make("6", "%back"), beyond = make("7", "%i");
  ASSERT_TRUE(forward.ok() && backward.ok() && beyond.ok());
  ASSERT_EQ(forward->windows.size(), 1u);
  EXPECT_EQ(forward->windows[0].step, 1);
  ASSERT_EQ(backward->windows.size(), 1u);
  EXPECT_EQ(backward->windows[0].step, -1);
  EXPECT_TRUE(backward->windows[0].first.is(5));
  EXPECT_TRUE(beyond->windows.empty()) << "the last row is not certainly inside";
}

}  // namespace
}  // namespace quartet::grinder
