// Bytes that are written once, right after they were allocated: a file that is read, a constant that is copied. Unlike
// a vector the memory starts uninitialised, and the pages of a large blob are mapped in one go.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace quartet {

class Blob {
 public:
  Blob() = default;
  // Throws std::bad_alloc.
  explicit Blob(size_t size);
  Blob(Blob&& other) noexcept { swap(other); }
  Blob& operator=(Blob&& other) noexcept {
    Blob(std::move(other)).swap(*this);
    return *this;
  }
  Blob(const Blob&) = delete;
  Blob& operator=(const Blob&) = delete;
  ~Blob();

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const uint8_t* begin() const { return data_; }
  const uint8_t* end() const { return data_ + size_; }
  std::span<const uint8_t> span() const { return {data_, size_}; }
  friend bool operator==(const Blob& a, std::span<const uint8_t> b) { return std::ranges::equal(a.span(), b); }
  friend bool operator==(const Blob& a, const Blob& b) { return a == b.span(); }
  // Keeps the first `size` bytes; the memory stays as it is.
  void truncate(size_t size) { size_ = size < size_ ? size : size_; }
  void swap(Blob& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace quartet
