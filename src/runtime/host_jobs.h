// A host's own job system, lent to Quartet.
#pragma once

#include <cstdint>

namespace quartet::runtime {

// Thread-safe. Tasks may be run late, in any order, all from one thread, from inside submit, or never: whoever waits
// for a task that has not been started gets its work done without the host.
class HostJobs {
 public:
  virtual ~HostJobs() = default;
  // Takes a task to be run once; a greater priority is more urgent. False: not taken, and will not be run.
  virtual bool submit(void (*task)(void* argument), void* argument, int32_t priority) = 0;
  // How many tasks can run at the same time, >= 1.
  virtual int concurrency() = 0;
};

}  // namespace quartet::runtime
