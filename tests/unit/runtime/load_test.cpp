#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "artifact/artifact.h"
#include "cache/faulty_os.h"
#include "runtime/code.h"
#include "runtime/executor.h"

namespace quartet::runtime {
namespace {

// y = x + 1 for `dims[0]` i32 elements, in machine code: the calling convention as the code generators must meet it.
const Bytes kAddOne = {
    0x48, 0x8b, 0x0f,        // mov rcx, [rdi]
    0x48, 0x8b, 0x57, 0x08,  // mov rdx, [rdi + 8]
    0x4c, 0x8b, 0x06,        // mov r8, [rsi]
    0x31, 0xc0,              // xor eax, eax
    0x4c, 0x39, 0xc0,        // loop: cmp rax, r8
    0x7d, 0x10,              // jge done
    0x44, 0x8b, 0x0c, 0x81,  // mov r9d, [rcx + 4 * rax]
    0x41, 0xff, 0xc1,        // inc r9d
    0x44, 0x89, 0x0c, 0x82,  // mov [rdx + 4 * rax], r9d
    0x48, 0xff, 0xc0,        // inc rax
    0xeb, 0xeb,              // jmp loop
    0xc3,                    // done: ret
};

const Bytes kWeight = {5, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0};

// prepared = weight + 1 at load; y = x + 1; z = prepared + 1.
program::Program sample_program() {
  auto parsed = program::parse(
      "program\n"
      "dim s0 \"n\"; lower 0\n"
      "input 0 \"x\"; i32 [s0]\n"
      "output 0 \"y\"; i32 [s0]\n"
      "output 1 \"z\"; i32 [3]\n"
      "constant 0 00000000000000000000000000000000; bytes 12\n"
      "prepared 0; bytes 12\n"
      "workspace 0\n"
      "kernel 0 \"three\"; blob 1; entry 16; arguments 2; dims [3]; scratch 0\n"
      "kernel 1 \"many\"; blob 0; entry 0; arguments 2; dims [s0]; scratch 0\n"
      "prepare 0; kernel 0 [constant 0, prepared 0]; tasks 1; wave 0; cost 1e-06\n"
      "stage 0; kernel 1 [input 0, output 0]; tasks 1; wave 0; cost 1e-06\n"
      "stage 1; kernel 0 [prepared 0, output 1]; tasks 1; wave 0; cost 1e-06; library\n");
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  parsed->constants[0].digest = digest_of(kWeight);
  return parsed.take();
}

Bytes make_artifact(const program::Program& program, std::vector<std::string> features = {},
                    bool with_constant = true) {
  ByteWriter out;
  program::write(out, program);
  Bytes shifted(16, 0xcc);
  shifted.insert(shifted.end(), kAddOne.begin(), kAddOne.end());
  artifact::Content content;
  content.target = "x86_64 test";
  content.features = std::move(features);
  content.program = out.data();
  content.code = {kAddOne, shifted};
  if (with_constant) content.constants = {{digest_of(kWeight), kWeight}};
  content.metadata["compile_ns"] = "17";
  return artifact::write(content);
}

CpuModel host() {
  CpuModel model;
  model.name = "test";
  model.features = {"+avx2", "+fma"};
  return model;
}

Result<std::shared_ptr<const LoadedProgram>> load(std::span<const uint8_t> bytes, LoadOptions options = {}) {
  static const CpuModel model = host();
  options.host = &model;
  return LoadedProgram::load(bytes, options);
}

std::string message_of(const Result<std::shared_ptr<const LoadedProgram>>& result) { return result.status().message(); }

#if defined(__x86_64__)
void expect_runs(const LoadedProgram& program) {
  const std::vector<int32_t> x{1, 2, 3, 4, 5};
  std::vector<int32_t> y(5), z(3);
  const std::vector<int64_t> shape{5};
  const InputTensor in[] = {{x.data(), 20, shape}};
  const OutputTensor out[] = {{y.data(), 20, std::nullopt}, {z.data(), 12, std::nullopt}};
  const Status status = run(program, in, out, {});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(y, (std::vector<int32_t>{2, 3, 4, 5, 6}));
  EXPECT_EQ(z, (std::vector<int32_t>{7, 8, 9}));
}

TEST(Load, RunsMachineCodeFromAnArtifact) {
  Bytes bytes = make_artifact(sample_program(), {"+avx2"});
  const auto program = load(bytes);
  ASSERT_TRUE(program.ok()) << message_of(program);
  // Nothing of the bytes is used after loading.
  std::ranges::fill(bytes, uint8_t{0xff});
  expect_runs(**program);
  EXPECT_EQ((*program)->metadata().find("compile_ns")->second, "17");
  EXPECT_EQ((*program)->prepared_bytes(), 64u);
  EXPECT_GE((*program)->code_bytes(), kAddOne.size() * 2);
  EXPECT_FALSE((*program)->is_static());
  EXPECT_EQ((*program)->library_share(std::vector<int64_t>{3, 1}), 0.25);
}

TEST(Load, ConstantsComeFromTheArtifactItsOwnerOrTheProvider) {
  auto shared = std::make_shared<const Bytes>(make_artifact(sample_program()));
  static const CpuModel model = host();
  LoadOptions options;
  options.host = &model;
  auto program = LoadedProgram::load(*shared, options, shared);
  ASSERT_TRUE(program.ok()) << message_of(program);
  expect_runs(**program);
  // Only the prepare stage read the constant, so its owner is let go.
  EXPECT_EQ(shared.use_count(), 1);

  const Bytes without = make_artifact(sample_program(), {}, false);
  const auto missing = load(without);
  EXPECT_EQ(missing.status().code(), Code::not_found);
  EXPECT_NE(message_of(missing).find(digest_of(kWeight).hex()), std::string::npos);
  auto weight = std::make_shared<Bytes>(kWeight);
  options.constants = [&](const Digest& digest) -> std::optional<ConstantData> {
    EXPECT_EQ(digest, digest_of(kWeight));
    return ConstantData{weight->data(), weight->size(), weight};
  };
  const auto provided = load(without, options);
  ASSERT_TRUE(provided.ok()) << message_of(provided);
  expect_runs(**provided);
  EXPECT_EQ(weight.use_count(), 1);
  weight->pop_back();
  EXPECT_EQ(load(without, options).status().code(), Code::invalid_argument);

  program::Program inlined = sample_program();
  inlined.constants[0].inline_data = kWeight;
  const auto inside = load(make_artifact(inlined, {}, false));
  ASSERT_TRUE(inside.ok()) << message_of(inside);
  expect_runs(**inside);
}

TEST(Load, OneProgramServesManyThreads) {
  const auto program = load(make_artifact(sample_program()));
  ASSERT_TRUE(program.ok());
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) expect_runs(**program);
    });
  for (std::thread& thread : threads) thread.join();
}
#endif

