// The reduction-order rule of tile/reduction_order.h against a model that writes down every addition, and the model
// against the examples of src/tile/README.md.
#include "tile/reduction_order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace quartet::tile {
namespace {

// A number that remembers how it came to be.
struct Traced {
  std::string text;
};
Traced merge(const Traced& a, const Traced& b) { return {"(" + a.text + "+" + b.text + ")"}; }
float merge(float a, float b) { return a + b; }

// The rule, word for word. States that saw no element are skipped, which exact identities allow.
template <class T>
std::optional<T> reduce(const std::vector<T>& elements, const ReductionOrder& order) {
  std::optional<T> total;
  const auto into = [](std::optional<T>& state, const std::optional<T>& more) {
    if (!more) return;
    state = state ? merge(*state, *more) : *more;
  };
  for (size_t begin = 0; begin < elements.size(); begin += static_cast<size_t>(order.chunk)) {
    const size_t end = std::min(elements.size(), begin + static_cast<size_t>(order.chunk));
    std::vector<std::optional<T>> states(static_cast<size_t>(order.interleave));
    for (size_t r = begin; r < end; ++r) into(states[(r - begin) % states.size()], elements[r]);
    for (size_t h = states.size() / 2; h >= 1; h /= 2) {
      for (size_t p = 0; p < h; ++p) into(states[p], states[p + h]);
    }
    into(total, states[0]);
  }
  return total;
}

std::vector<Traced> letters(int count) {
  std::vector<Traced> all;
  for (int i = 0; i < count; ++i) all.push_back({std::string(1, static_cast<char>('a' + i))});
  return all;
}

TEST(ReductionOrder, DocumentedExamples) {
  const ReductionOrder small{.interleave = 4, .chunk = 8};
  EXPECT_EQ(reduce(letters(1), small)->text, "a");
  EXPECT_EQ(reduce(letters(3), small)->text, "((a+c)+b)");
  EXPECT_EQ(reduce(letters(4), small)->text, "((a+c)+(b+d))");
  EXPECT_EQ(reduce(letters(8), small)->text, "(((a+e)+(c+g))+((b+f)+(d+h)))");
  EXPECT_EQ(reduce(letters(10), small)->text, "((((a+e)+(c+g))+((b+f)+(d+h)))+(i+j))");
  EXPECT_FALSE(reduce(letters(0), small).has_value());
}

TEST(ReductionOrder, ExactIdentitiesMaySeeTheEmptyStates) {
  // A plan that starts every state from -0 and always merges all of them gives the same bits, signed zeros included.
  const ReductionOrder order{.interleave = 8, .chunk = 32};
  std::mt19937 random(1);
  std::uniform_real_distribution<float> any(-1, 1);
  for (size_t count = 1; count < 100; ++count) {
    std::vector<float> elements(count);
    for (float& e : elements) e = random() % 4 == 0 ? -0.0f : any(random);
    float total = -0.0f;
    for (size_t begin = 0; begin < count; begin += 32) {
      std::vector<float> states(8, -0.0f);
      for (size_t r = begin; r < std::min(count, begin + 32); ++r) states[(r - begin) % 8] += elements[r];
      for (size_t h = 4; h >= 1; h /= 2) {
        for (size_t p = 0; p < h; ++p) states[p] += states[p + h];
      }
      total += states[0];
    }
    const float expected = *reduce(elements, order);
    EXPECT_EQ(std::bit_cast<uint32_t>(total), std::bit_cast<uint32_t>(expected)) << count;
  }
}

TEST(ReductionOrder, NumbersOfTheRule) {
  EXPECT_EQ(reduction_order(DType::f32, Isa::sse2).interleave, 16);
  EXPECT_EQ(reduction_order(DType::f32, Isa::avx2).interleave, 32);
  EXPECT_EQ(reduction_order(DType::f32, Isa::avx512).interleave, 64);
  EXPECT_EQ(reduction_order(DType::f64, Isa::sse2).interleave, 8);
  EXPECT_EQ(reduction_order(DType::f64, Isa::avx512).interleave, 32);
  for (const Isa isa : {Isa::sse2, Isa::avx2, Isa::avx512}) {
    for (int t = 1; t < kDTypeCount; ++t) {
      const DType type = accumulator_type(static_cast<DType>(t));
      const ReductionOrder order = reduction_order(type, isa);
      EXPECT_EQ(order.interleave & (order.interleave - 1), 0);
      EXPECT_EQ(order.chunk, 65536);
      EXPECT_EQ(order.chunk % order.interleave, 0);
      EXPECT_EQ(contraction_chunk(type, isa), 0);
    }
    for (const DType type : {DType::f64, DType::f32})
      EXPECT_EQ(kSoftmaxBlock % reduction_order(type, isa).interleave, 0);
  }
}

TEST(ReductionOrder, AccumulatorTypes) {
  EXPECT_EQ(accumulator_type(DType::f16), DType::f32);
  EXPECT_EQ(accumulator_type(DType::bf16), DType::f32);
  for (const DType same : {DType::f64, DType::f32, DType::i64, DType::i8, DType::u16, DType::boolean}) {
    EXPECT_EQ(accumulator_type(same), same);
  }
}

// Softmax statistics by blocks: the merge starts from the first block and is what a streaming plan does, too.
TEST(ReductionOrder, SoftmaxBlocksMergeLeftToRight) {
  const int64_t block = kSoftmaxBlock;
  const ReductionOrder order = reduction_order(DType::f32, Isa::avx2);
  std::mt19937 random(2);
  std::normal_distribution<float> any(0, 30);
  for (const int64_t extent : {int64_t{1}, block - 1, block, block + 1, 3 * block + 7}) {
    std::vector<float> x(static_cast<size_t>(extent));
    for (float& e : x) e = any(random);
    float m = 0, s = 0;
    double exact = 0;
    float maximum = -std::numeric_limits<float>::infinity();
    for (const float e : x) maximum = std::max(maximum, e);
    for (const float e : x) exact += std::exp(static_cast<double>(e) - static_cast<double>(maximum));
    for (int64_t begin = 0; begin < extent; begin += block) {
      const std::vector<float> part(x.begin() + begin, x.begin() + std::min(extent, begin + block));
      float mb = part[0];
      for (const float e : part) mb = std::max(mb, e);
      std::vector<float> terms;
      for (const float e : part) terms.push_back(std::exp(e - mb));
      const float sb = *reduce(terms, order);
      if (begin == 0) {
        m = mb, s = sb;
      } else {
        const float next = std::max(m, mb);
        s = s * std::exp(m - next) + sb * std::exp(mb - next);
        m = next;
      }
    }
    EXPECT_EQ(m, maximum);
    EXPECT_NEAR(static_cast<double>(s), exact, 1e-5 * exact);
  }
}

}  // namespace
}  // namespace quartet::tile
