// Compiles kernels through the library's one function, runs their code, and holds it to the interpreter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/kernel_abi.h"
#include "codegen/request.h"
#include "device/device.h"
#include "kernel/ir.h"

namespace quartet::testing {

inline constexpr Isa kClasses[] = {Isa::sse2, Isa::avx2, Isa::avx512};
// Whether this machine runs code of the class.
bool runs_here(Isa isa);
// A request for generic processors of the class.
codegen::Request request_for(std::span<const kernel::Kernel> kernels, Isa isa,
                             codegen::Product product = codegen::Product::blob);
Result<codegen::Response> send(const codegen::Request& request);

// An image mapped read+execute.
class Image {
 public:
  static Result<std::shared_ptr<Image>> map(const codegen::Blob& blob);
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  KernelFunction function(size_t kernel) const;

 private:
  Image() = default;
  void* memory_ = nullptr;
  size_t size_ = 0;
  std::vector<uint64_t> entries_;
};

Result<std::shared_ptr<Image>> compile(std::span<const kernel::Kernel> kernels, Isa isa);

// Memory whose end (rounded down to the alignment) touches an inaccessible page, and whose start follows one.
class Guarded {
 public:
  Guarded(size_t bytes, size_t alignment);
  ~Guarded();
  Guarded(Guarded&& other) noexcept;
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  std::span<uint8_t> bytes() const { return {data_, size_}; }

 private:
  void* base_ = nullptr;
  size_t mapped_ = 0;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// One argument's bytes.
using Argument = std::vector<uint8_t>;
template <class T>
Argument argument(const std::vector<T>& values) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  return Argument(bytes, bytes + values.size() * sizeof(T));
}
// `elements` values of the type that go through its special ones (NaN, infinities, zeros, subnormals, extremes) and
// many ordinary ones.
Argument mixed(DType dtype, size_t elements, uint64_t seed);
// Ordinary ones only: of magnitude about 1, integers small.
Argument ordinary(DType dtype, size_t elements, uint64_t seed);

// Runs all tasks with the interpreter (of the expanded kernel) and with the code, and compares every writable argument
// bit for bit; any NaN equals any other. Empty if they agree, else the first difference.
std::string difference(const kernel::Kernel& kernel, KernelFunction function, Isa isa,
                       const std::vector<Argument>& arguments, const std::vector<int64_t>& dims);

}  // namespace quartet::testing
