// Runs whose arguments are not all given: outputs with a dim that only the run knows, inputs left out.
#include "unit/capi/run_fixture.h"
#include "unit/import/onnx_model.h"

namespace quartet::capi_test {
namespace {

// An output whose first dim only the run knows: as many rows as the input says.
class OpenOutput : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    if (IsSkipped()) return;
    const char* const text = R"(dim t run
      graph(%n: i64, %x: f32[3]) {
        %rows = loop %n, _ {trip=[t]} : f32[t, 3] do (%i: i64, %c: bool) {
          %k = cast %i {to=f32}
          %r = mul %x, %k
          yield %c, %r
        }
        return %rows as rows
      })";
    quartet_graph* raw = nullptr;
    ASSERT_TRUE(is_ok(quartet_graph_parse(context_.get(), text, std::strlen(text), &raw, error_.out()), error_));
    program_ = compile(Graph(raw));
    in_[0] = make_struct<quartet_tensor>();
    in_[0].dtype = QUARTET_DTYPE_I64;
    in_[0].data = &trips_;
    in_[0].bytes = sizeof trips_;
    in_[1] = tensor_of(row_, {3});
  }
  int32_t run(quartet_tensor& out) { return quartet_run_sync(program_.get(), in_, 2, &out, 1, error_.out()); }

  int64_t trips_ = 5;
  std::vector<float> row_{1, 2, 4};
  quartet_tensor in_[2];
};

TEST_F(OpenOutput, ItsShapeIsOpenBeforeTheRun) {
  auto out = empty_tensor();
  ASSERT_TRUE(is_ok(quartet_program_output_shapes(program_.get(), in_, 2, &out, 1, error_.out()), error_));
  EXPECT_EQ(out.rank, 2);
  EXPECT_EQ(out.dims[0], -1);
  EXPECT_EQ(out.dims[1], 3);
  EXPECT_EQ(out.bytes, 0U);
}

TEST_F(OpenOutput, TheRunMakesTheBuffer) {
  for (const int64_t trips : {5, 0, 1000}) {
    trips_ = trips;
    auto out = empty_tensor();
    ASSERT_TRUE(is_ok(run(out), error_));
    const Buffer buffer(out.buffer);
    ASSERT_NE(out.buffer, nullptr);
    EXPECT_EQ(out.dims[0], trips);
    EXPECT_EQ(out.bytes, static_cast<uint64_t>(trips) * 12);
    if (trips > 0) EXPECT_EQ(static_cast<const float*>(out.data)[3 * trips - 1], 4.0F * static_cast<float>(trips - 1));
  }
}

TEST_F(OpenOutput, IntoMemoryGivenIfItSuffices) {
  std::vector<float> y(16, -5);
  auto out = empty_tensor();
  out.data = y.data();
  out.bytes = 60;
  ASSERT_TRUE(is_ok(run(out), error_));
  EXPECT_EQ(out.dims[0], 5);
  EXPECT_EQ(y[14], 16);
  EXPECT_EQ(y[15], -5);
  out.bytes = 59;
  EXPECT_TRUE(fails(run(out), error_, QUARTET_E_RESOURCE_EXHAUSTED, "'rows': it has room for 59 bytes"));
  EXPECT_EQ(out.dims[0], 5) << "left as it was";
}

TEST_F(OpenOutput, ABindingKeepsItsMemory) {
  quartet_binding* raw = nullptr;
  ASSERT_TRUE(is_ok(quartet_binding_create(program_.get(), &raw, error_.out()), error_));
  const Binding binding(raw);
  for (uint32_t i = 0; i < 2; ++i) ASSERT_TRUE(is_ok(quartet_binding_set_input(raw, i, &in_[i], error_.out()), error_));
  auto out = empty_tensor();
  ASSERT_TRUE(is_ok(quartet_binding_prepare(raw, error_.out()), error_));
  ASSERT_TRUE(is_ok(quartet_binding_get_output(raw, 0, &out, error_.out()), error_));
  EXPECT_EQ(out.dims[0], -1);
  for (const int64_t trips : {4, 400, 2}) {
    trips_ = trips;
    ASSERT_TRUE(is_ok(quartet_binding_run(raw, error_.out()), error_));
    ASSERT_TRUE(is_ok(quartet_binding_get_output(raw, 0, &out, error_.out()), error_));
    EXPECT_EQ(out.dims[0], trips);
    EXPECT_EQ(out.bytes, static_cast<uint64_t>(trips) * 12);
    EXPECT_EQ(static_cast<const float*>(out.data)[3 * trips - 1], 4.0F * static_cast<float>(trips - 1));
  }
}

