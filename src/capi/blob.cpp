#include "capi/blob.h"

#include <memory>

namespace quartet::capi {

quartet_blob* make_blob(std::string bytes) {
  auto blob = std::make_unique<quartet_blob>();
  blob->bytes = std::move(bytes);
  return blob.release();
}

quartet_blob* make_blob(std::span<const uint8_t> bytes) {
  auto blob = std::make_unique<quartet_blob>();
  blob->bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return blob.release();
}

}  // namespace quartet::capi

const void* quartet_blob_data(const quartet_blob* blob, size_t* size) {
  blob = quartet::capi::valid_or_null(blob);
  if (size != nullptr) *size = blob != nullptr ? blob->bytes.size() : 0;
  return blob != nullptr ? blob->bytes.c_str() : nullptr;
}

void quartet_blob_release(quartet_blob* blob) { delete quartet::capi::valid_or_null(blob); }
