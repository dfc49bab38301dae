// What crosses the boundary into a code generator: kernel IR and a target in, one closed blob or an error out. Bytes on
// both sides, so that libquartet_llvm.so exports one C function and an isolation worker can call the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "device/device.h"

namespace quartet::codegen {

enum class Product : uint8_t { blob = 0, llvm_text = 1, assembly = 2 };

struct Request {
  std::string compiler_id;  // must equal the generator's own
  CpuModel target;
  Product product = Product::blob;
  std::vector<Bytes> kernels;  // serialized kernel::Kernel each
};

// Position-independent machine code and its read-only data, ready to be mapped: refers to nothing outside itself. All
// of it may be mapped read+execute.
struct Blob {
  Bytes image;                    // starts at a 64-byte boundary once mapped
  std::vector<uint64_t> entries;  // offset of each kernel's function, in request order
};

struct Response {
  Status status;     // failure: stage "codegen", message names the kernel
  Blob blob;         // product blob
  std::string text;  // the other products
};

Bytes serialize(const Request& request);
Result<Request> read_request(std::span<const uint8_t> bytes);
Bytes serialize(const Response& response);
Result<Response> read_response(std::span<const uint8_t> bytes);

// The exported function: reads `size` bytes of a serialized Request, gives a malloc'ed serialized Response through
// `response` (free it with free()). Returns 0, or nonzero only if there is no memory for a response.
using CompileFunction = int32_t (*)(const uint8_t* request, uint64_t size, uint8_t** response, uint64_t* response_size);
inline constexpr const char* kCompileFunctionName = "quartet_llvm_compile";

}  // namespace quartet::codegen
