// Tells a forked child from the process that made an object, without a system call.
#pragma once

#include "base/status.h"

namespace quartet::capi {

class ForkGuard {
 public:
  ForkGuard() = default;
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  // Marks this process as the owner.
  Status arm();
  bool in_child() const;

 private:
  volatile unsigned char* page_ = nullptr;  // reads 1 here, 0 in a child, where the system wipes it
  long pid_ = 0;                            // where it cannot
};

}  // namespace quartet::capi
