#include "base/blob.h"

#include <new>

#include "base/map_ahead.h"

namespace quartet {

Blob::Blob(size_t size) : size_(size) {
  if (size == 0) return;
  data_ = static_cast<uint8_t*>(::operator new(size));
  map_ahead(data_, size);
}

Blob::~Blob() { ::operator delete(data_); }

}  // namespace quartet
