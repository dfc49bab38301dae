// The one function libquartet_llvm.so exports.
#include <cstdlib>
#include <cstring>

#include "codegen/cpu/backend.h"

namespace quartet::codegen {
namespace {

Response respond(std::span<const uint8_t> bytes) {
  Response response;
  const auto request = read_request(bytes);
  if (!request.ok()) {
    response.status = request.status().with_stage("codegen");
    return response;
  }
  auto compiled = compile(*request);
  if (compiled.ok()) return compiled.take();
  response.status = compiled.status().with_stage("codegen");
  return response;
}

}  // namespace
}  // namespace quartet::codegen

extern "C" __attribute__((visibility("default"))) int32_t quartet_llvm_compile(const uint8_t* request, uint64_t size,
                                                                               uint8_t** response,
                                                                               uint64_t* response_size) {
  using namespace quartet::codegen;  // NOLINT(google-build-using-namespace)
  if (!response || !response_size || (!request && size > 0)) return 1;
  *response = nullptr;
  *response_size = 0;
  const quartet::Bytes bytes = serialize(respond({request, static_cast<size_t>(size)}));
  auto* const out = static_cast<uint8_t*>(std::malloc(bytes.size()));
  if (!out) return 1;
  std::memcpy(out, bytes.data(), bytes.size());
  *response = out;
  *response_size = bytes.size();
  return 0;
}