TEST(Load, RefusesFeaturesTheHostLacks) {
  const auto program = load(make_artifact(sample_program(), {"+amx-tile", "+avx2", "+avx512f"}));
  EXPECT_EQ(program.status().code(), Code::unsupported);
  EXPECT_EQ(message_of(program), "the code needs processor features that 'test' does not have: +amx-tile, +avx512f");
}

TEST(Load, RefusesWhatDoesNotBelongTogether) {
  program::Program p = sample_program();
  p.kernels[1].entry = kAddOne.size();
  EXPECT_EQ(load(make_artifact(p)).status().code(), Code::corrupt);
  p = sample_program();
  p.kernels[1].blob = 2;
  EXPECT_NE(message_of(load(make_artifact(p))).find("code blob 2"), std::string::npos);
  p = sample_program();
  p.stages[0].wave = 7;
  EXPECT_EQ(load(make_artifact(p)).status().code(), Code::corrupt);
  const Bytes bytes = make_artifact(sample_program());
  EXPECT_EQ(load(std::span(bytes).first(bytes.size() - 1)).status().code(), Code::corrupt);
  const KernelFunction one[] = {nullptr};
  EXPECT_EQ(LoadedProgram::from_functions(sample_program(), one, {}).status().code(), Code::invalid_argument);
}

TEST(Load, EveryRefusalOfTheSystemIsAStatus) {
  const Bytes bytes = make_artifact(sample_program());
  int failures = 0;
  for (int64_t call = 1; call < 10; ++call) {
    cache::test::FaultyOs os;
    os.fail_at = call;
    LoadOptions options;
    options.os = &os;
    const auto program = load(bytes, options);
    if (program.ok()) break;
    ++failures;
    EXPECT_FALSE(program.status().message().empty());
  }
  // Mapping the pages and making them executable.
  EXPECT_EQ(failures, 2);
}

#if defined(__linux__)
TEST(CodeImage, IsNeverWritableAndExecutable) {
  const auto image = CodeImage::map(kAddOne, real_os());
  ASSERT_TRUE(image.ok()) << image.status().message();
  std::ifstream maps("/proc/self/maps");
  std::string line, found;
  while (std::getline(maps, line)) {
    unsigned long begin = 0, end = 0;
    char access[5] = {};
    ASSERT_EQ(std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, access), 3);
    EXPECT_FALSE(access[1] == 'w' && access[2] == 'x') << line;
    const auto address = reinterpret_cast<uintptr_t>((*image)->data());
    if (begin <= address && address < end) found = access;
  }
  EXPECT_EQ(found, "r-xp");
  EXPECT_EQ(std::memcmp((*image)->data(), kAddOne.data(), kAddOne.size()), 0);
}
#endif

}  // namespace
}  // namespace quartet::runtime
