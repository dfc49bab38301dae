#include "program/program.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "unit/program/random_program.h"

namespace quartet::program {
namespace {

using testing::RandomOptions;
using testing::RandomProgram;

Bytes bytes_of(const Program& program) {
  ByteWriter out;
  write(out, program);
  return out.take();
}

Result<Program> read_all(std::span<const uint8_t> bytes) {
  ByteReader in(bytes, "program");
  auto program = read(in);
  if (program.ok() && in.remaining() != 0) return Status(Code::corrupt, "bytes left");
  return program;
}

RandomProgram sample(uint64_t seed = 7) { return RandomProgram(seed, {.stages = 8, .symbolic = seed % 2 == 1}); }

// Of input 0 with extents of 1 where they are not numbers, by constant 0 made to fit.
InputDefault default_of(Program& program) {
  InputDefault given{0, 0, {}};
  uint64_t bytes = size_of(program.inputs[0].dtype);
  for (const IntExpr& extent : program.inputs[0].shape) {
    given.shape.push_back(extent.constant().value_or(1));
    bytes *= static_cast<uint64_t>(given.shape.back());
  }
  program.constants[0] = {program.constants[0].digest, bytes, {}};
  return given;
}

TEST(Program, RoundTripsThroughBytesAndText) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    RandomProgram random = sample(seed);
    random.program.inputs[0].name = "a \"quoted\\ name\"\n;\x01[,]";
    random.program.constants[0].inline_data = random.constant_data;
    random.program.flush_denormals = seed % 3 == 0;
    if (seed % 4 == 2) random.program.defaults = {default_of(random.program)};
    random.program.stages[1].library = true;
    random.program.stages[2].task_cost = 1.0 / 3;
    ASSERT_TRUE(verify(random.program).ok()) << verify(random.program).message();
    const Bytes bytes = bytes_of(random.program);
    const auto again = read_all(bytes);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(bytes_of(again.value()), bytes);
    const std::string text = print(random.program);
    const auto parsed = parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message() << "\n" << text;
    EXPECT_EQ(bytes_of(parsed.value()), bytes);
    EXPECT_EQ(print(parsed.value()), text);
  }
}

TEST(Program, TextIsReadable) {
  const auto program = parse(
      "program\n"
      "dim s0 \"n\"; lower 1\n"
      "input 0 \"x\"; f32 [s0, 64]\n"
      "output 0 \"y\"; f32 [s0, 10]\n"
      "\n"
      "# a weight, packed at load\n"
      "constant 0 00112233445566778899aabbccddeeff; bytes 2560\n"
      "prepared 0; bytes 4096\n"
      "workspace 0\n"
      "kernel 0 \"pack\"; blob 0; entry 0; arguments 2; dims []; scratch 0\n"
      "kernel 1 \"gemm\"; blob 0; entry 128; arguments 3; dims [s0]; scratch 0\n"
      "prepare 0; kernel 0 [constant 0, prepared 0]; tasks 1; wave 0; cost 1e-06\n"
      "stage 0; kernel 1 [input 0, prepared 0, output 0]; tasks ceil_div(s0, 4); wave 0; cost 2.5e-07; library\n");
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_TRUE(verify(program.value()).ok()) << verify(program.value()).message();
  EXPECT_EQ(program->constants[0].digest.hex(), "00112233445566778899aabbccddeeff");
  EXPECT_EQ(program->stages[0].task_cost, 2.5e-7);
  EXPECT_TRUE(program->stages[0].library);
  EXPECT_EQ(program->stages[0].tasks, ceil_div(IntExpr::symbol(0), IntExpr(4)));
}

TEST(Program, ParseErrorsNameTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "does not begin"},
      {"stage 0", "does not begin"},
      {"program\nnonsense", "line 2: 'nonsense' begins no line"},
      {"program\ndim s1 \"n\"; lower 1", "line 2: dims are s0"},
      {"program\ndim s0 \"n; lower 1", "closing quote"},
      {"program\ninput 0 \"x\"; f99 [1]", "'f99' is no element type"},
      {"program\ninput 1 \"x\"; f32 [1]", "0 is next"},
      {"program\ninput 0 \"x\"; f32 [1", "']' expected"},
      {"program\ninput 0 \"x\"; f32 [1] 2", "more than the line"},
      {"program\nworkspace s0+", "line 2"},
      {"program\nconstant 0 0011; bytes 4", "32 hexadecimal"},
      {"program\nslot 0; bytes 4; moments 0-1; offset 0", "no range"},
      {"program\nprepared 0", "'bytes' is missing"},
      {"program\ncopy nowhere 0; output 0", "no kind of memory"},
  };
  for (const auto& [text, reason] : cases) {
    const auto program = parse(text);
    ASSERT_FALSE(program.ok()) << text;
    EXPECT_NE(program.status().message().find(reason), std::string::npos)
        << text << " -> " << program.status().message();
  }
}

