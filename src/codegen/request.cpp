#include "codegen/request.h"

namespace quartet::codegen {
namespace {

constexpr uint32_t kRequestMagic = 0x71524551;   // "QERq"
constexpr uint32_t kResponseMagic = 0x73524551;  // "QERs"
constexpr int32_t kLastCode = static_cast<int32_t>(Code::forked);

void write_status(ByteWriter& out, const Status& status) {
  out.i32(static_cast<int32_t>(status.code()));
  const Error none;
  const Error& error = status.ok() ? none : *status.error();
  out.text(error.message);
  out.text(error.stage);
  out.i64(error.node);
  out.u64(error.attachments.size());
  for (const Error::Attachment& attachment : error.attachments) {
    out.text(attachment.name);
    out.text(attachment.text);
  }
}

Status read_status(ByteReader& in) {
  const int32_t code = in.i32();
  if (code < 0 || code > kLastCode) in.fail("unknown status code");
  Error error;
  error.message = in.text();
  error.stage = in.text();
  error.node = in.i64();
  const size_t attachments = in.count(16);
  for (size_t i = 0; i < attachments && in.ok(); ++i) {
    Error::Attachment attachment;
    attachment.name = in.text();
    attachment.text = in.text();
    error.attachments.push_back(std::move(attachment));
  }
  if (!in.ok() || code == 0) return {};
  error.code = static_cast<Code>(code);
  return Status(std::move(error));
}

Bytes copy(std::span<const uint8_t> view) { return Bytes(view.begin(), view.end()); }

}  // namespace

Bytes serialize(const Request& request) {
  ByteWriter out;
  out.u32(kRequestMagic);
  out.text(request.compiler_id);
  write(out, request.target);
  out.u8(static_cast<uint8_t>(request.product));
  out.u64(request.kernels.size());
  for (const Bytes& kernel : request.kernels) out.bytes(kernel);
  return out.take();
}

Result<Request> read_request(std::span<const uint8_t> bytes) {
  ByteReader in(bytes, "code generation request");
  Request request;
  if (in.u32() != kRequestMagic) in.fail("it does not start with the mark of a request");
  request.compiler_id = in.text();
  request.target = read_cpu_model(in);
  const uint8_t product = in.u8();
  if (product > static_cast<uint8_t>(Product::assembly)) in.fail("unknown product");
  request.product = static_cast<Product>(product);
  const size_t kernels = in.count(8);
  for (size_t i = 0; i < kernels && in.ok(); ++i) request.kernels.push_back(copy(in.bytes()));
  QUARTET_TRY(in.finish());
  return request;
}

Bytes serialize(const Response& response) {
  ByteWriter out;
  out.u32(kResponseMagic);
  write_status(out, response.status);
  out.bytes(response.blob.image);
  out.u64(response.blob.entries.size());
  for (const uint64_t entry : response.blob.entries) out.u64(entry);
  out.text(response.text);
  return out.take();
}

Result<Response> read_response(std::span<const uint8_t> bytes) {
  ByteReader in(bytes, "code generation response");
  Response response;
  if (in.u32() != kResponseMagic) in.fail("it does not start with the mark of a response");
  response.status = read_status(in);
  response.blob.image = copy(in.bytes());
  const size_t entries = in.count(8);
  for (size_t i = 0; i < entries && in.ok(); ++i) {
    const uint64_t entry = in.u64();
    if (entry >= response.blob.image.size()) in.fail("a kernel's entry lies outside the image");
    response.blob.entries.push_back(entry);
  }
  response.text = in.text();
  QUARTET_TRY(in.finish());
  return response;
}

}  // namespace quartet::codegen
