// Random well-typed graphs of small tensors, and a short way to write graphs by hand; for tests.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "tile/expr.h"

namespace quartet::tile::test {

using graph::AttrKey;
using graph::OpCode;
using graph::Shape;
using graph::ValueId;

// Builds a graph; a mistake of the test ends it.
struct Write {
  graph::Builder b;

  ValueId in(const std::string& name, DType type, Shape shape) {
    auto v = b.input(name, {type, std::move(shape)});
    EXPECT_TRUE(v.ok()) << v.status().message();
    return v.ok() ? *v : 0;
  }
  ValueId weights(Shape shape, uint32_t seed = 1) {
    const auto count = static_cast<size_t>(*graph::TensorType{DType::f32, shape}.elements().constant());
    std::mt19937 random(seed);
    std::vector<float> data(count);
    for (float& f : data) f = static_cast<float>(static_cast<int>(random() % 17) - 8) / 4;
    auto made = graph::copy_constant({DType::f32, std::move(shape)},
                                     {reinterpret_cast<const uint8_t*>(data.data()), count * sizeof(float)});
    EXPECT_TRUE(made.ok()) << made.status().message();
    auto v = b.constant(std::move(*made));
    return v.ok() ? *v : 0;
  }
  ValueId number(double value) { return *b.scalar(DType::f32, value); }
  ValueId op(OpCode code, std::vector<ValueId> operands, graph::Attrs attrs = {}) {
    auto v = b.one(code, std::move(operands), std::move(attrs));
    EXPECT_TRUE(v.ok()) << v.status().message();
    return v.ok() ? *v : 0;
  }
  void out(ValueId v) {
    const auto status = b.output(v, "out" + std::to_string(outputs_++));
    EXPECT_TRUE(status.ok()) << status.message();
  }
  std::shared_ptr<const graph::Graph> finish() {
    auto g = b.finish();
    EXPECT_TRUE(g.ok()) << g.status().message();
    return g.ok() ? *g : nullptr;
  }
  TileGraph tiles() {
    if (!kept_) kept_ = finish();
    if (!kept_) return {};
    auto t = from_graph(*kept_);
    EXPECT_TRUE(t.ok()) << t.status().message();
    if (!t.ok()) return {};
    const Status fine = verify(*t);
    EXPECT_TRUE(fine.ok()) << fine.message() << "\n" << print(*t);
    return *t;
  }

 private:
  int outputs_ = 0;
  std::shared_ptr<const graph::Graph> kept_;
};

inline graph::Attr ints(std::vector<int64_t> values) { return values; }
inline graph::Attr shape(Shape values) { return values; }
inline graph::Attr one(int64_t value) { return value; }

// A random graph over f32; with `symbolic` some dims are a symbol. Ops that cannot apply to what was drawn are skipped.
class RandomGraph {
 public:
  RandomGraph(uint32_t seed, bool symbolic) : random_(seed) {
    if (symbolic) {
      n_ = *w_.b.symbol("n");
      values_.push_back(w_.in("s", DType::f32, {*n_}));
    }
    for (int i = 0; i < 3; ++i) values_.push_back(w_.in("x" + std::to_string(i), DType::f32, random_shape()));
    values_.push_back(w_.weights({IntExpr(3), IntExpr(4)}, seed));
    values_.push_back(w_.number(0.5));
  }

  TileGraph build(int ops) {
    for (int i = 0; i < ops; ++i) step();
    for (int i = 0; i < 3; ++i) w_.out(values_[values_.size() - 1 - static_cast<size_t>(draw(4))]);
    return w_.tiles();
  }

 private:
  int draw(int bound) { return static_cast<int>(random_() % static_cast<uint32_t>(bound)); }
  IntExpr random_dim() {
    static constexpr int64_t kDims[] = {1, 2, 3, 4, 6};
    return n_ && draw(4) == 0 ? *n_ : IntExpr(kDims[draw(5)]);
  }
  Shape random_shape() {
    Shape s(static_cast<size_t>(1 + draw(3)));
    for (IntExpr& d : s) d = random_dim();
    return s;
  }
  ValueId pick() { return values_[static_cast<size_t>(draw(static_cast<int>(values_.size())))]; }
  const Shape& shape_of(ValueId v) { return w_.b.type(v).shape; }
  void keep(Result<ValueId> v) {
    if (!v.ok()) return;
    const auto elements = w_.b.type(*v).elements();
    if (elements.is_constant() && *elements.constant() > 400) return;
    if (shape_of(*v).size() > 4) return;
    values_.push_back(*v);
  }

