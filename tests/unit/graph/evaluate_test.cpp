#include "graph/evaluate.h"

#include <cfenv>

#include "graph/constant.h"
#include "graph/text_numbers.h"
#include "graph_testing.h"

namespace quartet::graph {
namespace {

// The elements of the last op of a graph of constants, evaluated op by op; "unknown" if one cannot be.
std::string value_of(const std::string& ops, size_t max_bytes = 1 << 20) {
  const auto graph = parsed("graph() { " + ops + " return %r }");
  if (!graph) return "";
  const Function& main = graph->main();
  std::map<ValueId, Constant> known;
  for (const Op& op : main.body.ops) {
    if (op.code == OpCode::constant) {
      known[op.results[0]] = graph->constants[static_cast<size_t>(op.constant)];
      continue;
    }
    std::vector<const Constant*> operands;
    for (const ValueId id : op.operands) operands.push_back(&known.at(id));
    std::vector<TensorType> types;
    for (const ValueId id : op.results) types.push_back(main.values[static_cast<size_t>(id)].type);
    auto results = evaluate(op, operands, types, max_bytes);
    if (!results) return "unknown";
    for (size_t i = 0; i < results->size(); ++i) known[op.results[i]] = (*results)[i];
  }
  const Constant& r = known.at(main.body.results[0]);
  std::string text;
  const size_t size = size_of(r.type.dtype);
  for (size_t i = 0; i * size < r.bytes; ++i) text += (i ? " " : "") + element_text(r.type.dtype, r.data + i * size);
  return text;
}

std::string binary(const std::string& op, const std::string& type, const std::string& a, const std::string& b) {
  return value_of("%a = constant " + type + " [" + a + "] %b = constant " + type + " [" + b + "] %r = " + op +
                  " %a, %b");
}

std::string unary(const std::string& op, const std::string& type, const std::string& a, const std::string& attrs = "") {
  return value_of("%a = constant " + type + " [" + a + "] %r = " + op + " %a " + attrs);
}

TEST(Evaluate, IntegersWrapAndDivideTowardsZero) {
  EXPECT_EQ(binary("add", "i8[2]", "127, -128", "1, -1"), "-128 127");
  EXPECT_EQ(binary("mul", "i32[2]", "65536, -3", "65536, 7"), "0 -21");
  EXPECT_EQ(binary("mul", "u16[1]", "65535", "65535"), "1");
  EXPECT_EQ(binary("div", "i32[4]", "-7, 7, 5, -2147483648", "2, -2, 0, -1"), "-3 -3 0 -2147483648");
  EXPECT_EQ(binary("rem", "i32[4]", "-7, 7, 5, -2147483648", "2, -2, 0, -1"), "-1 1 5 0");
  EXPECT_EQ(binary("shift_left", "u8[3]", "129, 1, 1", "1, 7, 8"), "2 128 0");
  EXPECT_EQ(binary("shift_right", "i8[3]", "-128, -1, 64", "7, 100, 3"), "-1 -1 8");
  EXPECT_EQ(binary("max", "u64[1]", "18446744073709551615", "1"), "18446744073709551615");
  EXPECT_EQ(unary("neg", "i64[1]", "-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(unary("bit_not", "bool[2]", "true, false"), "false true");
  EXPECT_EQ(unary("bit_not", "i8[2]", "0, 5"), "-1 -6");
  EXPECT_EQ(binary("less", "i8[2]", "-1, 2", "1, 2"), "true false");
}

TEST(Evaluate, FloatsRoundOncePerOp) {
  EXPECT_EQ(binary("add", "f32[1]", "16777216", "1"), "16777216");
  EXPECT_EQ(binary("add", "f16[2]", "2048, 65504", "1, 32"), "2048 inf");
  EXPECT_EQ(binary("div", "bf16[1]", "1", "3"), "0.33398438");
  EXPECT_EQ(binary("div", "f64[2]", "1, 1", "3, 0"), "0.3333333333333333 inf");
  EXPECT_EQ(binary("min", "f32[2]", "0, -0", "-0, 0"), "-0 -0");
  EXPECT_EQ(binary("max", "f32[2]", "0, -0", "-0, 0"), "0 0");
  EXPECT_EQ(unary("round", "f32[4]", "0.5, 1.5, -2.5, 2.4"), "0 2 -2 2");
  EXPECT_EQ(unary("sqrt", "f32[1]", "2"), "1.4142135");
  EXPECT_EQ(binary("mul", "f32[1]", "1e-30", "1e-10"), "1e-40");
}

TEST(Evaluate, WhatIsNotExactStays) {
  EXPECT_EQ(unary("exp", "f32[1]", "0"), "unknown");
  EXPECT_EQ(binary("sub", "f32[1]", "inf", "inf"), "unknown");
  EXPECT_EQ(unary("sqrt", "f32[1]", "-1"), "unknown");
  EXPECT_EQ(unary("reduce_sum", "f32[2]", "1, 2", "{axes = [0]}"), "unknown");
  EXPECT_EQ(value_of("%a = constant f32[] [1] %r = expand %a {shape = [1000]}", 3999), "unknown");
}

TEST(Evaluate, Casts) {
  EXPECT_EQ(unary("cast", "f32[5]", "-1.9, 300, nan, inf, -inf", "{to = i8}"), "-1 127 0 127 -128");
  EXPECT_EQ(unary("cast", "f32[3]", "-1.9, 5e9, 4294967040", "{to = u32}"), "0 4294967295 4294967040");
  EXPECT_EQ(unary("cast", "i32[2]", "-1, 256", "{to = u8}"), "255 0");
  EXPECT_EQ(unary("cast", "i64[1]", "16777217", "{to = f32}"), "16777216");
  EXPECT_EQ(unary("cast", "f32[3]", "0, -0, 0.1", "{to = bool}"), "false false true");
  EXPECT_EQ(unary("cast", "bool[2]", "false, true", "{to = f16}"), "0 1");
  // 1 + 2^-11 + 2^-40 lies just above the middle of two f16: rounding by way of f32 would fall to the even one.
  EXPECT_EQ(unary("cast", "f64[1]", "1.0004882812509095", "{to = f16}"), "1.0009766");
  EXPECT_EQ(unary("cast", "i64[1]", "72339069014638593", "{to = bf16}"), "7.262054e+16");
}

TEST(Evaluate, Movement) {
  const std::string a = "%a = constant i8[2, 3] [1, 2, 3, 4, 5, 6] ";
  EXPECT_EQ(value_of(a + "%r = transpose %a {perm = [1, 0]}"), "1 4 2 5 3 6");
  EXPECT_EQ(value_of(a + "%r = slice %a {starts = [1, 2], limits = [-1, -1], steps = [-1, -2]}"), "6 4 3 1");
  EXPECT_EQ(value_of(a + "%r = slice %a {starts = [0, 1], limits = [2, 3]}"), "2 3 5 6");
  EXPECT_EQ(value_of(a + "%r = concat %a, %a {axis = 1}"), "1 2 3 1 2 3 4 5 6 4 5 6");
  EXPECT_EQ(value_of(a + "%f = constant i8[] [9] %r = pad %a, %f {low = [0, 1], high = [1, 0]}"),
            "9 1 2 3 9 4 5 6 9 9 9 9");
  EXPECT_EQ(value_of(a + "%i = constant i32[4] [-1, 0, 7, -9] %r = gather %a, %i {axis = 1}"), "3 1 3 1 6 4 6 4");
  const std::string updates = "%u = constant i8[5, 3] [7, 7, 7, 8, 8, 8, 9, 9, 9, 0, 0, 0, 5, 5, 5] ";
  EXPECT_EQ(value_of(a + updates + "%i = constant i32[5] [1, -2, 1, 2, -3] %r = scatter %a, %i, %u"), "8 8 8 9 9 9");
  EXPECT_EQ(value_of(a + updates + "%i = constant u8[5] [0, 255, 9, 2, 2] %r = scatter %a, %i, %u"), "7 7 7 4 5 6");
  EXPECT_EQ(value_of("%a = constant i8[2, 1] [1, 2] %r = expand %a {shape = [2, 2, 2]}"), "1 1 2 2 1 1 2 2");
  EXPECT_EQ(value_of("%r = iota {shape = [2, 3], axis = 1, dtype = f32}"), "0 1 2 0 1 2");
  EXPECT_EQ(value_of("%r = dims {shape = [7, -1]}"), "7 -1");
  EXPECT_EQ(value_of("%c = constant bool[2, 1] [true, false] %a = constant i8[2] [1, 2] %b = constant i8[] [9] "
                     "%r = select %c, %a, %b"),
            "1 2 9 9");
}

TEST(Evaluate, Reductions) {
  const std::string a = "%a = constant i8[2, 3] [1, 2, 3, 4, 5, 100] ";
  EXPECT_EQ(value_of(a + "%r = reduce_sum %a {axes = [1]}"), "6 109");
  EXPECT_EQ(value_of(a + "%r = reduce_max %a {axes = [0]}"), "4 5 100");
  EXPECT_EQ(value_of(a + "%r = reduce_prod %a {axes = [0, 1]}"), "-32");
  EXPECT_EQ(value_of("%a = constant f32[0] [] %r = reduce_max %a {axes = [0]}"), "-inf");
  EXPECT_EQ(value_of("%a = constant bool[2] [true, false] %r = reduce_any %a {axes = [0]}"), "true");
}

TEST(Evaluate, NothingIsNothingHoweverLargeTheOtherExtents) {
  const std::string a = "%a = constant f32[0, 1048576, 1048576, 1048576] [] ";
  EXPECT_EQ(value_of(a + "%r = exp %a"), "");
  EXPECT_EQ(value_of(a + "%r = reduce_max %a {axes = [1]}"), "");
  EXPECT_EQ(value_of(a + "%r = transpose %a {perm = [3, 2, 1, 0]}"), "");
  EXPECT_EQ(value_of(a + "%s = reduce_max %a {axes = [1, 2, 3]} %f = constant f32[] [7] "
                         "%r = pad %s, %f {low = [1], high = [1]}"),
            "7 7");
}

TEST(Evaluate, TheCallersRoundingModeDoesNotCount) {
  std::fesetround(FE_UPWARD);
  const std::string result = binary("div", "f32[1]", "1", "3");
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(result, "0.33333334");
}

}  // namespace
}  // namespace quartet::graph
