// The activation functions that recurrent ops name.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/node.h"

namespace quartet::import::onnx {

struct Activation {
  enum class Kind : uint8_t {
    relu,
    tanh,
    sigmoid,
    affine,
    leaky_relu,
    thresholded_relu,
    scaled_tanh,
    hard_sigmoid,
    elu,
    softsign,
    softplus,
  };
  Kind kind = Kind::tanh;
  float alpha = 0, beta = 0;
};

// By name, in any case. Each function that has an alpha or beta takes the next of those given, or has its default.
Result<std::vector<Activation>> read_activations(const std::vector<std::string>& names, const std::vector<float>& alpha,
                                                 const std::vector<float>& beta);

Result<ValueId> apply(NodeContext& c, const Activation& f, ValueId x);

}  // namespace quartet::import::onnx
