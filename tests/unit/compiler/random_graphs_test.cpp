// Random graphs: compiled code against the interpreter, and bit for bit the same however it is planned, placed, cached
// or specialised. QUARTET_RANDOM_GRAPHS sets how many graphs, QUARTET_RANDOM_SEED where the seeds begin.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "reference/generator.h"
#include "reference/graph_ops.h"
#include "unit/compiler/rig.h"

namespace quartet {
namespace {

using reference::Tensor;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

compiler::Request request_for(std::shared_ptr<const graph::Graph> graph, bool fusion) {
  compiler::Request request{std::move(graph), {}, host_cpu()};
  EXPECT_TRUE(request.options.set(OptionId::fusion, fusion).ok());
  return request;
}

// Largest finite magnitude of the exact or inexact values that lead to the outputs.
long double largest_magnitude(const graph::Graph& graph, const std::vector<Tensor>& inputs) {
  long double largest = 1;
  const auto look = [&](const Tensor& tensor) {
    if (!is_float(tensor.dtype)) return;
    for (const int64_t element : tensor.elements)
      if (const long double v = std::fabs(reference::number_of(tensor.dtype, element)); std::isfinite(v))
        largest = std::max(largest, v);
  };
  const auto exposed = reference::expose(graph);
  EXPECT_TRUE(exposed.ok()) << exposed.status().message();
  if (!exposed.ok()) return largest;
  const auto values = reference::interpret(*exposed->graph, inputs);
  EXPECT_TRUE(values.ok()) << values.status().message();
  for (const Tensor& tensor : inputs) look(tensor);
  if (values.ok())
    for (const Tensor& tensor : *values) look(tensor);
  return largest;
}

long double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 2e-2L;
    case DType::bf16:
      return 1e-1L;
    default:
      return 1e-4L;
  }
}

// The coarsest float type that values of the graph have.
long double graph_tolerance(const graph::Graph& graph) {
  long double tolerance = 1e-4L;
  for (const graph::Value& value : graph.main().values)
    if (is_float(value.type.dtype)) tolerance = std::max(tolerance, tolerance_of(value.type.dtype));
  return tolerance;
}

void expect_near(const Tensor& got, const Tensor& want, bool exact, long double bound, const std::string& what) {
  ASSERT_EQ(got.dims, want.dims) << what;
  for (size_t i = 0; i < got.elements.size(); ++i) {
    if (got.elements[i] == want.elements[i]) continue;
    const long double a = reference::number_of(got.dtype, got.elements[i]);
    const long double b = reference::number_of(want.dtype, want.elements[i]);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (is_float(got.dtype) && !exact && a == b) continue;  // zeros of either sign
    ASSERT_TRUE(is_float(got.dtype) && !exact && std::fabs(a - b) <= bound)
        << what << ", element " << i << ": " << static_cast<double>(a) << ", expected " << static_cast<double>(b)
        << (exact ? " exactly" : "");
  }
}

// NaNs may differ in sign and payload: the definition of no op says more than NaN.
bool same(const Tensor& a, const Tensor& b) {
  if (a.dims != b.dims || a.elements.size() != b.elements.size()) return false;
  for (size_t i = 0; i < a.elements.size(); ++i)
    if (a.elements[i] != b.elements[i] &&
        !(is_float(a.dtype) && std::isnan(reference::number_of(a.dtype, a.elements[i])) &&
          std::isnan(reference::number_of(b.dtype, b.elements[i]))))
      return false;
  return true;
}

// How many graphs when nothing is said: a sanitizer makes each several times as slow.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr uint64_t kGraphs = 25;
#else
constexpr uint64_t kGraphs = 250;
#endif
#else
constexpr uint64_t kGraphs = 250;
#endif

class RandomGraphs : public testing::Test {
 protected:
  void check(uint64_t seed, const reference::GeneratorOptions& options) {
    const auto made = reference::random_graph(seed, options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const auto want = reference::interpret(*made->fixed, made->inputs);
    ASSERT_TRUE(want.ok()) << want.status().message();
    const auto base = compile_and_run("fused", request_for(made->fixed, true), made->inputs, {});
    if (HasFatalFailure()) return;
    const long double bound = graph_tolerance(*made->fixed) * largest_magnitude(*made->fixed, made->inputs);
    for (size_t o = 0; o < base.size(); ++o)
      expect_near(base[o], (*want)[o], made->exact[o], bound, "output " + std::to_string(o));
    if (HasFatalFailure()) return;
    expect_same(base, compile_and_run("unfused", request_for(made->fixed, false), made->inputs, {}), "unfused");
    expect_same(base, compile_and_run("symbolic", request_for(made->symbolic, true), made->inputs, {}), "symbolic");
    for (const int vEUs : {2, 8})
      expect_same(base, compile_and_run("vEUs", request_for(made->fixed, true), made->inputs, {vEUs, pool_}),
                  std::to_string(vEUs) + " vEUs");
    // Another engine on the same cache: the artifact is loaded, nothing is compiled.
    auto warm = test::make_engine(cache_);
    const auto loaded = warm->compile(request_for(made->fixed, true));
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ((*loaded)->origin, compiler::Origin::memory);
    EXPECT_FALSE(warm->llvm_loaded());
    const auto results = test::run(*(*loaded)->program, made->inputs);
    ASSERT_TRUE(results.ok()) << results.status().message();
    expect_same(base, *results, "warm");
  }

  void check_many(const reference::GeneratorOptions& options) {
    const uint64_t first = setting("QUARTET_RANDOM_SEED", 1), count = setting("QUARTET_RANDOM_GRAPHS", kGraphs);
    for (uint64_t seed = first; seed < first + count; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      check(seed, options);
      if (!HasFailure()) continue;
      const auto made = reference::random_graph(seed, options);
      if (made.ok()) std::fputs(graph::print(*made->symbolic).c_str(), stderr);
      break;
    }
  }

  std::vector<Tensor> compile_and_run(const char* what, const compiler::Request& request,
                                      const std::vector<Tensor>& inputs, const test::RunSettings& settings) {
    const auto program = engine_->compile(request);
    EXPECT_TRUE(program.ok()) << what << ": " << program.status().message();
    if (!program.ok()) return {};
    const auto results = test::run(*(*program)->program, inputs, settings);
    EXPECT_TRUE(results.ok()) << what << ": " << results.status().message();
    return results.ok() ? *results : std::vector<Tensor>();
  }

  static void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b, const std::string& what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    for (size_t o = 0; o < a.size(); ++o) ASSERT_TRUE(same(a[o], b[o])) << what << ", output " << o;
  }

  std::shared_ptr<cache::Cache> cache_ = cache::Cache::create({});
  std::unique_ptr<compiler::Engine> engine_ = test::make_engine(cache_);
  std::shared_ptr<runtime::WorkerPool> pool_ =
      std::make_shared<runtime::WorkerPool>(runtime::WorkerPool::Options{.threads = 7, .jobs = nullptr});
};

TEST_F(RandomGraphs, AgreeWithTheInterpreterAndWithThemselves) { check_many({}); }

TEST_F(RandomGraphs, WithIfsAndLoops) { check_many({.max_ops = 10, .control = true}); }

}  // namespace
}  // namespace quartet
