// Building graphs by calls, and what graphs tell of themselves.
#include "unit/capi/support.h"

namespace quartet::capi_test {
namespace {

class BuilderTest : public testing::Test {
 protected:
  BuilderTest() : context_(make_context()), builder_(make_builder()) {}

  Builder make_builder() {
    quartet_builder* raw = nullptr;
    EXPECT_TRUE(is_ok(quartet_builder_create(context_.get(), &raw, error_.out()), error_));
    return Builder(raw);
  }
  int32_t input(const char* name, std::vector<int64_t> dims, int32_t dtype = QUARTET_DTYPE_F32) {
    int32_t value = -1;
    EXPECT_TRUE(is_ok(quartet_builder_input(get(), name, SIZE_MAX, dtype, static_cast<int32_t>(dims.size()),
                                            dims.data(), &value, error_.out()),
                      error_));
    return value;
  }
  int32_t op(const char* name, std::vector<int32_t> inputs, std::vector<quartet_attr> attrs = {}) {
    int32_t value = -1;
    EXPECT_TRUE(is_ok(quartet_builder_op(get(), name, SIZE_MAX, inputs.data(), static_cast<uint32_t>(inputs.size()),
                                         attrs.data(), static_cast<uint32_t>(attrs.size()), &value, 1, error_.out()),
                      error_))
        << name;
    return value;
  }
  int64_t dim(const char* name) {
    int64_t number = 0;
    EXPECT_TRUE(is_ok(quartet_builder_dim_symbol(get(), name, SIZE_MAX, &number, error_.out()), error_));
    return number;
  }
  void output(int32_t value, const char* name) {
    EXPECT_TRUE(is_ok(quartet_builder_output(get(), value, name, SIZE_MAX, error_.out()), error_));
  }
  Graph finish() {
    quartet_graph* raw = nullptr;
    EXPECT_TRUE(is_ok(quartet_builder_finish(get(), &raw, error_.out()), error_));
    return Graph(raw);
  }
  static quartet_attr attr(const char* name, int32_t kind, const void* data, size_t count = 1) {
    auto made = make_struct<quartet_attr>();
    made.kind = kind;
    made.name = name;
    made.name_size = SIZE_MAX;
    made.data = data;
    made.count = count;
    return made;
  }
  std::string print(quartet_graph* graph) {
    quartet_blob* raw = nullptr;
    EXPECT_TRUE(is_ok(quartet_graph_print(graph, &raw, error_.out()), error_));
    return text_of(Blob(raw));
  }
  quartet_builder* get() { return builder_.get(); }

