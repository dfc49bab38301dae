// The exported function as a stranger meets it: hostile bytes, refused requests, products, threads, determinism.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "base/compiler_id.h"
#include "compiled.h"
#include "kernel/builder.h"

extern "C" int32_t quartet_llvm_compile(const uint8_t* request, uint64_t size, uint8_t** response,
                                        uint64_t* response_size);

namespace quartet::testing {
namespace {

using codegen::Product;
using codegen::Request;
using codegen::Response;
using kernel::Builder;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Runs;
using kernel::Scope;

Kernel sample(const std::string& name, double factor) {
  Builder b(name);
  b.set_dims(1);
  const IntExpr n = IntExpr::symbol(0);
  const auto x = b.buffer({"x", DType::f32, Scope::argument_in, n, 64}),
             z = b.buffer({"z", DType::f32, Scope::argument_out, n, 64});
  b.loop(LoopKind::vector, b.i64(0), b.dim(0), 1, Runs::maybe, [&](kernel::ValueId i) {
    b.store(z, i, b.unary(ScalarOp::exp, b.mul(b.load(x, i), b.real(DType::f32, factor))));
  });
  auto kernel = b.finish(1);
  return kernel.ok() ? kernel.take() : Kernel();
}

// Sends any bytes; the response must always be one.
Result<Response> send_bytes(const Bytes& bytes) {
  uint8_t* response = nullptr;
  uint64_t size = 0;
  EXPECT_EQ(quartet_llvm_compile(bytes.data(), bytes.size(), &response, &size), 0);
  auto read = codegen::read_response({response, static_cast<size_t>(size)});
  std::free(response);
  return read;
}

void expect_failure(const Request& request, Code code, const std::string& words) {
  const auto response = send(request);
  ASSERT_TRUE(response.ok()) << response.status().message();
  ASSERT_FALSE(response->status.ok());
  EXPECT_EQ(response->status.code(), code) << response->status.message();
  EXPECT_NE(response->status.message().find(words), std::string::npos) << response->status.message();
  EXPECT_EQ(response->status.error()->stage, "codegen");
}

TEST(Request, AnotherCompilersIdIsRefused) {
  const Kernel kernel = sample("k", 1);
  Request request = request_for({&kernel, 1}, Isa::avx2);
  request.compiler_id = "0123";
  expect_failure(request, Code::version_mismatch, "0123");
}

TEST(Request, TargetsThatDoNotFitTogetherAreRefused) {
  const Kernel kernel = sample("k", 1);
  const Request good = request_for({&kernel, 1}, Isa::avx2);
  Request request = good;
  request.target.vector_bytes = 64;
  expect_failure(request, Code::unsupported, "64 bytes");
  request = good;
  request.target.features.push_back("+no-such-thing");
  expect_failure(request, Code::unsupported, "+no-such-thing");
  request = good;
  request.target.features.push_back("+avx512f");
  expect_failure(request, Code::invalid_argument, "+avx512f");
  request = good;
  request.target.features.push_back("-sse2");
  expect_failure(request, Code::invalid_argument, "-sse2");
}

TEST(Request, AKernelThatDoesNotVerifyIsNamed) {
  Kernel kernel = sample("the culprit", 1);
  kernel.body.body[0].operands.push_back(12345);
  expect_failure(request_for({&kernel, 1}, Isa::avx2), Code::invalid_argument, "the culprit");
}

// With floats in software every addition is a call: the linker refuses and says who calls what.
TEST(Request, CodeThatCallsIsRefused) {
  Builder b("the caller");
  const auto x = b.buffer({"x", DType::f32, Scope::argument_in, 64, 64}),
             z = b.buffer({"z", DType::f32, Scope::argument_out, 64, 64});
  b.loop(LoopKind::vector, b.i64(0), b.i64(64), 1, Runs::always,
         [&](kernel::ValueId i) { b.store(z, i, b.add(b.load(x, i), b.real(DType::f32, 1))); });
  const auto kernel = b.finish(1);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  Request request = request_for({&*kernel, 1}, Isa::sse2);
  request.target.features.push_back("+soft-float");
  expect_failure(request, Code::internal, "kernel 'the caller' is not closed: it calls __addsf3");
}

// Unrolled loops in unrolled loops: small text, unbounded code.
TEST(Request, CodeThatWouldGrowWithoutBoundIsRefused) {
  Builder b("bomb");
  const auto z = b.buffer({"z", DType::f32, Scope::argument_out, 64, 64});
  std::function<void(int)> nest = [&](int depth) {
    b.loop(LoopKind::unrolled, b.i64(0), b.i64(64), 1, Runs::always, [&](kernel::ValueId i) {
      if (depth > 0) return nest(depth - 1);
      b.store(z, i, b.real(DType::f32, 1));
    });
  };
  nest(6);
  const auto kernel = b.finish(1);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  expect_failure(request_for({&*kernel, 1}, Isa::avx2), Code::resource_exhausted, "'bomb'");
}

TEST(Request, EveryProduct) {
  const Kernel kernel = sample("k", 1);
  const auto text = send(request_for({&kernel, 1}, Isa::avx512, Product::llvm_text));
  ASSERT_TRUE(text.ok() && text->status.ok());
  EXPECT_NE(text->text.find("<16 x float>"), std::string::npos);
  const auto assembly = send(request_for({&kernel, 1}, Isa::avx512, Product::assembly));
  ASSERT_TRUE(assembly.ok() && assembly->status.ok());
  EXPECT_NE(assembly->text.find("zmm"), std::string::npos);
  const auto nothing = send(request_for({}, Isa::avx2));
  ASSERT_TRUE(nothing.ok() && nothing->status.ok());
  EXPECT_TRUE(nothing->blob.entries.empty());
}

TEST(Request, SameKernelsShareTheirCodeSameRequestsTheirBytes) {
  const std::vector<Kernel> kernels{sample("a", 1), sample("b", 2), sample("a", 1)};
  const auto first = send(request_for(kernels, Isa::avx512)), second = send(request_for(kernels, Isa::avx512));
  ASSERT_TRUE(first.ok() && first->status.ok() && second.ok());
  EXPECT_EQ(first->blob.entries.size(), 3u);
  EXPECT_EQ(first->blob.entries[0], first->blob.entries[2]);
  EXPECT_NE(first->blob.entries[0], first->blob.entries[1]);
  EXPECT_EQ(first->blob.image, second->blob.image);
  for (const uint64_t entry : first->blob.entries) EXPECT_EQ(entry % 64, 0u);
}

TEST(Request, TruncatedBytesFail) {
  const Kernel kernel = sample("k", 1);
  const Bytes bytes = serialize(request_for({&kernel, 1}, Isa::avx2));
  for (size_t size = 0; size < bytes.size(); size += size < 64 ? 1 : 13) {
    const auto response = send_bytes(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)));
    ASSERT_TRUE(response.ok());
    EXPECT_FALSE(response->status.ok());
  }
}

