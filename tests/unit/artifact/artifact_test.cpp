#include "artifact/artifact.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace quartet::artifact {
namespace {

struct Sample {
  Bytes program = {1, 2, 3, 4, 5}, code_a = Bytes(100, 0xc3), code_b = Bytes(7, 0x90), weight = Bytes(65, 7),
        bias = Bytes(4, 9);
  Content content() const {
    Content c;
    c.target = "x86_64 avx2 +avx2,+fma";
    c.features = {"+avx2", "+fma"};
    c.program = program;
    c.code = {code_a, code_b};
    c.constants = {{digest_of(weight), weight}, {digest_of(bias), bias}};
    c.metadata = {{"compile_ns", "12345"}, {"dump.graph", "graph { }"}};
    return c;
  }
};

std::span<const uint8_t> blob(const View& view, size_t i) {
  return view.code.subspan(view.blobs[i].offset, view.blobs[i].size);
}

TEST(Artifact, GivesBackWhatWentIn) {
  const Sample sample;
  const Bytes bytes = write(sample.content());
  const auto view = read(bytes);
  ASSERT_TRUE(view.ok()) << view.status().message();
  EXPECT_EQ(view->target, "x86_64 avx2 +avx2,+fma");
  EXPECT_EQ(view->features, (std::vector<std::string>{"+avx2", "+fma"}));
  EXPECT_TRUE(std::ranges::equal(view->program, sample.program));
  ASSERT_EQ(view->blobs.size(), 2u);
  EXPECT_TRUE(std::ranges::equal(blob(view.value(), 0), sample.code_a));
  EXPECT_TRUE(std::ranges::equal(blob(view.value(), 1), sample.code_b));
  ASSERT_EQ(view->constants.size(), 2u);
  EXPECT_EQ(view->constants[1].digest, digest_of(sample.bias));
  EXPECT_TRUE(std::ranges::equal(view->constants[0].data, sample.weight));
  EXPECT_EQ(view->metadata.find("compile_ns")->second, "12345");
  EXPECT_EQ(view->metadata.size(), 2u);
  // Places: code on a page, blobs and constants on 64 bytes.
  EXPECT_EQ((view->code.data() - bytes.data()) % static_cast<std::ptrdiff_t>(kPage), 0);
  EXPECT_EQ(view->blobs[1].offset % kAlignment, 0u);
  for (const InlineConstant& constant : view->constants)
    EXPECT_EQ((constant.data.data() - bytes.data()) % static_cast<std::ptrdiff_t>(kAlignment), 0);
  EXPECT_EQ(write(sample.content()), bytes);
}

TEST(Artifact, EmptyContentIsLegal) {
  const auto view = read(write(Content{}));
  ASSERT_TRUE(view.ok()) << view.status().message();
  EXPECT_TRUE(view->blobs.empty());
  EXPECT_TRUE(view->metadata.empty());
}

TEST(Artifact, NoTruncationPasses) {
  Bytes bytes = write(Sample().content());
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_EQ(read(std::span(bytes).first(length)).status().code(), Code::corrupt) << length;
  bytes.push_back(0);
  EXPECT_EQ(read(bytes).status().code(), Code::corrupt);
}

TEST(Artifact, NoChangedBitPasses) {
  Bytes bytes = write(Sample().content());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto bit = static_cast<uint8_t>(1u << (i % 8));
    bytes[i] ^= bit;
    const auto view = read(bytes);
    ASSERT_FALSE(view.ok()) << "byte " << i;
    EXPECT_EQ(view.status().code(), i >= 8 && i < 12 ? Code::version_mismatch : Code::corrupt) << "byte " << i;
    bytes[i] ^= bit;
  }
  EXPECT_TRUE(read(bytes).ok());
}

// The layout the tests below forge: table entries of 40 bytes from byte 24, the header's checksum behind the seventh.
constexpr size_t kTable = 24, kEntry = 40, kChecksum = kTable + 7 * kEntry;

void put(Bytes& bytes, size_t at, const void* data, size_t size) { std::memcpy(bytes.data() + at, data, size); }

// Makes all checksums right again after a change.
void reseal(Bytes& bytes) {
  for (size_t k = 0; k < 7; ++k) {
    uint64_t offset = 0, size = 0;
    std::memcpy(&offset, bytes.data() + kTable + k * kEntry + 8, 8);
    std::memcpy(&size, bytes.data() + kTable + k * kEntry + 16, 8);
    if (offset > bytes.size() || size > bytes.size() - offset) continue;
    const Digest digest = digest_of(bytes.data() + offset, size);
    put(bytes, kTable + k * kEntry + 24, &digest.lo, 8);
    put(bytes, kTable + k * kEntry + 32, &digest.hi, 8);
  }
  const Digest digest = digest_of(bytes.data(), kChecksum);
  put(bytes, kChecksum, &digest.lo, 8);
  put(bytes, kChecksum + 8, &digest.hi, 8);
}

TEST(Artifact, ForgedChecksumsNeverCrashTheReader) {
  const Bytes good = write(Sample().content());
  Bytes same = good;
  reseal(same);
  ASSERT_EQ(same, good);
  std::mt19937_64 random(11);
  int refused = 0;
  const uint64_t values[] = {0, 1, 8, 64, 4096, good.size(), ~uint64_t{0}, uint64_t{1} << 63, ~uint64_t{0} - 63};
  for (int round = 0; round < 6000; ++round) {
    Bytes bytes = good;
    for (uint64_t k = 0; k < 1 + random() % 3; ++k) {
      const size_t at = random() % (bytes.size() - 8);
      if (random() % 2 == 0)
        put(bytes, at / 8 * 8, &values[random() % std::size(values)], 8);
      else
        bytes[at] = static_cast<uint8_t>(random());
    }
    reseal(bytes);
    const auto view = read(bytes);
    if (!view.ok()) {
      ++refused;
      continue;
    }
    // Whatever is accepted stays within the bytes.
    const auto inside = [&](std::span<const uint8_t> part) {
      return part.empty() || (part.data() >= bytes.data() && part.data() + part.size() <= bytes.data() + bytes.size());
    };
    EXPECT_TRUE(inside(view->program) && inside(view->code));
    for (const InlineConstant& constant : view->constants) EXPECT_TRUE(inside(constant.data));
    for (const View::CodeBlob& b : view->blobs)
      EXPECT_TRUE(b.offset <= view->code.size() && b.size <= view->code.size() - b.offset);
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace quartet::artifact
