// A case: inputs and expected outputs of a model in a directory, and how near the outputs must come.
#pragma once

#include <string>
#include <vector>

#include "common.h"

namespace cli {

struct Tolerance {
  double rtol = 1e-3, atol = 0, scaled_atol = 1e-5;
};

struct Case {
  std::vector<quartet::Tensor> inputs;   // one an input of the program; empty where it takes its default
  std::vector<quartet::Tensor> outputs;  // as far as there are files
  std::vector<double> spreads;           // reference_spread of each output, 0 if not said
  Tolerance tolerance;
  bool expect_error = false;
};

// Reads input_i and output_i (.npy or .pb, in the model's order) and case.json if there is one. Throws with what is
// wrong, also when an input without a default has no file.
Case read_case(const std::string& directory, const quartet::Program& program, const Tolerance& tolerance = {});

// Why two tensors differ, or "". A difference |a - b| may be max(rtol |b| + atol + scaled_atol max|b|, 4 spread), b
// being expected; NaN equals NaN alone; integers and bools are compared exactly.
std::string difference(const quartet::Tensor& got, const quartet::Tensor& expected, const Tolerance& tolerance,
                       double spread);

}  // namespace cli