  void step() {
    const ValueId x = pick();
    const auto rank = static_cast<int>(shape_of(x).size());
    switch (draw(13)) {
      case 0:
      case 1:
        return keep(w_.b.one(draw(2) ? OpCode::tanh : OpCode::neg, {x}));
      case 2:
      case 3:
      case 4: {
        static constexpr OpCode kTwo[] = {OpCode::add, OpCode::sub, OpCode::mul, OpCode::max};
        return keep(w_.b.one(kTwo[draw(4)], {x, pick()}));
      }
      case 5: {
        std::vector<int64_t> perm(static_cast<size_t>(rank));
        for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
        std::shuffle(perm.begin(), perm.end(), random_);
        return keep(w_.b.one(OpCode::transpose, {x}, {{AttrKey::perm, perm}}));
      }
      case 6:
        return keep(w_.b.one(OpCode::reshape, {x}, {{AttrKey::shape, reshaped(shape_of(x))}}));
      case 7: {
        Shape to = shape_of(x);
        if (draw(2)) to.insert(to.begin(), random_dim());
        for (IntExpr& d : to) d = d.is(1) ? random_dim() : d;
        return keep(w_.b.one(OpCode::expand, {x}, {{AttrKey::shape, to}}));
      }
      case 8:
        return slice(x);
      case 9: {
        if (rank == 0) return;
        std::vector<int64_t> axes;
        for (int d = 0; d < rank; ++d) {
          if (draw(2)) axes.push_back(d);
        }
        static constexpr OpCode kReduce[] = {OpCode::reduce_sum, OpCode::reduce_max, OpCode::reduce_min};
        return keep(w_.b.one(kReduce[draw(3)], {x}, {{AttrKey::axes, axes}, {AttrKey::keepdims, int64_t{draw(2)}}}));
      }
      case 10:
        return keep(w_.b.one(OpCode::matmul, {x, pick()},
                             {{AttrKey::transpose_a, int64_t{draw(2)}}, {AttrKey::transpose_b, int64_t{draw(2)}}}));
      case 11: {
        if (rank == 0) return;
        return keep(w_.b.one(OpCode::concat, {x, pick(), x}, {{AttrKey::axis, int64_t{draw(rank)}}}));
      }
      default: {
        if (rank == 0) return;
        if (draw(2)) {
          auto stats = w_.b.op(OpCode::softmax_stats, {x}, {{AttrKey::axis, int64_t{draw(rank)}}});
          if (stats.ok()) keep((*stats)[0]), keep((*stats)[1]);
          return;
        }
        Shape low(static_cast<size_t>(rank)), high(static_cast<size_t>(rank));
        for (IntExpr& d : low) d = draw(2);
        for (IntExpr& d : high) d = draw(3);
        return keep(w_.b.one(OpCode::pad, {x, w_.number(0.25)}, {{AttrKey::low, low}, {AttrKey::high, high}}));
      }
    }
  }

  void slice(ValueId x) {
    const Shape s = shape_of(x);
    Shape starts, limits;
    std::vector<int64_t> steps;
    for (const IntExpr& d : s) {
      const bool backwards = draw(3) == 0 && d.is_constant() && *d.constant() > 0;
      starts.push_back(backwards ? d - IntExpr(1) : IntExpr(0));
      limits.push_back(backwards ? IntExpr(-1) : d);
      steps.push_back(backwards ? -1 : 1 + (d.is_constant() ? draw(2) : 0));
    }
    keep(w_.b.one(OpCode::slice, {x}, {{AttrKey::starts, starts}, {AttrKey::limits, limits}, {AttrKey::steps, steps}}));
  }

  // The same elements in another shape: two neighbours joined, or one dim split in two.
  Shape reshaped(const Shape& s) {
    Shape to = s;
    if (to.size() >= 2 && draw(2)) {
      const auto at = static_cast<size_t>(draw(static_cast<int>(to.size()) - 1));
      to[at] *= to[at + 1];
      to.erase(to.begin() + static_cast<ptrdiff_t>(at) + 1);
    } else if (!to.empty()) {
      const auto at = static_cast<size_t>(draw(static_cast<int>(to.size())));
      if (to[at].is_constant() && *to[at].constant() % 2 == 0 && *to[at].constant() > 0) {
        to[at] = *to[at].constant() / 2;
        to.insert(to.begin() + static_cast<ptrdiff_t>(at), 2);
      } else {
        to.insert(to.begin(), 1);
      }
    }
    return to;
  }

  std::mt19937 random_;
  Write w_;
  std::optional<IntExpr> n_;
  std::vector<ValueId> values_;
};

}  // namespace quartet::tile::test