  Error error_;
  Context context_;
  Builder builder_;
};

TEST_F(BuilderTest, DimsNamesAndTypesComeBack) {
  const int64_t n = dim("N");
  EXPECT_LT(n, 0);
  EXPECT_EQ(dim("N"), n);
  const int32_t x = input("x", {n, 3});
  const int32_t y = op("exp", {x});
  output(y, "result");
  auto info = make_struct<quartet_tensor_info>();
  ASSERT_TRUE(is_ok(quartet_builder_value_info(get(), y, &info, error_.out()), error_));
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.dims[0], QUARTET_DIM_UNKNOWN);
  EXPECT_STREQ(info.dim_texts[0], "N");
  EXPECT_EQ(info.dims[1], 3);
  const Graph graph = finish();
  ASSERT_EQ(quartet_graph_input_count(graph.get()), 1U);
  ASSERT_EQ(quartet_graph_output_count(graph.get()), 1U);
  ASSERT_EQ(quartet_graph_symbol_count(graph.get()), 1U);
  EXPECT_STREQ(quartet_graph_symbol_name(graph.get(), 0, nullptr), "N");
  ASSERT_TRUE(is_ok(quartet_graph_output_info(graph.get(), 0, &info, error_.out()), error_));
  EXPECT_EQ(std::string(info.name, info.name_size), "result");
  EXPECT_EQ(info.dtype, QUARTET_DTYPE_F32);
  EXPECT_TRUE(fails(quartet_graph_output_info(graph.get(), 1, &info, error_.out()), error_, QUARTET_E_INVALID_ARGUMENT,
                    "index is 1"));
}

TEST_F(BuilderTest, DimExpressions) {
  const int64_t n = dim("N");
  const int32_t x = input("x", {n, 4});
  int64_t flat = 0, two = 0;
  ASSERT_TRUE(is_ok(quartet_builder_dim_text(get(), "4*N", SIZE_MAX, &flat, error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_builder_dim_text(get(), "1 + 1", SIZE_MAX, &two, error_.out()), error_));
  EXPECT_EQ(two, 2);
  const int32_t y = op("reshape", {x}, {attr("shape", QUARTET_ATTR_DIMS, &flat)});
  auto info = make_struct<quartet_tensor_info>();
  ASSERT_TRUE(is_ok(quartet_builder_value_info(get(), y, &info, error_.out()), error_));
  EXPECT_EQ(info.rank, 1);
  EXPECT_STREQ(info.dim_texts[0], "N*4");
  int64_t none = 0;
  EXPECT_TRUE(fails(quartet_builder_dim_text(get(), "M + 1", SIZE_MAX, &none, error_.out()), error_,
                    QUARTET_E_INVALID_ARGUMENT, "M"));
  EXPECT_TRUE(fails(quartet_builder_dim_text(get(), "0 - 3", SIZE_MAX, &none, error_.out()), error_,
                    QUARTET_E_INVALID_ARGUMENT, "no extent"));
}

TEST_F(BuilderTest, FailedCallsLeaveTheBuilderUsable) {
  const int32_t x = input("x", {2, 3});
  int32_t value = 7;
  const int32_t pair[2] = {x, x};
  EXPECT_TRUE(fails(quartet_builder_op(get(), "matmul", 6, pair, 2, nullptr, 0, &value, 1, error_.out()), error_,
                    QUARTET_E_INVALID_ARGUMENT, "matmul"));
  EXPECT_EQ(value, 0);
  EXPECT_TRUE(fails(quartet_builder_op(get(), "frobnicate", 10, &x, 1, nullptr, 0, &value, 1, error_.out()), error_,
                    QUARTET_E_NOT_FOUND, "frobnicate"));
  EXPECT_TRUE(fails(quartet_builder_op_by_id(get(), 60000, &x, 1, nullptr, 0, &value, 1, error_.out()), error_,
                    QUARTET_E_UNSUPPORTED, "60000"));
  const int32_t nothing = 1234;
  EXPECT_TRUE(fails(quartet_builder_op(get(), "exp", 3, &nothing, 1, nullptr, 0, &value, 1, error_.out()), error_,
                    QUARTET_E_INVALID_ARGUMENT, "1234"));
  EXPECT_TRUE(fails(quartet_builder_op(get(), "exp", 3, &x, 1, nullptr, 0, &value, 0, error_.out()), error_,
                    QUARTET_E_INVALID_ARGUMENT, "output_count"));
  const int64_t bad_dims[1] = {-77};
  EXPECT_TRUE(fails(quartet_builder_input(get(), "z", 1, QUARTET_DTYPE_F32, 1, bad_dims, &value, error_.out()), error_,
                    QUARTET_E_INVALID_ARGUMENT, "-77"));
  EXPECT_TRUE(fails(quartet_builder_input(get(), "z", 1, 99, 1, bad_dims, &value, error_.out()), error_,
                    QUARTET_E_UNSUPPORTED, "99"));
  EXPECT_TRUE(fails(quartet_builder_input(get(), "z", 1, QUARTET_DTYPE_F32, 99, bad_dims, &value, error_.out()), error_,
                    QUARTET_E_INVALID_ARGUMENT, "rank"));
  output(op("neg", {x}), "y");
  EXPECT_NE(finish(), nullptr);
}

TEST_F(BuilderTest, AttributesOfEveryKind) {
  const int32_t x = input("x", {2, 3, 4});
  const int64_t perm[3] = {2, 0, 1}, axes[1] = {1}, one = 1;
  const int32_t half = QUARTET_DTYPE_F16;
  op("transpose", {x}, {attr("perm", QUARTET_ATTR_I64S, perm, 3)});
  op("cast", {x}, {attr("to", QUARTET_ATTR_DTYPE, &half)});
  output(op("reduce_sum", {x}, {attr("axes", QUARTET_ATTR_I64S, axes, 1), attr("keepdims", QUARTET_ATTR_I64, &one)}),
         "y");
  int32_t value = 0;
  const auto tries = [&](const char* name, quartet_attr given, int32_t status, const char* words) {
    EXPECT_TRUE(fails(quartet_builder_op(get(), name, SIZE_MAX, &x, 1, &given, 1, &value, 1, error_.out()), error_,
                      status, words));
  };
  tries("transpose", attr("perm", 99, perm, 3), QUARTET_E_UNSUPPORTED, "kind");
  tries("transpose", attr("perm", QUARTET_ATTR_I64S, nullptr, 3), QUARTET_E_INVALID_ARGUMENT, "NULL");
  tries("transpose", attr("parm", QUARTET_ATTR_I64S, perm, 3), QUARTET_E_INVALID_ARGUMENT, "parm");
  tries("transpose", attr("perm", QUARTET_ATTR_I64, perm, 3), QUARTET_E_INVALID_ARGUMENT, "count");
  tries("exp", attr("body", QUARTET_ATTR_REGION, &half), QUARTET_E_INVALID_ARGUMENT, "region");
  quartet_attr old = attr("perm", QUARTET_ATTR_I64S, perm, 3);
  old.struct_size = 8;
  tries("transpose", old, QUARTET_E_INVALID_ARGUMENT, "struct_size");
}

TEST_F(BuilderTest, ABranch) {
  const int32_t condition = input("condition", {}, QUARTET_DTYPE_BOOL);
  const int32_t x = input("x", {4});
  int32_t regions[2] = {};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(is_ok(quartet_builder_region_begin(get(), &regions[i], error_.out()), error_));
    const int32_t inner = op(i == 0 ? "exp" : "neg", {x});
    ASSERT_TRUE(is_ok(quartet_builder_region_end(get(), &inner, 1, error_.out()), error_));
  }
  int32_t value = 0;
  const quartet_attr only_then = attr("then", QUARTET_ATTR_REGION, &regions[0]);
  EXPECT_TRUE(fails(quartet_builder_op(get(), "if", 2, &condition, 1, &only_then, 1, &value, 1, error_.out()), error_,
                    QUARTET_E_INVALID_ARGUMENT, "region"));
  output(op("if", {condition},
            {attr("else", QUARTET_ATTR_REGION, &regions[1]), attr("then", QUARTET_ATTR_REGION, &regions[0])}),
         "y");
  const std::string text = print(finish().get());
  EXPECT_LT(text.find("exp"), text.find("neg")) << text;
}

TEST_F(BuilderTest, ALoopWithAnAbsentCondition) {
  const int32_t trips = input("trips", {}, QUARTET_DTYPE_I64);
  const int32_t x = input("x", {4});
  int32_t region = 0, parameters[3] = {};
  ASSERT_TRUE(is_ok(quartet_builder_region_begin(get(), &region, error_.out()), error_));
  const int64_t dims[1] = {4};
  const int32_t types[3] = {QUARTET_DTYPE_I64, QUARTET_DTYPE_BOOL, QUARTET_DTYPE_F32};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(is_ok(
        quartet_builder_region_parameter(get(), types[i], i == 2 ? 1 : 0, dims, &parameters[i], error_.out()), error_));
  }
  const int32_t results[2] = {parameters[1], op("exp", {parameters[2]})};
  ASSERT_TRUE(is_ok(quartet_builder_region_end(get(), results, 2, error_.out()), error_));
  output(op("loop", {trips, QUARTET_NO_VALUE, x}, {attr("body", QUARTET_ATTR_REGION, &region)}), "y");
  EXPECT_NE(print(finish().get()).find("loop"), std::string::npos);
}

