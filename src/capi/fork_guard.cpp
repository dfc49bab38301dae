#include "capi/fork_guard.h"

#include <sys/mman.h>
#include <unistd.h>

namespace quartet::capi {

namespace {
constexpr size_t kPage = 4096;
}

Status ForkGuard::arm() {
  pid_ = getpid();
  void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return make_error(Code::out_of_memory, "no page for the fork guard");
#ifdef MADV_WIPEONFORK
  if (madvise(page, kPage, MADV_WIPEONFORK) == 0) {
    page_ = static_cast<volatile unsigned char*>(page);
    *page_ = 1;
    return {};
  }
#endif
  munmap(page, kPage);  // a kernel without it: ask for the pid each time
  return {};
}

ForkGuard::~ForkGuard() {
  if (page_ != nullptr) munmap(const_cast<unsigned char*>(page_), kPage);
}

bool ForkGuard::in_child() const {
  if (page_ != nullptr) return *page_ == 0;
  return pid_ != 0 && pid_ != getpid();
}

}  // namespace quartet::capi
