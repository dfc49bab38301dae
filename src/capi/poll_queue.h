// Callbacks that wait for quartet_context_poll.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "base/status.h"

namespace quartet::capi {

struct DoneCallback;

class PollQueue {
 public:
  PollQueue() = default;
  ~PollQueue();
  PollQueue(const PollQueue&) = delete;
  PollQueue& operator=(const PollQueue&) = delete;

  // Needs no memory.
  void push(std::unique_ptr<DoneCallback> callback) noexcept;
  // Null when there is none.
  std::unique_ptr<DoneCallback> pop() noexcept;
  // A descriptor that is readable while the queue is not empty; made at the first call.
  Result<int> descriptor();

 private:
  std::mutex mutex_;
  DoneCallback* first_ = nullptr;
  DoneCallback* last_ = nullptr;
  int descriptor_ = -1;
};

}  // namespace quartet::capi
