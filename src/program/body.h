// Checks of the body; part of verify.
#pragma once

#include "program/program.h"

namespace quartet::program {

// How many buffers of a kind the program has.
size_t buffer_count(const Program& program, Storage storage);

// Control is properly nested, every stage stands in one `run`, in order, and what instructions, loops and views name
// exists, is large enough and is of a kind that fits. Stages and views have been checked by themselves.
Status verify_body(const Program& program);

}  // namespace quartet::program
