#include "graph_testing.h"

namespace quartet::graph {
namespace {

// The type of %r in a graph of the given inputs and ops.
std::string type_of(const std::string& inputs, const std::string& ops, const std::string& dims = "") {
  const auto graph = parse(dims + "graph(" + inputs + ") { " + ops + " return %r }");
  if (!graph) return graph.status().message();
  const std::string text = print(**graph);
  const size_t from = text.find("-> (") + 4;
  return text.substr(from, text.find(") {") - from);
}

void expect_error(const std::string& inputs, const std::string& ops, const std::string& words) {
  const std::string text = type_of(inputs, ops);
  EXPECT_NE(text.find(words), std::string::npos) << text;
}

TEST(Infer, Broadcasting) {
  EXPECT_EQ(type_of("%a: f32[n, 1, 4], %b: f32[3, 1]", "%r = add %a, %b"), "f32[n, 3, 4]");
  EXPECT_EQ(type_of("%a: f32[n], %b: f32[]", "%r = less %a, %b"), "bool[n]");
  EXPECT_EQ(type_of("%c: bool[2, 1], %a: i8[3], %b: i8[]", "%r = select %c, %a, %b"), "i8[2, 3]");
  expect_error("%a: f32[n], %b: f32[m]", "%r = add %a, %b",
               "op 0 (add): [n] and [m] do not broadcast: n against m in axis 0");
  expect_error("%a: f32[2, 3], %b: f32[2]", "%r = add %a, %b", "3 against 2 in axis 1");
  expect_error("%a: f32[2], %b: f64[2]", "%r = add %a, %b", "element types differ: f32 and f64");
  expect_error("%a: bool[2], %b: bool[2]", "%r = add %a, %b", "operand 0 is bool, wanted numbers");
  expect_error("%a: i32[2]", "%r = exp %a", "operand 0 is i32, wanted floats");
  expect_error("%c: f32[2], %a: i8[2]", "%r = select %c, %a, %a", "the condition is f32, not bool");
}

TEST(Infer, Views) {
  EXPECT_EQ(type_of("%a: f32[n, 6]", "%r = reshape %a {shape = [2*n, 3]}"), "f32[n*2, 3]");
  expect_error("%a: f32[n, 6]", "%r = reshape %a {shape = [n, 5]}", "has n*6 elements, [n, 5] has n*5");
  EXPECT_EQ(type_of("%a: f32[n, 6, 2]", "%r = transpose %a {perm = [2, 0, 1]}"), "f32[2, n, 6]");
  expect_error("%a: f32[n, 6]", "%r = transpose %a {perm = [0, 0]}", "not a permutation");
  EXPECT_EQ(type_of("%a: f32[n, 1]", "%r = expand %a {shape = [2, n, 5]}"), "f32[2, n, 5]");
  expect_error("%a: f32[n, 2]", "%r = expand %a {shape = [n, 5]}", "[n, 2] does not expand to [n, 5]");
}

TEST(Infer, SlicesStayInside) {
  const auto slice = [](const std::string& dim, const std::string& start, const std::string& limit,
                        const std::string& step) {
    return type_of("%a: f32[" + dim + "], %n: u8[n]",
                   "%r = slice %a {starts = [" + start + "], limits = [" + limit + "], steps = [" + step + "]}");
  };
  EXPECT_EQ(slice("10", "2", "9", "3"), "f32[3]");
  EXPECT_EQ(slice("10", "9", "-1", "-1"), "f32[10]");
  EXPECT_EQ(slice("10", "5", "2", "1"), "f32[0]");
  EXPECT_EQ(slice("n", "n - 1", "-1", "-1"), "f32[n]");
  EXPECT_EQ(slice("n", "0", "n", "2"), "f32[floor_div(n + 1, 2)]");
  EXPECT_EQ(slice("n", "0", "min(n, 5)", "1"), "f32[min(5, n)]");
  EXPECT_EQ(slice("n", "max(n - 5, 0)", "n", "1"), "f32[n - max(0, n - 5)]");
  EXPECT_EQ(slice("n", "1", "n", "1"), "f32[max(0, n - 1)]");
  EXPECT_NE(slice("n", "0", "5", "1").find("slice limit: 5 is not known to be at most n"), std::string::npos);
  EXPECT_NE(slice("10", "0", "11", "1").find("axis 0: slice limit"), std::string::npos);
  EXPECT_NE(slice("10", "10", "0", "-1").find("slice start"), std::string::npos);
  EXPECT_EQ(type_of("%a: f32[n]", "%r = slice %a {starts = [1], limits = [5]}", "dim n in [5, _]\n"), "f32[4]");
}

TEST(Infer, Data) {
  EXPECT_EQ(type_of("%a: f32[n, 2], %b: f32[3, 2]", "%r = concat %a, %b {axis = -2}"), "f32[n + 3, 2]");
  expect_error("%a: f32[n, 2], %b: f32[3, 3]", "%r = concat %a, %b {axis = 0}", "does not continue");
  EXPECT_EQ(type_of("%a: f32[n], %f: f32[]", "%r = pad %a, %f {low = [1], high = [n]}"), "f32[n*2 + 1]");
  EXPECT_EQ(type_of("%a: f32[5, n], %i: i32[2, 3]", "%r = gather %a, %i {axis = 0}"), "f32[2, 3, n]");
  expect_error("%a: f32[5], %i: f32[2]", "%r = gather %a, %i {axis = 0}", "the indices are f32, not integers");
  EXPECT_EQ(type_of("%a: f32[n]", "%r = dims {shape = [n, 2*n]}"), "i64[2]");
  EXPECT_EQ(type_of("%a: f32[n]", "%r = iota {shape = [n, 2], axis = -1, dtype = i32}"), "i32[n, 2]");
}

TEST(Infer, Scatter) {
  EXPECT_EQ(type_of("%a: f32[n, m], %i: i32[k], %u: f32[k, m]", "%r = scatter %a, %i, %u {combine = 4}"), "f32[n, m]");
  expect_error("%a: f32[5, 2], %i: f32[3], %u: f32[3, 2]", "%r = scatter %a, %i, %u",
               "the indices are f32, not integers");
  expect_error("%a: f32[5, 2], %i: i64[3], %u: f32[4, 2]", "%r = scatter %a, %i, %u", "updates of [4, 2] do not fit");
  expect_error("%a: f32[5, 2], %i: i64[3], %u: f32[3, m]", "%r = scatter %a, %i, %u", "updates of [3, m] do not fit");
  expect_error("%a: f32[5], %i: i64[3], %u: f32[3]", "%r = scatter %a, %i, %u", "have ranks 1, 1 and 1");
  expect_error("%a: f32[5, 2], %i: i64[3], %u: i64[3, 2]", "%r = scatter %a, %i, %u", "element types differ");
  expect_error("%a: f32[5, 2], %i: i64[3], %u: f32[3, 2]", "%r = scatter %a, %i, %u {combine = 5}", "outside 0 to 4");
  expect_error("%a: bool[5, 2], %i: i64[3], %u: bool[3, 2]", "%r = scatter %a, %i, %u {combine = 1}",
               "bool is neither added nor compared");
}

TEST(Infer, Windows) {
  EXPECT_EQ(type_of("%a: f32[n, 8, 9]", "%r = window %a {axes = [1, 2], sizes = [3, 2], strides = [2, 1]}"),
            "f32[n, 3, 8, 3, 2]");
  EXPECT_EQ(type_of("%a: f32[2]", "%r = window %a {axes = [0], sizes = [3]}"), "f32[0, 3]");
  EXPECT_EQ(type_of("%a: f32[n + 2], %b: f32[n]", "%r = window %a {axes = [0], sizes = [3]}"), "f32[n, 3]");
  EXPECT_EQ(type_of("%a: f32[n]", "%r = window %a {axes = [0], sizes = [3]}"), "f32[max(0, n - 2), 3]");
  expect_error("%a: f32[8, 9]", "%r = window %a {axes = [0, 1], sizes = [3]}", "1 sizes for 2 windowed axes");
  expect_error("%a: f32[8]", "%r = window %a {axes = [0], sizes = [0]}", "sizes: 0 is outside 1 to");
}

TEST(Infer, Convolutions) {
  EXPECT_EQ(type_of("%x: f32[n, 6, 8, 9], %w: f32[4, 3, 3, 2]",
                    "%r = conv %x, %w {groups = 2, strides = [2, 1], dilations = [1, 2]}"),
            "f32[n, 4, 3, 7]");
  EXPECT_EQ(type_of("%x: f32[n, 8, 2, 3], %w: f32[3, 3, 2, 5]", "%r = convolve %x, %w"), "f32[n, 6, 2, 5]");
  expect_error("%x: f32[1, 6, 8], %w: f32[4, 5, 3]", "%r = conv %x, %w", "the channels differ: 6 in the operand, 5");
  expect_error("%x: f32[1, 6, 8], %w: f32[5, 3, 3]", "%r = conv %x, %w {groups = 2}", "5 filters in 2 groups");
  expect_error("%x: f32[1, 6, 8], %w: f32[4, 6]", "%r = conv %x, %w", "x of rank 3 by filters of rank 2");
  expect_error("%x: f32[1, 6, 8], %w: f32[4, 6, 3]", "%r = conv %x, %w {groups = 0}", "groups: 0 is less than 1");
  expect_error("%x: f32[1, 8, 2, 3], %w: f32[3, 3, 1, 5]", "%r = convolve %x, %w", "2 groups in the operand, 1");
}

TEST(Infer, AssumedShapes) {
  EXPECT_EQ(type_of("%a: f32[n, 4], %b: f32[m]", "%r = assume_shape %a {shape = [m, 4]}"), "f32[m, 4]");
  expect_error("%a: f32[n, 4]", "%r = assume_shape %a {shape = [n, 5]}", "cannot be assumed to be [n, 5]");
  expect_error("%a: f32[n, 4]", "%r = assume_shape %a {shape = [n]}", "cannot be assumed to be [n]");
}

TEST(Infer, ReductionsAndMatmul) {
  EXPECT_EQ(type_of("%a: f32[n, 2, 3]", "%r = reduce_sum %a {axes = [-1, 0]}"), "f32[2]");
  EXPECT_EQ(type_of("%a: f32[n, 2, 3]", "%r = reduce_mean %a {axes = [1], keepdims = 1}"), "f32[n, 1, 3]");
  EXPECT_EQ(type_of("%a: f32[n, 2]", "%r = argmax %a {axis = 1}"), "i64[n]");
  EXPECT_EQ(type_of("%a: f32[n, 2]", "%m, %r = softmax_stats %a {axis = 1}"), "f32[n, 1]");
  expect_error("%a: f32[n, 2]", "%r = reduce_sum %a {axes = [2]}", "axes: 2 is outside rank 2");
  expect_error("%a: f32[n, 2]", "%r = reduce_sum %a", "reduce_sum needs the attribute axes");
  expect_error("%a: f32[n, 2]", "%r = reduce_sum %a {axes = [0], keepdims = 2}", "keepdims: 2 is outside 0 to 1");
  EXPECT_EQ(type_of("%a: f32[b, 1, n, 4], %b: f32[3, 4, m]", "%r = matmul %a, %b"), "f32[b, 3, n, m]");
  EXPECT_EQ(type_of("%a: f32[4], %b: f32[3, 4, m]", "%r = matmul %a, %b"), "f32[3, m]");
  EXPECT_EQ(type_of("%a: f32[3, n, 4], %b: f32[4]", "%r = matmul %a, %b"), "f32[3, n]");
  EXPECT_EQ(type_of("%a: f32[4], %b: f32[4]", "%r = matmul %a, %b"), "f32[]");
  EXPECT_EQ(type_of("%a: f32[4, n], %b: f32[m, 4]", "%r = matmul %a, %b {transpose_a = 1, transpose_b = 1}"),
            "f32[n, m]");
  expect_error("%a: f32[n, 128], %b: f32[64, 10]", "%r = matmul %a, %b", "op 0 (matmul): K differs: 128 against 64");
}

TEST(Infer, Control) {
  const std::string body = "do (%i: i64[], %c: bool[], %v: f32[n]) { %w = neg %v yield %c, %w";
  EXPECT_EQ(type_of("%a: f32[n]", "%t = constant i64[] [4] %r, %s = loop %t, _, %a {trip = [4]} " + body + ", %w }"),
            "f32[n]");
  EXPECT_EQ(type_of("%a: f32[n]",
                    "%d = dims {shape = [n]} %t = reshape %d {shape = []} %s, %r = loop %t, _, %a {trip = [n]} " +
                        body + ", %w }"),
            "f32[n, n]");
  expect_error("%a: f32[n]", "%t = constant i64[] [4] %s, %r = loop %t, _, %a {trip = [5]} " + body + ", %w }",
               "trip is 5, wanted 4");
  expect_error("%a: f32[n]", "%t = constant i64[] [4] %r = loop %t, _, %a " + body + ", %w }",
               "trip is given exactly if");
  expect_error("%a: f32[n], %t: i64[]", "%s, %r = loop %t, _, %a {trip = [n]} " + body + ", %w }",
               "trip is n, wanted a run-known dim born here");
  expect_error("%a: f32[n], %p: bool[]", "%r = if %p then { yield %a } else { %z = dims {shape = [n]} yield %z }",
               "result 0 of else is i64[1], wanted f32[n]");
  expect_error("%a: f32[n], %p: bool[n]", "%r = if %p then { yield %a } else { yield %a }",
               "the condition is bool[n], wanted bool[]");
}

TEST(Infer, SizesAreBounded) {
  expect_error("%a: f32[1]", "%r = expand %a {shape = [4611686018427387904, 4611686018427387904]}",
               "larger than 2^62 bytes");
  expect_error("%a: f32[1]", "%r = reshape %a {shape = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}",
               "more than 16");
}

}  // namespace
}  // namespace quartet::graph
