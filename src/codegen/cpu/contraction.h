// What the emitters of a contraction share.
#pragma once

#include "codegen/cpu/emitter.h"

namespace quartet::codegen {

// rows x (vectors * lanes) accumulators from `column` on. `last`: the lanes of the last vector that are inside.
struct Emitter::Tile {
  const kernel::Statement& s;
  int lanes = 1;
  int vectors = 1;
  llvm::Value* column = nullptr;
  llvm::Value* last = nullptr;  // null: all

  int rows() const { return s.rows; }
  size_t at(int row, int vector) const {
    return static_cast<size_t>(row) * static_cast<size_t>(vectors) + static_cast<size_t>(vector);
  }
  Lanes active(int vector) const { return {lanes, vector == vectors - 1 ? last : nullptr}; }
};

}  // namespace quartet::codegen
