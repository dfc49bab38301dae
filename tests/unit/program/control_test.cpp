// Programs with branches and loops: text, bytes, what the verifier refuses, lifetimes.
#include <gtest/gtest.h>

#include <functional>

#include "program/memory_plan.h"
#include "program/program.h"

namespace quartet::program {
namespace {

// A loop with an inner branch: slots 0 and 1 carry, slot 2 is the branch's result, slot 3 lives in one side alone, slot
// 4 is the condition, slot 5 the iteration.
const char* const kText =
    "program\n"
    "dim s0 \"n\"; lower 0\n"
    "dim s1 \"steps\"; lower 0; upper s0\n"
    "input 0 \"x\"; f32 [s0, 4]\n"
    "input 1 \"c\"; bool []\n"
    "output 0 \"y\"; f32 [s1, 4]\n"
    "output 1 \"last\"; f32 [4]\n"
    "slot 0; bytes 16; moments 0..0; offset 0\n"
    "slot 1; bytes 16; moments 0..0; offset 0\n"
    "slot 2; bytes 16; moments 0..0; offset 0\n"
    "slot 3; bytes 16; moments 0..0; offset 0\n"
    "slot 4; bytes 1; moments 0..0; offset 0\n"
    "slot 5; bytes 8; moments 0..0; offset 0\n"
    "workspace 0\n"
    "view 0; base input 0; loop 0; first 0; stride 16; bytes 16\n"
    "view 1; base output 0; loop 0; first 0; stride 16; bytes 16\n"
    "kernel 0 \"a\"; blob 0; entry 0; arguments 2; dims []; scratch 0\n"
    "kernel 1 \"b\"; blob 0; entry 8; arguments 3; dims [s1]; scratch 0\n"
    "stage 0; kernel 0 [view 0, slot 3]; tasks 1; wave 0; cost 1e-06\n"
    "stage 1; kernel 0 [slot 3, slot 2]; tasks 1; wave 1; after [0]; cost 1e-06\n"
    "stage 2; kernel 0 [slot 0, slot 2]; tasks 1; wave 2; cost 1e-06\n"
    "stage 3; kernel 1 [slot 2, slot 5, slot 1]; tasks 1; wave 3; cost 1e-06\n"
    "stage 4; kernel 0 [slot 2, view 1]; tasks 1; wave 3; cost 1e-06\n"
    "stage 5; kernel 0 [slot 2, slot 4]; tasks 1; wave 3; cost 1e-06\n"
    "message 0 \"a \\\"reason\\\"\"\n"
    "loop 0; count s0; next slot 4; iteration 5; dim 1\n"
    "do loop 0\n"
    "do   branch input 1\n"
    "do     run 0; count 2\n"
    "do   otherwise\n"
    "do     run 2; count 1\n"
    "do   branch_end\n"
    "do   run 3; count 3\n"
    "do   swap slot 0; with slot 1\n"
    "do loop_end\n"
    "do copy slot 0; to output 1; bytes 16\n"
    "do check input 1; message 0\n";

Program sample() {
  auto program = parse(kText);
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!program.ok()) return {};
  plan_memory(*program);
  return *program;
}

TEST(ControlProgram, TextAndBytesGiveItBack) {
  const Program program = sample();
  ASSERT_TRUE(verify(program).ok()) << verify(program).message();
  const std::string text = print(program);
  const auto again = parse(text);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(print(*again), text);
  ByteWriter out;
  write(out, program);
  ByteReader in(out.data(), "program");
  const auto read_back = read(in);
  ASSERT_TRUE(read_back.ok()) << read_back.status().message();
  EXPECT_EQ(print(*read_back), text);
}

TEST(ControlProgram, TruncatedBytesAreRefused) {
  ByteWriter out;
  write(out, sample());
  const Bytes bytes = out.take();
  for (size_t length = 0; length < bytes.size(); ++length) {
    ByteReader in(std::span(bytes).first(length), "program");
    EXPECT_FALSE(read(in).ok() && in.finish().ok()) << length;
  }
}

TEST(ControlProgram, ASlotUsedInsideAndOutsideOfALoopLivesThroughIt) {
  const auto lives = lifetimes(sample());
  // Moments: 0 entering, 1 beginning, 2 branch, 3 and 4 the first side, 5 otherwise, 6 the other side, 7 its end, 8 the
  // run, 9 swap, 10 end of the loop, 11 copy.
  EXPECT_EQ(lives[0].first, 1);
  EXPECT_EQ(lives[0].last, 11);
  EXPECT_EQ(lives[1].first, lives[0].first) << "what changes places with it lives as long";
  EXPECT_EQ(lives[1].last, lives[0].last);
  EXPECT_EQ(lives[2].first, 4);
  EXPECT_EQ(lives[2].last, 8);
  EXPECT_EQ(lives[3].first, 3);
  EXPECT_EQ(lives[3].last, 4);
  EXPECT_EQ(lives[4].last, 10);
  EXPECT_EQ(lives[5].first, 1);
}

TEST(ControlProgram, SidesOfABranchShareMemory) {
  Program program = sample();
  // Slot 3 is over when the other side begins.
  program.stages[2].arguments[0] = {Storage::input, 0};
  EXPECT_FALSE(lifetimes(program)[3].conflicts({5, 6}));
}

TEST(ControlProgram, TheVerifierNamesWhatIsWrong) {
  struct Damage {
    const char* reason;
    std::function<void(Program&)> apply;
  };
  const Damage cases[] = {
      {"has no end", [](Program& p) { p.body.resize(8); }},
      {"ends what has not begun", [](Program& p) { p.body[0].kind = InstructionKind::loop_end; }},
      {"ends what has not begun", [](Program& p) { p.body[5].kind = InstructionKind::otherwise; }},
      {"each stage once", [](Program& p) { p.body[2].count = 1; }},
      {"does not exist or stands elsewhere", [](Program& p) { p.body[0].first = 7; }},
      {"the condition is of 16 bytes", [](Program& p) { p.body[1].from = {Storage::workspace, 0}; }},
      {"next condition is of 16 bytes", [](Program& p) { p.loops[0].next = BufferRef{Storage::workspace, 2}; }},
      {"iteration's number is of 16", [](Program& p) { p.loops[0].iteration = 2; }},
      {"names a buffer that does not exist", [](Program& p) { p.body[1].from = {Storage::workspace, 70}; }},
      {"exchanges slots of different sizes", [](Program& p) { p.body[7].to.index = 4; }},
      {"exchanges what is no workspace slot", [](Program& p) { p.body[7].to = {Storage::output, 1}; }},
      {"copies to memory that is only read", [](Program& p) { p.body[9].to = {Storage::input, 0}; }},
      {"copies 16 bytes of a buffer of", [](Program& p) { p.body[9].from.index = 4; }},
      {"outside of loop 0", [](Program& p) { p.body[9].from = {Storage::view, 0}; }},
      {"whose iterations have no bound", [](Program& p) { p.loops[0].count.reset(); }},
      {"moves with loop 3", [](Program& p) { p.views[0].loop = 3; }},
      {"is a part of view 1", [](Program& p) { p.views[0].base = {Storage::view, 1}; }},
      {"fails with message 1", [](Program& p) { p.body[10].first = 1; }},
      {"the condition is of 16", [](Program& p) { p.body[10].from = {Storage::workspace, 0}; }},
      {"stands nowhere", [](Program& p) { p.loops.push_back({IntExpr(1), {}, {}, {}, -1, -1}); }},
      {"not its own to set", [](Program& p) { p.loops[0].dim = 0; }},
      {"not known before", [](Program& p) { p.dims[1].upper = IntExpr::symbol(1); }},
      {"which the run sets", [](Program& p) { p.inputs[0].shape[0] = IntExpr::symbol(1); }},
      {"no known kind", [](Program& p) { p.body[0].kind = static_cast<InstructionKind>(77); }},
  };
  const Program good = sample();
  for (const Damage& damage : cases) {
    Program bad = good;
    damage.apply(bad);
    const Status status = verify(bad);
    ASSERT_FALSE(status.ok()) << damage.reason;
    EXPECT_NE(status.message().find(damage.reason), std::string::npos) << damage.reason << " / " << status.message();
  }
}

// A loop whose iterations nothing bounds grows output 0 by rows and sets dim 1; slot 2 is of that size, and carried in
// slots 3 and 4, of a size that instructions set.
const char* const kGrowing =
    "program\n"
    "dim s0 \"n\"; lower 0\n"
    "dim s1 \"steps\"; lower 0; run\n"
    "dim s2 \"size\"; lower 0; run\n"
    "input 0 \"x\"; f32 [s0, 4]\n"
    "input 1 \"m\"; i64 []\n"
    "output 0 \"y\"; f32 [s1, 4]\n"
    "output 1 \"z\"; f32 [s2]\n"
    "slot 0; bytes 1; moments 0..0; offset 0\n"
    "slot 1; bytes 16; moments 0..0; offset 0\n"
    "slot 2; bytes s1*16; moments 0..0; offset 0; region 0\n"
    "slot 3; bytes s2*4; moments 0..0; offset 0; region 0\n"
    "slot 4; bytes s2*4 + 4; moments 0..0; offset 0; region 0\n"
    "workspace 0\n"
    "view 0; base output 0; loop 0; first 0; stride 16; bytes 16\n"
    "kernel 0 \"a\"; blob 0; entry 0; arguments 2; dims []; scratch 0\n"
    "kernel 1 \"b\"; blob 0; entry 8; arguments 2; dims [s1]; scratch s1*8\n"
    "kernel 2 \"c\"; blob 0; entry 8; arguments 2; dims [s2]; scratch 0\n"
    "stage 0; kernel 0 [input 0, view 0]; tasks 1; wave 0; cost 1e-06\n"
    "stage 1; kernel 0 [input 0, slot 0]; tasks 1; wave 0; cost 1e-06\n"
    "stage 2; kernel 2 [slot 3, slot 4]; tasks s2; wave 0; cost 1e-06\n"
    "stage 3; kernel 1 [output 0, slot 2]; tasks s1; wave 1; cost 1e-06\n"
    "message 0 \"the size\"\n"
    "loop 0; next slot 0; dim 1\n"
    "do read 2; from input 1; message 0\n"
    "do grow slot 3\n"
    "do loop 0\n"
    "do   grow view 0\n"
    "do   grow slot 4\n"
    "do   run 0; count 3\n"
    "do   swap slot 3; with slot 4\n"
    "do   set 2; to s2 + 1\n"
    "do loop_end\n"
    "do grow output 1\n"
    "do copy slot 3; to output 1; bytes s2*4\n"
    "do grow slot 2\n"
    "do run 3; count 1\n";

TEST(GrowingProgram, TextAndBytesGiveItBack) {
  auto program = parse(kGrowing);
  ASSERT_TRUE(program.ok()) << program.status().message();
  plan_memory(*program);
  ASSERT_TRUE(verify(*program).ok()) << verify(*program).message();
  EXPECT_TRUE(grows(*program, {Storage::view, 0}));
  EXPECT_FALSE(grows(*program, {Storage::workspace, 0}));
  EXPECT_EQ(program->workspace[2].region, 0) << "after slots 3 and 4 their memory is free";
  EXPECT_NE(program->workspace[3].region, program->workspace[4].region);
  const std::string text = print(*program);
  const auto again = parse(text);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(print(*again), text);
  ByteWriter out;
  write(out, *program);
  const Bytes bytes = out.take();
  for (size_t length = 0; length <= bytes.size(); ++length) {
    ByteReader in(std::span(bytes).first(length), "program");
    const auto read_back = read(in);
    ASSERT_EQ(read_back.ok() && in.finish().ok(), length == bytes.size()) << length;
    if (length == bytes.size()) EXPECT_EQ(print(*read_back), text);
  }
}

TEST(GrowingProgram, TheVerifierNamesWhatIsWrong) {
  struct Damage {
    const char* reason;
    std::function<void(Program&)> apply;
  };
  const Damage cases[] = {
      {"uses dim 'steps' before it is set", [](Program& p) { p.body[1].to.index = 2; }},
      {"uses dim 'size' before it is set", [](Program& p) { p.body.erase(p.body.begin()); }},
      {"before it is set", [](Program& p) { std::swap(p.body[0], p.body[1]); }},
      {"gives room to a buffer that does not grow", [](Program& p) { p.body[1].to.index = 1; }},
      {"names a buffer that does not exist", [](Program& p) { p.body[1].to.index = 9; }},
      {"outside of loop 0", [](Program& p) { p.body[1].to = {Storage::view, 0}; }},
      {"a slot in a region with one that is in none", [](Program& p) { p.body[6].to.index = 1; }},
      {"sets dim 7, which does not exist", [](Program& p) { p.body[0].first = 7; }},
      {"not the run's to set", [](Program& p) { p.body[7].first = 0; }},
      {"fails with message 3", [](Program& p) { p.body[0].count = 3; }},
      {"what it reads is of", [](Program& p) { p.body[0].from.index = 0; }},
      {"not its own to set", [](Program& p) { p.body[7].first = 1; }},
      {"is in region 77", [](Program& p) { p.workspace[2].region = 77; }},
      {"is in the arena, though", [](Program& p) { p.workspace[2].region = -1; }},
      {"share a region", [](Program& p) { p.workspace[3].region = p.workspace[4].region; }},
      {"though the inputs bind it", [](Program& p) { p.dims[0].upper = IntExpr(4); }},
      {"workspace size is not known", [](Program& p) { p.workspace_bytes = IntExpr::symbol(1); }},
      {"whose iterations have no bound", [](Program& p) { p.views[0].base = {Storage::input, 0}; }},
  };
  auto good = parse(kGrowing);
  ASSERT_TRUE(good.ok());
  plan_memory(*good);
  for (const Damage& damage : cases) {
    Program bad = *good;
    damage.apply(bad);
    const Status status = verify(bad);
    EXPECT_FALSE(status.ok()) << damage.reason;
    EXPECT_NE(status.message().find(damage.reason), std::string::npos) << damage.reason << " / " << status.message();
  }
}

}  // namespace
}  // namespace quartet::program
