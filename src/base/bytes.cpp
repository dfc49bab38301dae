#include "base/bytes.h"

namespace quartet {

std::span<const uint8_t> ByteReader::raw(size_t size) {
  if (failed_ || size > data_.size() - offset_) {
    fail(format("%zu bytes wanted at offset %zu, %zu left", size, offset_, data_.size() - offset_));
    return {};
  }
  const auto view = data_.subspan(offset_, size);
  offset_ += size;
  return view;
}

std::span<const uint8_t> ByteReader::bytes() {
  const uint64_t size = u64();
  if (size > remaining()) {
    fail(format("a length of %llu at offset %zu passes the end", static_cast<unsigned long long>(size), offset_));
    return {};
  }
  return raw(static_cast<size_t>(size));
}

std::string_view ByteReader::text() {
  const auto view = bytes();
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

size_t ByteReader::count(size_t min_bytes) {
  const uint64_t count = u64();
  if (count > remaining() / min_bytes) {
    fail(format("a count of %llu at offset %zu passes the end", static_cast<unsigned long long>(count), offset_));
    return 0;
  }
  return static_cast<size_t>(count);
}

void ByteReader::fail(std::string_view reason) {
  if (failed_) return;
  failed_ = true;
  reason_ = reason;
}

Status ByteReader::status() const {
  if (!failed_) return {};
  return make_error(Code::corrupt, "%s: %s", what_, reason_.c_str());
}

Status ByteReader::finish() const {
  QUARTET_TRY(status());
  if (offset_ != data_.size())
    return make_error(Code::corrupt, "%s: %zu unread bytes at the end", what_, data_.size() - offset_);
  return {};
}

}  // namespace quartet
