#include "compiled.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "base/compiler_id.h"
#include "base/half.h"
#include "kernel/expand.h"
#include "reference/kernel_interpreter.h"

extern "C" int32_t quartet_llvm_compile(const uint8_t* request, uint64_t size, uint8_t** response,
                                        uint64_t* response_size);

namespace quartet::testing {
namespace {

size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

bool is_nan(DType dtype, const uint8_t* bytes) {
  if (dtype == DType::f64) {
    double v = 0;
    std::memcpy(&v, bytes, sizeof v);
    return std::isnan(v);
  }
  if (dtype == DType::f32) {
    float v = 0;
    std::memcpy(&v, bytes, sizeof v);
    return std::isnan(v);
  }
  if (dtype != DType::f16 && dtype != DType::bf16) return false;
  uint16_t v = 0;
  std::memcpy(&v, bytes, sizeof v);
  return std::isnan(dtype == DType::f16 ? f16_to_f32(v) : bf16_to_f32(v));
}

uint64_t bits_of(const uint8_t* bytes, size_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, size);
  return bits;
}

void put(Argument& out, DType dtype, int64_t bits) {
  const size_t at = out.size();
  out.resize(at + size_of(dtype));
  std::memcpy(out.data() + at, &bits, size_of(dtype));
}

}  // namespace

bool runs_here(Isa isa) { return host_cpu().isa >= isa; }

codegen::Request request_for(std::span<const kernel::Kernel> kernels, Isa isa, codegen::Product product) {
  codegen::Request request;
  request.compiler_id = compiler_id();
  request.target = *named_cpu(isa_name(isa));
  request.product = product;
  for (const kernel::Kernel& kernel : kernels) request.kernels.push_back(kernel::serialize(kernel));
  return request;
}

Result<codegen::Response> send(const codegen::Request& request) {
  const Bytes bytes = serialize(request);
  uint8_t* response = nullptr;
  uint64_t size = 0;
  if (quartet_llvm_compile(bytes.data(), bytes.size(), &response, &size) != 0)
    return Status(Code::out_of_memory, "no response");
  auto read = codegen::read_response({response, static_cast<size_t>(size)});
  std::free(response);
  return read;
}

