#include "runtime/frame_pool.h"

#include <algorithm>

namespace quartet::runtime {

Result<FramePool::Lease> FramePool::take(const LoadedProgram& program, std::span<const int64_t> dims, int vEUs,
                                         bool own_workspace) {
  Lease lease;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(frames_.rbegin(), frames_.rend(), [&](const std::unique_ptr<Frame>& frame) {
      return frame->vEUs() == vEUs && std::ranges::equal(frame->dims(), dims);
    });
    if (found != frames_.rend()) {
      lease.frame = std::move(*found);
      frames_.erase(std::next(found).base());
    }
  }
  if (lease.frame == nullptr) {
    QUARTET_ASSIGN(lease.frame, Frame::make(program, Frame::List::stages, dims, vEUs));
  }
  if (own_workspace) {
    QUARTET_ASSIGN(lease.workspace, take_workspace(program, lease.frame->workspace_bytes()));
    lease.frame->set_workspace(lease.workspace.data());
  }
  return lease;
}

// The smallest that is large enough, else a new one in place of the largest kept.
Result<Block> FramePool::take_workspace(const LoadedProgram& program, uint64_t bytes) {
  if (bytes == 0) return Block();
  Block outgrown;
  {
    const std::lock_guard lock(mutex_);
    auto best = workspaces_.end();
    for (auto block = workspaces_.begin(); block != workspaces_.end(); ++block) {
      const bool better =
          best == workspaces_.end() || (best->size() < bytes ? block->size() > best->size()
                                                             : block->size() >= bytes && block->size() < best->size());
      if (better) best = block;
    }
    if (best != workspaces_.end()) {
      outgrown = std::move(*best);
      workspaces_.erase(best);
    }
  }
  if (outgrown.size() >= bytes) return outgrown;
  outgrown = Block();
  return Block::allocate(program.allocator(), bytes, "the workspace of a run");
}

void FramePool::give_back(Lease lease) {
  std::unique_ptr<Frame> dropped;
  const std::lock_guard lock(mutex_);
  if (lease.workspace.size() != 0) workspaces_.push_back(std::move(lease.workspace));
  if (lease.frame == nullptr) return;
  frames_.push_back(std::move(lease.frame));
  if (frames_.size() <= kMaxFrames) return;
  dropped = std::move(frames_.front());
  frames_.erase(frames_.begin());
}

void FramePool::trim() {
  std::vector<std::unique_ptr<Frame>> frames;
  std::vector<Block> workspaces;
  const std::lock_guard lock(mutex_);
  frames.swap(frames_);
  workspaces.swap(workspaces_);
}

}  // namespace quartet::runtime
