#include "base/blob.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace quartet {
namespace {

// From here on the pages come straight from the system.
constexpr size_t kMapped = size_t{64} << 10;

}  // namespace

Blob::Blob(size_t size) : size_(size), capacity_(size) {
  if (size == 0) return;
  if (size < kMapped) {
    data_ = static_cast<uint8_t*>(std::malloc(size));
  } else {
    void* pages = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    data_ = pages == MAP_FAILED ? nullptr : static_cast<uint8_t*>(pages);
  }
  if (data_ == nullptr) throw std::bad_alloc();
}

Blob::~Blob() {
  if (capacity_ < kMapped)
    std::free(data_);
  else
    ::munmap(data_, capacity_);
}

}  // namespace quartet
