#include "import/onnx/rnn_activations.h"

#include <algorithm>
#include <cctype>

namespace quartet::import::onnx {
namespace {

using Kind = Activation::Kind;

struct Row {
  const char* name;
  Kind kind;
  bool has_alpha, has_beta;
  float alpha, beta;
};

constexpr Row kRows[] = {
    {"relu", Kind::relu, false, false, 0, 0},
    {"tanh", Kind::tanh, false, false, 0, 0},
    {"sigmoid", Kind::sigmoid, false, false, 0, 0},
    {"affine", Kind::affine, true, true, 1, 0},
    {"leakyrelu", Kind::leaky_relu, true, false, 0.01f, 0},
    {"thresholdedrelu", Kind::thresholded_relu, true, false, 1, 0},
    {"scaledtanh", Kind::scaled_tanh, true, true, 1, 1},
    {"hardsigmoid", Kind::hard_sigmoid, true, true, 0.2f, 0.5f},
    {"elu", Kind::elu, true, false, 1, 0},
    {"softsign", Kind::softsign, false, false, 0, 0},
    {"softplus", Kind::softplus, false, false, 0, 0},
};

Result<ValueId> affine(NodeContext& c, ValueId x, float alpha, float beta) {
  QUARTET_ASSIGN(const ValueId scaled, c.with_scalar(OpCode::mul, x, alpha));
  return c.with_scalar(OpCode::add, scaled, beta);
}

// x < 0 ? negative : x
Result<ValueId> below_zero(NodeContext& c, ValueId x, ValueId negative) {
  QUARTET_ASSIGN(const ValueId below, c.with_scalar(OpCode::less, x, 0));
  return c.op(OpCode::select, {below, negative, x});
}

Result<ValueId> elu(NodeContext& c, ValueId x, float alpha) {
  QUARTET_ASSIGN(const ValueId power, c.op(OpCode::exp, {x}));
  QUARTET_ASSIGN(const ValueId less_one, c.with_scalar(OpCode::sub, power, 1));
  QUARTET_ASSIGN(const ValueId negative, c.with_scalar(OpCode::mul, less_one, alpha));
  return below_zero(c, x, negative);
}

// max(x, 0) + log(1 + e^-|x|)
Result<ValueId> softplus(NodeContext& c, ValueId x) {
  QUARTET_ASSIGN(const ValueId magnitude, c.op(OpCode::abs, {x}));
  QUARTET_ASSIGN(const ValueId minus, c.op(OpCode::neg, {magnitude}));
  QUARTET_ASSIGN(const ValueId power, c.op(OpCode::exp, {minus}));
  QUARTET_ASSIGN(const ValueId more, c.with_scalar(OpCode::add, power, 1));
  QUARTET_ASSIGN(const ValueId log, c.op(OpCode::log, {more}));
  QUARTET_ASSIGN(const ValueId positive, c.with_scalar(OpCode::max, x, 0));
  return c.op(OpCode::add, {positive, log});
}

}  // namespace

Result<std::vector<Activation>> read_activations(const std::vector<std::string>& names, const std::vector<float>& alpha,
                                                 const std::vector<float>& beta) {
  std::vector<Activation> made;
  size_t next_alpha = 0, next_beta = 0;
  for (const std::string& name : names) {
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
    const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return lower == r.name; });
    if (row == std::end(kRows)) return make_error(Code::unsupported, "the activation '%s'", name.substr(0, 40).c_str());
    Activation f{row->kind, row->alpha, row->beta};
    if (row->has_alpha && next_alpha < alpha.size()) f.alpha = alpha[next_alpha++];
    if (row->has_beta && next_beta < beta.size()) f.beta = beta[next_beta++];
    made.push_back(f);
  }
  return made;
}

Result<ValueId> apply(NodeContext& c, const Activation& f, ValueId x) {
  switch (f.kind) {
    case Kind::relu:
      return c.op(OpCode::relu, {x});
    case Kind::tanh:
      return c.op(OpCode::tanh, {x});
    case Kind::sigmoid:
      return c.op(OpCode::sigmoid, {x});
    case Kind::affine:
      return affine(c, x, f.alpha, f.beta);
    case Kind::leaky_relu: {
      QUARTET_ASSIGN(const ValueId negative, c.with_scalar(OpCode::mul, x, f.alpha));
      return below_zero(c, x, negative);
    }
    case Kind::thresholded_relu: {
      QUARTET_ASSIGN(const ValueId limit, c.scalar(c.type(x).dtype, f.alpha));
      QUARTET_ASSIGN(const ValueId above, c.op(OpCode::less, {limit, x}));
      QUARTET_ASSIGN(const ValueId zero, c.scalar(c.type(x).dtype, 0));
      return c.op(OpCode::select, {above, x, zero});
    }
    case Kind::scaled_tanh: {
      QUARTET_ASSIGN(const ValueId inside, c.with_scalar(OpCode::mul, x, f.beta));
      QUARTET_ASSIGN(const ValueId outside, c.op(OpCode::tanh, {inside}));
      return c.with_scalar(OpCode::mul, outside, f.alpha);
    }
    case Kind::hard_sigmoid: {
      QUARTET_ASSIGN(const ValueId line, affine(c, x, f.alpha, f.beta));
      QUARTET_ASSIGN(const ValueId high, c.with_scalar(OpCode::min, line, 1));
      return c.with_scalar(OpCode::max, high, 0);
    }
    case Kind::elu:
      return elu(c, x, f.alpha);
    case Kind::softsign: {
      QUARTET_ASSIGN(const ValueId magnitude, c.op(OpCode::abs, {x}));
      QUARTET_ASSIGN(const ValueId more, c.with_scalar(OpCode::add, magnitude, 1));
      return c.op(OpCode::div, {x, more});
    }
    case Kind::softplus:
      return softplus(c, x);
  }
  return make_error(Code::internal, "an activation of no kind");
}

}  // namespace quartet::import::onnx
