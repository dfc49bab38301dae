// Requests and responses as bytes.
#include "codegen/request.h"

#include <gtest/gtest.h>

namespace quartet::codegen {
namespace {

Request sample_request() {
  Request request;
  request.compiler_id = "0123456789abcdef";
  request.target = *named_cpu("avx2");
  request.product = Product::assembly;
  request.kernels = {{1, 2, 3}, {}, {4}};
  return request;
}

Response sample_response() {
  Response response;
  Error error;
  error.code = Code::compiler;
  error.message = "kernel 'x' is not closed: it calls fmodf";
  error.stage = "codegen";
  error.node = 7;
  error.attachments = {{"log", "words"}};
  response.status = Status(error);
  response.blob = {{9, 8, 7, 6}, {0, 3}};
  response.text = "text";
  return response;
}

TEST(RequestBytes, RequestsComeBack) {
  const Request request = sample_request();
  const auto read = read_request(serialize(request));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->compiler_id, request.compiler_id);
  EXPECT_EQ(read->target.target_text(), request.target.target_text());
  EXPECT_EQ(read->product, request.product);
  EXPECT_EQ(read->kernels, request.kernels);
  EXPECT_EQ(serialize(*read), serialize(request));
}

TEST(RequestBytes, ResponsesComeBack) {
  const Response response = sample_response();
  const auto read = read_response(serialize(response));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->status.code(), Code::compiler);
  EXPECT_EQ(read->status.message(), response.status.message());
  EXPECT_EQ(read->status.error()->stage, "codegen");
  EXPECT_EQ(read->status.error()->node, 7);
  ASSERT_EQ(read->status.error()->attachments.size(), 1u);
  EXPECT_EQ(read->status.error()->attachments[0].text, "words");
  EXPECT_EQ(read->blob.image, response.blob.image);
  EXPECT_EQ(read->blob.entries, response.blob.entries);
  EXPECT_EQ(read->text, "text");
}

TEST(RequestBytes, EveryTruncationFails) {
  const Bytes request = serialize(sample_request()), response = serialize(sample_response());
  for (size_t size = 0; size < request.size(); ++size)
    EXPECT_FALSE(read_request(std::span(request).first(size)).ok()) << size;
  for (size_t size = 0; size < response.size(); ++size)
    EXPECT_FALSE(read_response(std::span(response).first(size)).ok()) << size;
}

TEST(RequestBytes, OneForTheOtherFails) {
  EXPECT_FALSE(read_request(serialize(sample_response())).ok());
  EXPECT_FALSE(read_response(serialize(sample_request())).ok());
}

TEST(RequestBytes, EntriesLieInTheImage) {
  Response response = sample_response();
  response.blob.entries[1] = response.blob.image.size();
  EXPECT_FALSE(read_response(serialize(response)).ok());
}

TEST(RequestBytes, FlippedBitsNeverCrash) {
  const Bytes request = serialize(sample_request()), response = serialize(sample_response());
  for (size_t at = 0; at < request.size(); ++at) {
    Bytes damaged = request;
    damaged[at] ^= static_cast<uint8_t>(1u << (at % 8));
    if (const auto read = read_request(damaged); read.ok()) EXPECT_LE(read->kernels.size(), damaged.size());
  }
  for (size_t at = 0; at < response.size(); ++at) {
    Bytes damaged = response;
    damaged[at] ^= static_cast<uint8_t>(1u << (at % 8));
    if (const auto read = read_response(damaged); read.ok()) EXPECT_LE(read->blob.image.size(), damaged.size());
  }
}

}  // namespace
}  // namespace quartet::codegen