TEST(Request, DamagedBytesNeverCrash) {
  const Kernel kernel = sample("k", 1);
  const Bytes bytes = serialize(request_for({&kernel, 1}, Isa::avx2));
  std::mt19937_64 random(5);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    Bytes damaged = bytes;
    for (int flips = 0; flips < 1 + i % 3; ++flips)
      damaged[random() % damaged.size()] ^= static_cast<uint8_t>(1u << (random() % 8));
    const auto response = send_bytes(damaged);
    ASSERT_TRUE(response.ok()) << response.status().message();
    refused += !response->status.ok();
  }
  EXPECT_GT(refused, 100);
}

TEST(Request, NowhereToPutTheResponse) {
  uint8_t byte = 0;
  uint8_t* response = nullptr;
  uint64_t size = 0;
  EXPECT_NE(quartet_llvm_compile(&byte, 1, nullptr, &size), 0);
  EXPECT_NE(quartet_llvm_compile(&byte, 1, &response, nullptr), 0);
  EXPECT_NE(quartet_llvm_compile(nullptr, 1, &response, &size), 0);
}

TEST(Request, ThreadsCompileAtOnce) {
  const std::vector<Kernel> kernels{sample("a", 1), sample("b", 2)};
  const Request request = request_for(kernels, Isa::avx2);
  const auto expected = send(request);
  ASSERT_TRUE(expected.ok() && expected->status.ok());
  std::vector<std::thread> threads;
  std::vector<Bytes> images(4);
  for (Bytes& image : images) {
    threads.emplace_back([&request, &image] {
      for (int i = 0; i < 3; ++i)
        if (const auto response = send(request); response.ok()) image = response->blob.image;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Bytes& image : images) EXPECT_EQ(image, expected->blob.image);
}

}  // namespace
}  // namespace quartet::testing