// y = x * w + w for an input w that may be left out, and then is {1, 2, 3}.
Graph graph_with_default(quartet_context* context) {
  Error error;
  quartet_builder* raw = nullptr;
  EXPECT_TRUE(is_ok(quartet_builder_create(context, &raw, error.out()), error));
  const Builder builder(raw);
  int64_t n = 0;
  EXPECT_TRUE(is_ok(quartet_builder_dim_symbol(raw, "n", 1, &n, error.out()), error));
  int32_t x = 0, w = 0, c = 0;
  const float numbers[] = {1, 2, 3};
  const int64_t three = 3;
  EXPECT_TRUE(is_ok(quartet_builder_input(raw, "x", 1, QUARTET_DTYPE_F32, 1, &n, &x, error.out()), error));
  EXPECT_TRUE(is_ok(quartet_builder_input(raw, "w", 1, QUARTET_DTYPE_F32, 1, &n, &w, error.out()), error));
  EXPECT_TRUE(is_ok(quartet_builder_constant(raw, QUARTET_DTYPE_F32, 1, &three, numbers, sizeof numbers, 0, nullptr,
                                             nullptr, &c, error.out()),
                    error));
  EXPECT_TRUE(
      fails(quartet_builder_input_default(raw, w, x, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "no constant"));
  EXPECT_TRUE(
      fails(quartet_builder_input_default(raw, c, c, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "no input"));
  EXPECT_TRUE(is_ok(quartet_builder_input_default(raw, w, c, error.out()), error));
  EXPECT_TRUE(fails(quartet_builder_input_default(raw, w, c, error.out()), error, QUARTET_E_INVALID_ARGUMENT, "twice"));
  int32_t values[] = {x, w};
  EXPECT_TRUE(is_ok(quartet_builder_op(raw, "mul", 3, values, 2, nullptr, 0, values, 1, error.out()), error));
  EXPECT_TRUE(is_ok(quartet_builder_op(raw, "add", 3, values, 2, nullptr, 0, values, 1, error.out()), error));
  EXPECT_TRUE(is_ok(quartet_builder_output(raw, values[0], "y", 1, error.out()), error));
  quartet_graph* graph = nullptr;
  EXPECT_TRUE(is_ok(quartet_builder_finish(raw, &graph, error.out()), error));
  return Graph(graph);
}

TEST_F(RunTest, AnInputLeftOutTakesItsDefault) {
  const Graph graph = graph_with_default(context_.get());
  program_ = compile(graph);
  auto info = make_struct<quartet_tensor_info>();
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(is_ok(quartet_graph_input_info(graph.get(), i, &info, error_.out()), error_));
    EXPECT_EQ(info.flags, i == 1 ? QUARTET_TENSOR_OPTIONAL : 0U);
    ASSERT_TRUE(is_ok(quartet_program_input_info(program_.get(), i, &info, error_.out()), error_));
    EXPECT_EQ(info.flags, i == 1 ? QUARTET_TENSOR_OPTIONAL : 0U);
  }
  // The same after a way through bytes.
  quartet_blob* blob = nullptr;
  ASSERT_TRUE(is_ok(quartet_program_serialize(program_.get(), &blob, error_.out()), error_));
  const Blob owned(blob);
  size_t size = 0;
  const void* bytes = quartet_blob_data(blob, &size);
  quartet_program* loaded = nullptr;
  ASSERT_TRUE(is_ok(
      quartet_program_load(context_.get(), bytes, size, nullptr, nullptr, QUARTET_LOAD_TRUSTED, &loaded, error_.out()),
      error_));
  const Program again(loaded);
  std::vector<float> x{1, 10, 100}, w{5, 5, 5}, y(3);
  for (const quartet_program* program : {program_.get(), again.get()}) {
    quartet_tensor in[] = {tensor_of(x, {3}), empty_tensor()};
    auto out = tensor_of(y, {3});
    ASSERT_TRUE(is_ok(quartet_run_sync(program, in, 2, &out, 1, error_.out()), error_));
    EXPECT_EQ(y, (std::vector<float>{2, 22, 303}));
    ASSERT_TRUE(is_ok(quartet_program_output_shapes(program, in, 2, &out, 1, error_.out()), error_));
    EXPECT_EQ(out.dims[0], 3);
    in[1] = tensor_of(w, {3});
    ASSERT_TRUE(is_ok(quartet_run_sync(program, in, 2, &out, 1, error_.out()), error_));
    EXPECT_EQ(y, (std::vector<float>{10, 55, 505}));
    // The default's extent counts like one given.
    in[0] = tensor_of(x, {2});
    in[1] = empty_tensor();
    EXPECT_TRUE(
        fails(quartet_run_sync(program, in, 2, &out, 1, error_.out()), error_, QUARTET_E_INVALID_ARGUMENT, "axis 0"));
    in[0] = empty_tensor();
    EXPECT_FALSE(quartet_run_sync(program, in, 2, &out, 1, error_.out()) == QUARTET_OK);

    quartet_binding* raw = nullptr;
    ASSERT_TRUE(is_ok(quartet_binding_create(program, &raw, error_.out()), error_));
    const Binding binding(raw);
    in[0] = tensor_of(x, {3});
    ASSERT_TRUE(is_ok(quartet_binding_set_input(raw, 0, &in[0], error_.out()), error_));
    ASSERT_TRUE(is_ok(quartet_binding_run(raw, error_.out()), error_));
    ASSERT_TRUE(is_ok(quartet_binding_get_output(raw, 0, &out, error_.out()), error_));
    EXPECT_EQ(static_cast<const float*>(out.data)[2], 303);
    in[1] = tensor_of(w, {3});
    ASSERT_TRUE(is_ok(quartet_binding_set_input(raw, 1, &in[1], error_.out()), error_));
    ASSERT_TRUE(is_ok(quartet_binding_run(raw, error_.out()), error_));
    EXPECT_EQ(static_cast<const float*>(out.data)[2], 505);
    in[1] = empty_tensor();
    ASSERT_TRUE(is_ok(quartet_binding_set_input(raw, 1, &in[1], error_.out()), error_));
    ASSERT_TRUE(is_ok(quartet_binding_run(raw, error_.out()), error_));
    EXPECT_EQ(static_cast<const float*>(out.data)[2], 303);
  }
}

TEST_F(RunTest, AnInitializerThatIsAnInputMayBeGivenIfAsked) {
  test::OnnxModel model(13);
  model.input("x", {"2"}).input("w", {"2"}).initializer(test::floats("w", {2}, {3, 4}));
  model.node(test::OnnxNode("Mul", {"x", "w"}, {"y"})).output("y");
  const std::vector<uint8_t> bytes = model.bytes();
  quartet_options* raw_options = nullptr;
  ASSERT_TRUE(is_ok(quartet_options_create(&raw_options, error_.out()), error_));
  const OptionsHandle options(raw_options);
  ASSERT_TRUE(is_ok(quartet_options_set_i64(raw_options, QUARTET_OPTION_INITIALIZER_INPUTS, 1, error_.out()), error_));
  for (const quartet_options* given : {static_cast<quartet_options*>(nullptr), options.get()}) {
    quartet_graph* raw = nullptr;
    ASSERT_TRUE(is_ok(quartet_graph_import_onnx(context_.get(), bytes.data(), bytes.size(), given, &raw, error_.out()),
                      error_));
    const Graph graph(raw);
    const uint32_t count = given == nullptr ? 1 : 2;
    ASSERT_EQ(quartet_graph_input_count(raw), count);
    program_ = compile(graph);
    std::vector<float> x{10, 100}, w{1, 2}, y(2);
    quartet_tensor in[] = {tensor_of(x, {2}), empty_tensor()};
    auto out = tensor_of(y, {2});
    ASSERT_TRUE(is_ok(quartet_run_sync(program_.get(), in, count, &out, 1, error_.out()), error_));
    EXPECT_EQ(y, (std::vector<float>{30, 400}));
    if (count == 1) continue;
    in[1] = tensor_of(w, {2});
    ASSERT_TRUE(is_ok(quartet_run_sync(program_.get(), in, count, &out, 1, error_.out()), error_));
    EXPECT_EQ(y, (std::vector<float>{10, 200}));
  }
}

}  // namespace
}  // namespace quartet::capi_test
