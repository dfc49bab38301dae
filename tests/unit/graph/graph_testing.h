// Shared by the tests of graphs.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "graph/graph.h"

namespace quartet::graph {

inline std::shared_ptr<const Graph> parsed(std::string_view text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph ? *graph : nullptr;
}

inline void expect_parse_error(std::string_view text, std::string_view words) {
  const auto graph = parse(text);
  ASSERT_FALSE(graph.ok()) << "parsed: " << print(**graph);
  EXPECT_NE(graph.status().message().find(words), std::string::npos) << graph.status().message();
}

// A graph with dims of every kind, constants, regions, a recursive function and odd names.
inline constexpr std::string_view kRichText = R"(
dim batch
dim seq in [1, 512] hint 128
dim steps in [0, _] run

function @twice(%a: f32[batch, 4], %n: i64[]) -> (f32[batch, 4]) {
  %one = constant i64[] [1]
  %zero = constant i64[] [0]
  %more = greater %n, %zero
  %r = if %more then {
    %m = sub %n, %one
    %b = add %a, %a as "double it"
    %c = call @twice %b, %m
    yield %c
  } else {
    yield %a
  }
  return %r
}

graph @main(%x: f32[batch, 64], %"w: 0": f32[4, 64], %tokens: i64[batch, seq], %go: bool[]) -> (f32[batch, 4], f32[steps, batch, 4], f32[batch*seq]) {
  %y = matmul %x, %"w: 0" {transpose_b = 1} : f32[batch, 4] as "fc\t1"
  %bias = constant f32[4] [1, -0.5, inf, bits(0x7fc00001)]
  %big = constant f32[4, 64] all 0.25
  %z = add %y, %bias
  %three = constant i64[] [3]
  %t = call @twice %z, %three : f32[batch, 4]
  %limit = constant i64[] [10]
  %last, %all = loop %limit, %go, %t {trip = [steps]} : f32[batch, 4], f32[steps, batch, 4] do (%i: i64[], %c: bool[], %v: f32[batch, 4]) {
    %w = relu %v
    %no = logical_not %c
    yield %no, %w, %w
  }
  %f = cast %tokens {to = f32}
  %flat = reshape %f {shape = [batch*seq]}
  return %last as "{\"json\": 1}", %all, %flat as flat
}
)";

}  // namespace quartet::graph
