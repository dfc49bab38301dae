// Little-endian byte streams. The writer never fails; the reader is bounded and sticky: the first read past the end or
// over a stated limit makes every later read return zero, and `status()` says what went wrong. Readers of untrusted
// bytes check counts against `remaining()` through `read_count`, so a hostile length never allocates.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/status.h"

namespace quartet {

using Bytes = std::vector<uint8_t>;

static_assert(std::endian::native == std::endian::little);

class ByteWriter {
 public:
  void u8(uint8_t v) { data_.push_back(v); }
  void u16(uint16_t v) { raw(&v, sizeof v); }
  void u32(uint32_t v) { raw(&v, sizeof v); }
  void u64(uint64_t v) { raw(&v, sizeof v); }
  void i32(int32_t v) { raw(&v, sizeof v); }
  void i64(int64_t v) { raw(&v, sizeof v); }
  void f64(double v) { raw(&v, sizeof v); }
  void digest(const Digest& d) { u64(d.lo), u64(d.hi); }
  // Length-prefixed (u64) bytes and text.
  void bytes(std::span<const uint8_t> v) { u64(v.size()), raw(v.data(), v.size()); }
  void text(std::string_view v) { u64(v.size()), raw(v.data(), v.size()); }
  void raw(const void* data, size_t size) {
    if (size == 0) return;
    const size_t at = data_.size();
    data_.resize(at + size);
    std::memcpy(data_.data() + at, data, size);
  }
  void align(size_t alignment) { data_.resize((data_.size() + alignment - 1) / alignment * alignment); }
  size_t size() const { return data_.size(); }
  const Bytes& data() const { return data_; }
  Bytes take() { return std::move(data_); }

 private:
  Bytes data_;
};

class ByteReader {
 public:
  // `what` names the format in error messages and must outlive the reader.
  ByteReader(std::span<const uint8_t> data, const char* what) : data_(data), what_(what) {}

  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  int32_t i32() { return number<int32_t>(); }
  int64_t i64() { return number<int64_t>(); }
  double f64() { return number<double>(); }
  Digest digest() {
    Digest d;
    d.lo = u64();
    d.hi = u64();
    return d;
  }
  // Length-prefixed views into the input.
  std::span<const uint8_t> bytes();
  std::string_view text();
  std::span<const uint8_t> raw(size_t size);
  // A u64 count of elements that each take at least `min_bytes` (>= 1); fails when they cannot fit in what remains.
  size_t count(size_t min_bytes);
  // Fails the stream with a reason; the first reason is kept.
  void fail(std::string_view reason);

  size_t offset() const { return offset_; }
  size_t remaining() const { return failed_ ? 0 : data_.size() - offset_; }
  bool ok() const { return !failed_; }
  Status status() const;
  // Ok only when nothing failed and every byte was read.
  Status finish() const;

 private:
  template <class T>
  T number() {
    T value{};
    if (const auto view = raw(sizeof(T)); view.size() == sizeof(T)) std::memcpy(&value, view.data(), sizeof(T));
    return value;
  }

  std::span<const uint8_t> data_;
  const char* what_;
  size_t offset_ = 0;
  bool failed_ = false;
  std::string reason_;
};

}  // namespace quartet
