#include "capi/poll_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "capi/future.h"

namespace quartet::capi {

namespace {

// An event descriptor counts: 1 is readable, and reading takes it back to 0. Neither can fail on a live one.
void raise_event(int descriptor) { eventfd_write(descriptor, 1); }
void lower_event(int descriptor) {
  eventfd_t count = 0;
  eventfd_read(descriptor, &count);
}

}  // namespace

PollQueue::~PollQueue() {
  while (pop() != nullptr) {
  }
  if (descriptor_ >= 0) close(descriptor_);
}

void PollQueue::push(std::unique_ptr<DoneCallback> callback) noexcept {
  const std::lock_guard lock(mutex_);
  DoneCallback* added = callback.release();
  added->next = nullptr;
  if (first_ == nullptr) {
    first_ = added;
    if (descriptor_ >= 0) raise_event(descriptor_);
  } else {
    last_->next = added;
  }
  last_ = added;
}

std::unique_ptr<DoneCallback> PollQueue::pop() noexcept {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<DoneCallback> taken(first_);
  if (taken == nullptr) return nullptr;
  first_ = std::exchange(taken->next, nullptr);
  if (first_ == nullptr && descriptor_ >= 0) lower_event(descriptor_);
  return taken;
}

Result<int> PollQueue::descriptor() {
  const std::lock_guard lock(mutex_);
  if (descriptor_ >= 0) return descriptor_;
  const int made = eventfd(first_ != nullptr ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (made < 0) return make_error(Code::io, "eventfd: %s", std::strerror(errno));
  descriptor_ = made;
  return made;
}

}  // namespace quartet::capi