TEST_F(BuilderTest, AFunctionThatCallsItself) {
  const int64_t dims[1] = {4};
  int32_t parameter = 0;
  ASSERT_TRUE(is_ok(quartet_builder_function_begin(get(), "f", 1, error_.out()), error_));
  ASSERT_TRUE(
      is_ok(quartet_builder_region_parameter(get(), QUARTET_DTYPE_F32, 1, dims, &parameter, error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_builder_function_result(get(), QUARTET_DTYPE_F32, 1, dims, error_.out()), error_));
  const int32_t result = op("call", {parameter}, {attr("function", QUARTET_ATTR_TEXT, "f", SIZE_MAX)});
  ASSERT_TRUE(is_ok(quartet_builder_function_end(get(), &result, 1, error_.out()), error_));
  const int32_t x = input("x", {4});
  output(op("call", {x}, {attr("function", QUARTET_ATTR_TEXT, "f", 1)}), "y");
  int32_t value = 0;
  const quartet_attr wrong = attr("function", QUARTET_ATTR_TEXT, "g", 1);
  EXPECT_TRUE(fails(quartet_builder_op(get(), "call", 4, &x, 1, &wrong, 1, &value, 1, error_.out()), error_,
                    QUARTET_E_NOT_FOUND, "'g'"));
  EXPECT_TRUE(fails(quartet_builder_op(get(), "call", 4, &x, 1, nullptr, 0, &value, 1, error_.out()), error_,
                    QUARTET_E_INVALID_ARGUMENT, "function"));
  EXPECT_NE(print(finish().get()).find("@f"), std::string::npos);
}

TEST_F(BuilderTest, ASpentBuilderSaysSo) {
  const int32_t x = input("x", {4});
  output(op("exp", {x}), "y");
  const Graph graph = finish();
  int32_t value = 0;
  quartet_graph* again = nullptr;
  EXPECT_TRUE(fails(quartet_builder_op(get(), "exp", 3, &x, 1, nullptr, 0, &value, 1, error_.out()), error_,
                    QUARTET_E_FAILED_PRECONDITION, "spent"));
  EXPECT_TRUE(
      fails(quartet_builder_finish(get(), &again, error_.out()), error_, QUARTET_E_FAILED_PRECONDITION, "spent"));
  EXPECT_EQ(again, nullptr);
  auto info = make_struct<quartet_tensor_info>();
  EXPECT_NE(quartet_builder_value_info(get(), x, &info, error_.out()), QUARTET_OK);
  EXPECT_NE(quartet_builder_region_end(get(), nullptr, 0, error_.out()), QUARTET_OK);
}

struct Lent {
  int freed = 0;
  static void QUARTET_CALL free_data(void* user, void*, size_t) { ++static_cast<Lent*>(user)->freed; }
};

TEST_F(BuilderTest, LentConstantsGoBackOnceTheLastUserIsGone) {
  Lent lent, copied, refused;
  const std::vector<float> data(4, 2.0F);
  const int64_t dims[1] = {4}, wrong[1] = {5};
  int32_t a = 0, b = 0;
  ASSERT_TRUE(is_ok(quartet_builder_constant(get(), QUARTET_DTYPE_F32, 1, dims, data.data(), 16,
                                             QUARTET_CONSTANT_BORROW, Lent::free_data, &lent, &a, error_.out()),
                    error_));
  const std::vector<float> other(4, 3.0F);
  ASSERT_TRUE(is_ok(quartet_builder_constant(get(), QUARTET_DTYPE_F32, 1, dims, other.data(), 16, QUARTET_CONSTANT_COPY,
                                             Lent::free_data, &copied, &b, error_.out()),
                    error_));
  EXPECT_EQ(copied.freed, 1);
  int32_t none = 0;
  EXPECT_TRUE(fails(quartet_builder_constant(get(), QUARTET_DTYPE_F32, 1, wrong, data.data(), 16,
                                             QUARTET_CONSTANT_BORROW, Lent::free_data, &refused, &none, error_.out()),
                    error_, QUARTET_E_INVALID_ARGUMENT, ""));
  EXPECT_EQ(refused.freed, 1);
  output(op("add", {a, b}), "y");
  Graph graph = finish();
  builder_.reset();
  EXPECT_EQ(lent.freed, 0);
  graph.reset();
  EXPECT_EQ(lent.freed, 1);
}

TEST(GraphForms, TextBytesAndCallsAreTheSameGraph) {
  const Context context = make_context();
  const Graph built = make_mlp(context.get());
  Error error;
  quartet_blob* raw = nullptr;
  ASSERT_TRUE(is_ok(quartet_graph_print(built.get(), &raw, error.out()), error));
  const Blob text(raw);
  const Graph parsed = parse_graph(context.get(), text_of(text));
  ASSERT_TRUE(is_ok(quartet_graph_serialize(built.get(), &raw, error.out()), error));
  const Blob bytes(raw);
  size_t size = 0;
  const void* data = quartet_blob_data(bytes.get(), &size);
  quartet_graph* read = nullptr;
  ASSERT_TRUE(is_ok(quartet_graph_deserialize(context.get(), data, size, &read, error.out()), error));
  const Graph from_bytes(read);
  uint8_t digests[3][16];
  ASSERT_EQ(quartet_graph_digest(built.get(), digests[0], nullptr), QUARTET_OK);
  ASSERT_EQ(quartet_graph_digest(parsed.get(), digests[1], nullptr), QUARTET_OK);
  ASSERT_EQ(quartet_graph_digest(from_bytes.get(), digests[2], nullptr), QUARTET_OK);
  EXPECT_EQ(std::memcmp(digests[0], digests[1], 16), 0);
  EXPECT_EQ(std::memcmp(digests[0], digests[2], 16), 0);
  for (size_t cut = 0; cut < size; cut += 7) {
    EXPECT_NE(quartet_graph_deserialize(context.get(), data, cut, &read, nullptr), QUARTET_OK);
    EXPECT_EQ(read, nullptr);
  }
  EXPECT_TRUE(fails(quartet_graph_parse(context.get(), "graph nonsense", SIZE_MAX, &read, error.out()), error,
                    QUARTET_E_INVALID_ARGUMENT, ""));
}

}  // namespace
}  // namespace quartet::capi_test
