#include "simplify/simplify.h"

#include <gtest/gtest.h>

namespace quartet::simplify {
namespace {

std::shared_ptr<const graph::Graph> parsed(std::string_view text) {
  auto graph = graph::parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph ? *graph : nullptr;
}

TEST(Simplify, KeepsTheInterface) {
  const auto graph = parsed(R"(
    dim unused
    graph(%x: f32[n], %unread: i32[m, 2]) {
      %i = identity %x as pass
      %j = identity %i
      return %i as first, %j as second, %unread as third
    })");
  const auto simple = simplify(graph);
  ASSERT_TRUE(simple.ok()) << simple.status().message();
  EXPECT_EQ((*simple)->symbols.size(), graph->symbols.size());
  EXPECT_EQ((*simple)->main().output_names, graph->main().output_names);
  EXPECT_EQ((*simple)->main().body.results, (std::vector<graph::ValueId>{0, 0, 1}));
  EXPECT_EQ((*simple)->main().values.size(), 2u);
}

TEST(Simplify, LeavesNoComposite) {
  std::string body;
  std::string results;
  int n = 0;
  for (const graph::OpInfo& info : graph::all_ops()) {
    if (info.op_class != graph::OpClass::composite) continue;
    std::string attrs;
    if (info.attr(graph::AttrKey::axes)) attrs = " {axes = [0]}";
    if (info.attr(graph::AttrKey::axis)) attrs = " {axis = 1}";
    const std::string name = "%v" + std::to_string(n++);
    body += name + " = " + info.name + " %x" + (info.min_operands == 2 ? ", %x" : "") + attrs + "\n";
    results += (results.empty() ? "" : ", ") + name;
  }
  ASSERT_GT(n, 12);
  for (const char* type : {"f32", "f64", "f16", "bf16"}) {
    const auto simple =
        simplify(parsed("graph(%x: " + std::string(type) + "[n, 3]) {\n" + body + " return " + results + "}"));
    ASSERT_TRUE(simple.ok()) << simple.status().message();
    for (const graph::Op& op : (*simple)->main().body.ops)
      EXPECT_NE(graph::op_info(op.code).op_class, graph::OpClass::composite) << graph::op_info(op.code).name;
  }
}

TEST(Simplify, FoldsUpToTheLimit) {
  const auto graph = parsed("graph() { %k = constant i32[1000] all 3 %r = add %k, %k return %r }");
  Options options;
  EXPECT_EQ((*simplify(graph, options))->main().body.ops.size(), 1u);
  options.max_fold_bytes = 3999;
  EXPECT_EQ((*simplify(graph, options))->main().body.ops.back().code, graph::OpCode::add);
}

TEST(Simplify, AnUnsignedNumberIsItsMagnitude) {
  const auto simple = simplify(parsed("graph(%x: u8[n]) { %m = neg %x %r = abs %m return %r }"));
  ASSERT_TRUE(simple.ok()) << simple.status().message();
  ASSERT_EQ((*simple)->main().body.ops.size(), 1u);
  EXPECT_EQ((*simple)->main().body.ops[0].code, graph::OpCode::neg);
}

TEST(Simplify, OneElementHasNoLayout) {
  const auto simple =
      simplify(parsed("graph(%x: f32[1, 1, 1, 1]) { %t = transpose %x {perm = [0, 3, 1, 2]} %r = neg %t return %r }"));
  ASSERT_TRUE(simple.ok()) << simple.status().message();
}

TEST(Simplify, DenormalsAreLeftToAProgramThatFlushesThem) {
  const auto graph =
      parsed("graph() { %a = constant f32[] [1e-30] %b = constant f32[] [1e-10] %r = mul %a, %b return %r }");
  Options options;
  EXPECT_EQ((*simplify(graph, options))->main().body.ops.size(), 1u);
  options.flush_denormals = true;
  EXPECT_EQ((*simplify(graph, options))->main().body.ops.size(), 3u);
}

}  // namespace
}  // namespace quartet::simplify