TEST(Program, TruncatedAndMutatedTextNeverCrashes) {
  const std::string text = print(sample(3).program);
  std::mt19937 random(5);
  for (size_t length = 0; length < text.size(); length += 7) (void)parse(std::string_view(text).substr(0, length));
  int parsed = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string changed = text;
    for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = static_cast<char>(random() % 128);
    if (const auto program = parse(changed); program.ok()) parsed += verify(program.value()).ok() ? 1 : 0;
  }
  EXPECT_LT(parsed, 2000);
}

TEST(Program, HostileBytesNeverCrash) {
  const Bytes bytes = bytes_of(sample(5).program);
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(read_all(std::span(bytes).first(length)).ok()) << length;
  std::mt19937 random(9);
  for (int round = 0; round < 2000; ++round) {
    Bytes changed = bytes;
    for (uint32_t k = 0; k < 1 + random() % 4; ++k) changed[random() % changed.size()] = static_cast<uint8_t>(random());
    if (const auto program = read_all(changed); program.ok()) {
      EXPECT_TRUE(verify(program.value()).ok());
    }
  }
}

struct Damage {
  const char* reason;
  std::function<void(Program&)> apply;
};

TEST(Program, VerifierNamesWhatIsWrong) {
  const Damage cases[] = {
      {"negative lower bound", [](Program& p) { p.dims[0].lower = -1; }},
      {"nothing binds it",
       [](Program& p) {
         p.dims.push_back({"m", 1});
         p.workspace_bytes = IntExpr::symbol(static_cast<Symbol>(p.dims.size()) - 1);
       }},
      {"uses symbol 5", [](Program& p) { p.stages[0].tasks = IntExpr::symbol(5); }},
      {"has no element type", [](Program& p) { p.outputs[0].dtype = DType::invalid; }},
      {"but carries", [](Program& p) { p.constants[0].inline_data = {1, 2}; }},
      {"must be a constant", [](Program& p) { p.prepared[0].bytes = IntExpr::symbol(0); }},
      {"is negative", [](Program& p) { p.prepared[0].bytes = IntExpr(-4); }},
      {"not a valid expression", [](Program& p) { p.kernels[1].scratch_bytes = IntExpr::invalid(); }},
      {"negative blob", [](Program& p) { p.kernels[1].blob = -1; }},
      {"names kernel 1000", [](Program& p) { p.stages[0].kernel = 1000; }},
      {"arguments to kernel", [](Program& p) { p.stages[0].arguments.pop_back(); }},
      {"names workspace slot 99", [](Program& p) { p.stages[0].arguments[0] = {Storage::workspace, 99}; }},
      {"names input -1", [](Program& p) { p.stages[0].arguments[0] = {Storage::input, -1}; }},
      {"exist at load", [](Program& p) { p.prepare[0].arguments[0] = {Storage::input, 0}; }},
      {"cost that is no time", [](Program& p) { p.stages[0].task_cost = -1; }},
      {"cost that is no time", [](Program& p) { p.stages[0].task_cost = std::numeric_limits<double>::quiet_NaN(); }},
      {"not in an earlier wave", [](Program& p) { p.stages[1].after = {1}; }},
      {"after a stage of wave", [](Program& p) { p.stages[0].wave = 50; }},
      {"each stage once", [](Program& p) { p.body.pop_back(); }},
      {"each stage once", [](Program& p) { p.body[0].first = 1; }},
      {"each stage once", [](Program& p) { p.body[0].count += 1; }},
      {"stages write those", [](Program& p) { p.copies[0].from = {Storage::workspace, 0}; }},
      {"into an output of", [](Program& p) { p.copies[0].from = {Storage::constant, 0}; }},
      {"and by something else", [](Program& p) { p.copies.push_back(p.copies[0]); }},
      {"no stage and no copy", [](Program& p) { p.copies.clear(); }},
      {"another rank", [](Program& p) { p.defaults = {{0, 0, {}}}; }},
      {"which is none", [](Program& p) { p.defaults = {{0, 77, {}}}; }},
      {"of no input", [](Program& p) { p.defaults = {{static_cast<int32_t>(p.inputs.size()), 0, {}}}; }},
      {"out of order", [](Program& p) { p.defaults = {default_of(p), default_of(p)}; }},
      {"another size", [](Program& p) { p.defaults = {default_of(p)}, p.constants[0].bytes += 1; }},
      {"is planned for the moments", [](Program& p) { p.workspace[0].last += 1; }},
      {"misplaced", [](Program& p) { p.workspace[0].offset = IntExpr(4); }},
      {"misplaced", [](Program& p) { p.workspace_bytes = IntExpr(0); }},
  };
  const Program good = sample().program;
  ASSERT_TRUE(verify(good).ok()) << verify(good).message();
  for (const Damage& damage : cases) {
    Program bad = good;
    damage.apply(bad);
    const Status status = verify(bad);
    ASSERT_FALSE(status.ok()) << damage.reason;
    EXPECT_NE(status.message().find(damage.reason), std::string::npos) << damage.reason << " / " << status.message();
    EXPECT_EQ(status.error()->stage, "program");
  }
}

}  // namespace
}  // namespace quartet::program
