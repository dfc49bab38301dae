// What the emitters of a reduction share.
#pragma once

#include "codegen/cpu/body_shape.h"
#include "codegen/cpu/emitter.h"

namespace quartet::codegen {

struct Emitter::Reduction {
  const kernel::Statement& s;
  Value lo, hi;
  BodyShape shape;
  bool along = false;    // lanes run along the reduction; else each lane (or the scalar) has a reduction of its own
  bool indexed = false;  // argmax, argmin
  llvm::Type* index_type = nullptr;  // of State::index, scalar

  int interleave() const { return s.interleave; }
  bool wants_max() const { return s.reduce == kernel::ReduceOp::argmax; }
};

}  // namespace quartet::codegen
