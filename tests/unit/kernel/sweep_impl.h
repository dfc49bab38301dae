// The body of both sweeps. Included by one translation unit each, with a machine of its own type, so that no code
// compiled for one processor serves the other.
#pragma once

#include <cmath>
#include <cstring>

#include "kernel/math_f32.h"
#include "unit/kernel/native_machine.h"
#include "unit/kernel/sweep.h"

namespace quartet::kernel {

template <class M>
struct Sweep {
  using F = typename M::F;
  static constexpr int kLanes = sizeof(F) / sizeof(float);

  static F apply(ScalarOp op, F x) {
    M m;
    switch (op) {
      case ScalarOp::exp:
        return math::exp(m, x);
      case ScalarOp::log:
        return math::log(m, x);
      case ScalarOp::tanh:
        return math::tanh(m, x);
      case ScalarOp::erf:
        return math::erf(m, x);
      default:
        return math::sigmoid(m, x);
    }
  }

  static double exact(ScalarOp op, double x) {
    switch (op) {
      case ScalarOp::exp:
        return std::exp(x);
      case ScalarOp::log:
        return std::log(x);
      case ScalarOp::tanh:
        return std::tanh(x);
      case ScalarOp::erf:
        return std::erf(x);
      default:
        return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
    }
  }

  static double unit(double reference) {
    int exponent = 0;
    std::frexp(std::max(std::fabs(reference), 0x1p-126), &exponent);
    return std::ldexp(1.0, exponent - 24);
  }

  static void judge(Worst& worst, float x, float found, double due) {
    const auto rounded = static_cast<float>(due);
    const bool special = std::isnan(due) || std::isnan(found) || std::isinf(rounded) || std::isinf(found);
    bool right = true;
    if (special)
      right = std::isnan(due) ? std::isnan(found) : found == rounded;
    else if (found == 0 && rounded == 0)
      right = std::signbit(found) == std::signbit(rounded);
    if (!right) {
      ++worst.wrong;
      worst.wrong_argument = x;
    }
    if (special) return;
    const double error = std::fabs(static_cast<double>(found) - due) / unit(due);
    if (error <= worst.ulps) return;
    worst.ulps = error;
    worst.argument = x;
  }

  static Worst run(ScalarOp op, uint64_t step) {
    Worst worst;
    for (uint64_t base = 0; base < (uint64_t{1} << 32); base += step * kLanes) {
      float in[kLanes], out[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const auto bits = static_cast<uint32_t>(base + static_cast<uint64_t>(i) * step);
        std::memcpy(&in[i], &bits, sizeof bits);
      }
      F x;
      std::memcpy(&x, in, sizeof x);
      const F y = apply(op, x);
      std::memcpy(out, &y, sizeof y);
      for (int i = 0; i < kLanes; ++i) {
        judge(worst, in[i], out[i], exact(op, static_cast<double>(in[i])));
        uint32_t bits = 0;
        std::memcpy(&bits, &out[i], sizeof bits);
        worst.digest = (worst.digest ^ bits) * 0x9e3779b97f4a7c15u;
      }
    }
    return worst;
  }

  static uint32_t value(ScalarOp op, uint32_t bits) {
    float in[kLanes] = {}, out[kLanes];
    std::memcpy(&in[0], &bits, sizeof bits);
    F x;
    std::memcpy(&x, in, sizeof x);
    const F y = apply(op, x);
    std::memcpy(out, &y, sizeof y);
    uint32_t result = 0;
    std::memcpy(&result, &out[0], sizeof result);
    return result;
  }
};

}  // namespace quartet::kernel
