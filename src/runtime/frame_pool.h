// Frames and workspaces that runs of one program leave for the next.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "runtime/allocator.h"
#include "runtime/frame.h"

namespace quartet::runtime {

// Thread-safe. Keeps a few frames, by dims and number of vEUs, and never more workspaces than runs were in progress at
// once.
class FramePool {
 public:
  // A frame for these dims, with workspace set if `own_workspace`.
  struct Lease {
    std::unique_ptr<Frame> frame;
    Block workspace;
  };
  Result<Lease> take(const LoadedProgram& program, std::span<const int64_t> dims, int vEUs, bool own_workspace);
  void give_back(Lease lease);
  // Frees all that is kept.
  void trim();

 private:
  static constexpr size_t kMaxFrames = 16;
  Result<Block> take_workspace(const LoadedProgram& program, uint64_t bytes);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> frames_;  // the last used stands last
  std::vector<Block> workspaces_;
};

}  // namespace quartet::runtime