Result<std::shared_ptr<Image>> Image::map(const codegen::Blob& blob) {
  std::shared_ptr<Image> image(new Image);
  image->size_ = round_up(blob.image.size(), page());
  image->memory_ = mmap(nullptr, image->size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (image->memory_ == MAP_FAILED) return Status(Code::out_of_memory, "mmap");
  std::memcpy(image->memory_, blob.image.data(), blob.image.size());
  if (mprotect(image->memory_, image->size_, PROT_READ | PROT_EXEC) != 0) return Status(Code::io, "mprotect");
  image->entries_ = blob.entries;
  return image;
}

Image::~Image() {
  if (memory_ && memory_ != MAP_FAILED) munmap(memory_, size_);
}

KernelFunction Image::function(size_t kernel) const {
  return reinterpret_cast<KernelFunction>(static_cast<uint8_t*>(memory_) + entries_[kernel]);
}

Result<std::shared_ptr<Image>> compile(std::span<const kernel::Kernel> kernels, Isa isa) {
  QUARTET_ASSIGN(const codegen::Response response, send(request_for(kernels, isa)));
  QUARTET_TRY(response.status);
  if (response.blob.entries.size() != kernels.size()) return Status(Code::internal, "an entry is missing");
  return Image::map(response.blob);
}

Guarded::Guarded(size_t bytes, size_t alignment) : size_(bytes) {
  const size_t body = round_up(bytes + alignment, page());
  mapped_ = body + 2 * page();
  base_ = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const start = static_cast<uint8_t*>(base_) + page();
  mprotect(start, body, PROT_READ | PROT_WRITE);
  data_ = start + (body - bytes) / alignment * alignment;
}

Guarded::~Guarded() {
  if (base_) munmap(base_, mapped_);
}

Guarded::Guarded(Guarded&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), mapped_(other.mapped_), data_(other.data_), size_(other.size_) {}

Argument mixed(DType dtype, size_t elements, uint64_t seed) {
  std::mt19937_64 random(seed * 7919 + static_cast<uint64_t>(dtype));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kReals[] = {0.0,          -0.0,          1.0,
                                      -1.0,         0.5,           -0.5,
                                      1.5,          2.5,           -2.5,
                                      kInfinity,    -kInfinity,    1e-40,
                                      -1e-40,       5e-8,          65504,
                                      65520,        1e30,          -1e30,
                                      127.5,        -128.5,        255.7,
                                      2147483648.0, -2147483649.0, 4294967296.0,
                                      9.3e18,       -9.3e18,       1.9e19,
                                      0.49999997,   8388609.0,     8388607.5,
                                      3.4e38,       1.0000001,     std::numeric_limits<double>::quiet_NaN()};
  static constexpr int64_t kWhole[] = {0,
                                       1,
                                       -1,
                                       2,
                                       -2,
                                       3,
                                       7,
                                       127,
                                       -128,
                                       255,
                                       32767,
                                       -32768,
                                       65535,
                                       2147483647,
                                       -2147483648LL,
                                       4294967295LL,
                                       16777217,
                                       33554435,
                                       9007199254740993LL,
                                       4611686018427387905LL,
                                       std::numeric_limits<int64_t>::max(),
                                       std::numeric_limits<int64_t>::min(),
                                       5,
                                       10,
                                       31,
                                       32,
                                       63,
                                       64};
  Argument out;
  for (size_t i = 0; i < elements; ++i) {
    const uint64_t any = random();
    if (dtype == DType::boolean) {
      put(out, dtype, static_cast<int64_t>(any >> 63));
    } else if (is_float(dtype)) {
      const double exponent = static_cast<double>(any % 64) / 4.0 - 8.0;
      const double ordinary = (any & 1 ? 1 : -1) * std::exp2(exponent);
      put(out, dtype, kernel::float_bits(dtype, any % 3 == 0 ? kReals[random() % std::size(kReals)] : ordinary));
    } else {
      put(out, dtype,
          any % 2 == 0 ? kWhole[random() % std::size(kWhole)] : static_cast<int64_t>(random() >> (random() % 64)));
    }
  }
  return out;
}

Argument ordinary(DType dtype, size_t elements, uint64_t seed) {
  std::mt19937_64 random(seed * 104729 + static_cast<uint64_t>(dtype));
  Argument out;
  for (size_t i = 0; i < elements; ++i) {
    const uint64_t any = random();
    if (dtype == DType::boolean) {
      put(out, dtype, static_cast<int64_t>(any >> 63));
    } else if (is_float(dtype)) {
      put(out, dtype, kernel::float_bits(dtype, static_cast<double>(any % 4096) / 1024.0 - 2.0));
    } else {
      put(out, dtype, static_cast<int64_t>(any % 17) - (is_signed_int(dtype) ? 8 : 0));
    }
  }
  return out;
}

std::string difference(const kernel::Kernel& kernel, KernelFunction function, Isa isa,
                       const std::vector<Argument>& arguments, const std::vector<int64_t>& dims) {
  auto expanded = kernel::expand(kernel, isa);
  if (!expanded.ok()) return expanded.status().message();
  std::vector<Argument> expected = arguments;
  std::vector<std::span<uint8_t>> views(expected.begin(), expected.end());
  const auto tasks = reference::interpret(*expanded, isa, views, dims);
  if (!tasks.ok()) return tasks.status().message();
  std::vector<Guarded> memory;
  std::vector<void*> pointers;
  size_t scratch = 0;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const kernel::Buffer& buffer = kernel.buffers[b];
    if (buffer.scope == kernel::Scope::task) {
      scratch += round_up(static_cast<size_t>(*buffer.elements.constant()) * size_of(buffer.dtype), 64);
      continue;
    }
    memory.emplace_back(arguments[b].size(), static_cast<size_t>(buffer.alignment));
    if (!arguments[b].empty()) std::memcpy(memory.back().bytes().data(), arguments[b].data(), arguments[b].size());
    pointers.push_back(memory.back().bytes().data());
  }
  const Guarded task_memory(scratch, 64);
  const int64_t half = *tasks / 2;  // in two calls, as two workers would
  function(pointers.data(), dims.data(), half, *tasks, task_memory.bytes().data());
  function(pointers.data(), dims.data(), 0, half, task_memory.bytes().data());
  for (size_t b = 0; b < memory.size(); ++b) {
    const DType dtype = kernel.buffers[b].dtype;
    const size_t size = size_of(dtype);
    for (size_t at = 0; at + size <= expected[b].size(); at += size) {
      const uint8_t* const want = expected[b].data() + at;
      const uint8_t* const got = memory[b].bytes().data() + at;
      if (std::memcmp(want, got, size) == 0 || (is_nan(dtype, want) && is_nan(dtype, got))) continue;
      return format("%s, %s: argument %zu, element %zu: 0x%llx, the interpreter says 0x%llx", kernel.name.c_str(),
                    isa_name(isa), b, at / size, static_cast<unsigned long long>(bits_of(got, size)),
                    static_cast<unsigned long long>(bits_of(want, size)));
    }
  }
  return {};
}

}  // namespace quartet::testing
