// What verifier, planner and executor share about workspace slots.
#pragma once

#include <span>
#include <vector>

#include "program/program.h"

namespace quartet::program {

// The stages and waves in which a slot is named; first > last if no stage names it.
struct Lifetime {
  int32_t first_stage = 0, last_stage = -1;
  int32_t first_wave = 0, last_wave = -1;
  bool used() const { return first_stage <= last_stage; }
  // Neither is certainly over before the other begins.
  bool conflicts(const Lifetime& other) const {
    return used() && other.used() && first_wave <= other.last_wave && other.first_wave <= last_wave;
  }
};

// By slot. Stages that name no existing slot are passed over.
std::vector<Lifetime> lifetimes(const Program& program);

// The value of an expression over the program's dims; nothing on overflow or division by zero.
std::optional<int64_t> value_at(const IntExpr& e, std::span<const int64_t> dims);

// first_stage and last_stage of every slot are what `lifetimes` says.
Status check_lifetimes(const Program& program);

// With these dims, every used slot is aligned and inside the workspace, and no two conflicting slots overlap.
Status check_places(const Program& program, std::span<const int64_t> dims);

}  // namespace quartet::program
