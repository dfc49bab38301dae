// What verifier, planner and executor share about workspace slots.
//
// Moments number what a run does, in the order of the body: each wave of a `run` is one, and every other instruction
// has one of its own; entering a loop is one before those of its iterations. They say nothing about how often.
#pragma once

#include <span>
#include <vector>

#include "program/program.h"

namespace quartet::program {

// The moments in which a slot is in use; first > last if nothing names it.
struct Lifetime {
  int32_t first = 0, last = -1;
  bool used() const { return first <= last; }
  // Neither is certainly over before the other begins.
  bool conflicts(const Lifetime& other) const {
    return used() && other.used() && first <= other.last && other.first <= last;
  }
};

// By slot. The body must be well formed; names of slots that do not exist are passed over.
std::vector<Lifetime> lifetimes(const Program& program);

// The value of an expression over the program's dims; nothing on overflow or division by zero.
std::optional<int64_t> value_at(const IntExpr& e, std::span<const int64_t> dims);

// The lifetimes that slots claim are those that `lifetimes` finds, and slots of one region are not in use together.
Status check_lifetimes(const Program& program);

// With these dims, every used slot that is in no region is aligned and inside the workspace, and no two conflicting
// slots overlap.
Status check_places(const Program& program, std::span<const int64_t> dims);

}  // namespace quartet::program
