// Kernel IR: text and byte round trips, the verifier's refusals, hostile bytes.
#include "kernel/ir.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "kernel/analysis.h"
#include "kernel/builder.h"
#include "kernel/ops.h"

namespace quartet::kernel {
namespace {

std::string file_text(const std::string& name) {
  std::ifstream in(std::string(QUARTET_KERNEL_FILETESTS) + "/" + name);
  EXPECT_TRUE(in.good()) << name;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Kernel sample() {
  auto kernel = parse(file_text("every_construct.qk"));
  EXPECT_TRUE(kernel.ok()) << kernel.status().message();
  return kernel.ok() ? kernel.take() : Kernel{};
}

TEST(KernelText, PrintsWhatItParsed) {
  const Kernel kernel = sample();
  const std::string text = print(kernel);
  const auto again = parse(text);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(print(*again), text);
  EXPECT_EQ(serialize(*again), serialize(kernel));
  EXPECT_EQ(kernel.argument_count(), 4);
  EXPECT_EQ(count_statements(kernel), 53u);
}

TEST(KernelText, RefusesWithALineAndAReason) {
  const auto refused = [](const std::string& text) {
    const auto kernel = parse(text);
    EXPECT_FALSE(kernel.ok());
    return kernel.ok() ? std::string() : kernel.status().message();
  };
  EXPECT_NE(refused("kernel \"k\" dims 0\nnonsense").find("line 2"), std::string::npos);
  EXPECT_NE(refused("kernel \"k\" dims 0 tasks [1] body {(%0) %1 = frobnicate f32 (%0) yield ()}").find("frobnicate"),
            std::string::npos);
  EXPECT_NE(refused("kernel \"k\" dims 0 tasks [s0] body {(%0) yield ()}").find("task count"), std::string::npos);
  EXPECT_NE(refused("").find("kernel"), std::string::npos);
}

TEST(KernelText, EveryPrefixIsRefusedWithoutACrash) {
  const std::string text = file_text("every_construct.qk");
  const size_t end = text.find_last_of('}');
  for (size_t n = 0; n < end; n += 3) EXPECT_FALSE(parse(std::string_view(text).substr(0, n)).ok()) << n;
}

TEST(KernelBytes, RoundTrip) {
  const Kernel kernel = sample();
  const Bytes bytes = serialize(kernel);
  const auto again = deserialize(bytes);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(print(*again), print(kernel));
  EXPECT_EQ(serialize(*again), bytes);
}

TEST(KernelBytes, TruncationsAreCorrupt) {
  const Bytes bytes = serialize(sample());
  for (size_t n = 0; n < bytes.size(); ++n) {
    const auto kernel = deserialize(std::span(bytes).first(n));
    ASSERT_FALSE(kernel.ok()) << n;
    EXPECT_EQ(kernel.status().code(), Code::corrupt) << n;
  }
}

// Whatever the bytes, the answer is a status or a kernel that verifies, prints and reads back.
TEST(KernelBytes, MutationsNeverCrash) {
  const Bytes bytes = serialize(sample());
  uint64_t state = 0x9e3779b97f4a7c15u;
  const auto random = [&state] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes mutated = bytes;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int c = 0; c < changes; ++c) {
      uint8_t& byte = mutated[random() % mutated.size()];
      byte = random() % 2 ? static_cast<uint8_t>(byte ^ (1u << (random() % 8))) : static_cast<uint8_t>(random());
    }
    const auto kernel = deserialize(mutated);
    if (!kernel.ok()) continue;
    ++accepted;
    EXPECT_TRUE(verify(*kernel).ok());
    const auto again = parse(print(*kernel));
    EXPECT_TRUE(again.ok()) << again.status().message() << "\n" << print(*kernel);
  }
  EXPECT_GT(accepted, 0);
}

// ---- The verifier ----

Statement* find(Region& region, Op op) {
  for (Statement& s : region.body) {
    if (s.op == op) return &s;
    for (Region& inner : s.regions)
      if (Statement* const found = find(inner, op)) return found;
  }
  return nullptr;
}

struct Refusal {
  const char* reason;
  std::function<void(Kernel&)> spoil;
};

TEST(KernelVerifier, NamesWhatIsWrong) {
  const auto first = [](Kernel& k, Op op) -> Statement& { return *find(k.body, op); };
  const Refusal refusals[] = {
      {"beyond the kernel's 1 dims", [](Kernel& k) { k.dims = 1, k.dim_bounds.clear(); }},
      {"alignment 3", [](Kernel& k) { k.buffers[0].alignment = 3; }},
      {"after task scratch", [](Kernel& k) { std::swap(k.buffers[3], k.buffers[4]); }},
      {"no constant size", [](Kernel& k) { k.buffers[4].elements = IntExpr::symbol(0); }},
      {"is never defined", [](Kernel& k) { k.value_types.push_back(DType::f32); }},
      {"defined twice", [&](Kernel& k) { first(k, Op::dim).results[0] = 1; }},
      {"not defined here", [&](Kernel& k) { first(k, Op::mul).operands[0] = 40; }},
      {"out of range", [&](Kernel& k) { first(k, Op::mul).operands[0] = 4000; }},
      {"operands instead of 2", [&](Kernel& k) { first(k, Op::mul).operands.pop_back(); }},
      {"is i64, not i32", [&](Kernel& k) { first(k, Op::mul).dtype = DType::i32; }},
      {"is not defined for bool", [&](Kernel& k) { first(k, Op::lt).operands = {7, 7}; }},
      {"gives i64, not bool", [&](Kernel& k) { first(k, Op::lt).dtype = DType::i64; }},
      {"buffer @0 is read-only", [&](Kernel& k) { first(k, Op::store).buffer = 0; }},
      {"buffer @9 is out of range", [&](Kernel& k) { first(k, Op::load).buffer = 9; }},
      {"is f32, buffer @1 is i8", [&](Kernel& k) { first(k, Op::load).buffer = 1; }},
      {"dim 7 of 2", [&](Kernel& k) { first(k, Op::dim).immediate = 7; }},
      {"the step is not a positive constant", [&](Kernel& k) { first(k, Op::loop).operands[2] = 4; }},
      {"vector loop steps by 4", [&](Kernel& k) { first(k, Op::loop).operands[2] = 1; }},
      {"interleave 3", [&](Kernel& k) { first(k, Op::reduce).interleave = 3; }},
      {"chunks of 17", [&](Kernel& k) { first(k, Op::reduce).chunk = 17; }},
      {"all is not defined for f32", [&](Kernel& k) { first(k, Op::reduce).reduce = ReduceOp::all; }},
      {"a tile of 0 by 16", [&](Kernel& k) { first(k, Op::contract).rows = 0; }},
      {"accumulates in f16", [&](Kernel& k) { first(k, Op::contract).dtype = DType::f16; }},
      {"does not end with a yield", [](Kernel& k) { k.body.body.pop_back(); }},
      {"are not a i8",
       [](Kernel& k) {
         find(find(k.body, Op::eq) ? k.body : k.body, Op::constant)->dtype = DType::i8;
         find(k.body, Op::constant)->immediate = 300;
       }},
      {"changes the size", [&](Kernel& k) { first(k, Op::bitcast).dtype = DType::f64; }},
      {"yields i64 where f32 is due",
       [&](Kernel& k) {
         Statement& s = first(k, Op::bitcast);
         s.op = Op::cast, s.dtype = DType::i64;
         k.value_types[static_cast<size_t>(s.results[0])] = DType::i64;
       }},
  };
  ASSERT_TRUE(verify(sample()).ok()) << verify(sample()).message();
  for (const Refusal& refusal : refusals) {
    Kernel kernel = sample();
    refusal.spoil(kernel);
    const Status status = verify(kernel);
    ASSERT_FALSE(status.ok()) << refusal.reason;
    EXPECT_NE(status.message().find(refusal.reason), std::string::npos)
        << status.message() << "\nwanted: " << refusal.reason;
    EXPECT_NE(status.message().find("kernel 'every construct'"), std::string::npos) << status.message();
  }
}

Status verdict(const std::string& body) {
  return parse(
             "kernel \"k\" dims 1 buffer @0 out f32 [s0] align 64 \"y\" buffer @1 in i64 [s0] align 64 \"n\" tasks "
             "[1]\n"
             "body {(%0) %1 = constant i64 0 %2 = constant i64 1 %3 = dim 0 %4 = constant f32 0x0 " +
             body + " yield ()}")
      .status();
}

TEST(KernelVerifier, LanesShareBoundsAndConditions) {
  EXPECT_TRUE(verdict("loop vector (%1, %3, %2) {(%5) loop serial (%1, %3, %2) {(%6) yield ()} yield ()}").ok());
  const std::string loop = "loop vector (%1, %3, %2) {(%5) ";
  const std::string varying[] = {
      loop + "loop serial (%1, %5, %2) {(%6) yield ()} yield ()}",
      loop + "%6 = load i64 @1 (%5) loop serial (%1, %6, %2) {(%7) yield ()} yield ()}",
      loop + "%6 = lt bool (%5, %2) branch (%6) {() yield ()} {() yield ()} yield ()}",
      loop + "%6 = reduce sum f32 1 0 (%5, %3) {(%7) yield (%4)} yield ()}",
      "%5 = reduce sum f32 1 0 (%1, %3) {(%6) %7 = lt bool (%6, %2) branch (%7) {() yield ()} {() yield ()} yield "
      "(%4)}",
  };
  for (const std::string& body : varying)
    EXPECT_NE(verdict(body).message().find("differs between lanes"), std::string::npos)
        << body << ": " << verdict(body).message();
}

TEST(KernelVerifier, KeepsStructure) {
  const std::pair<const char*, const char*> cases[] = {
      {"loop vector (%1, %3, %2) {(%5) loop vector (%1, %3, %2) {(%6) yield ()} yield ()}",
       "a vector loop in a vector loop"},
      {"%5 = loop vector (%1, %3, %2, %4) {(%6, %7) yield (%7)}", "carries values"},
      {"loop unrolled (%1, %3, %2) {(%5) yield ()}", "not constant"},
      {"%5 = constant i64 65 loop unrolled (%1, %5, %2) {(%6) yield ()}", "more than 64"},
      {"%5 = reduce sum f32 1 0 (%1, %3) {(%6) store @0 (%6, %4) yield (%4)}", "stands in a reduce"},
      {"loop vector (%1, %3, %2) {(%5) contract f32 @0 @0 1 1 1 (%1, %1, %1, %1, %1, %1, %1) {(%6, %7, %8) yield ()} "
       "yield ()}",
       "stands in a vector loop"},
      {"contract f32 @0 @0 1 1 1 (%1, %1, %1, %1, %1, %1, %1) {(%5, %6, %7) loop serial (%1, %3, %2) {(%8) yield ()} "
       "yield ()}",
       "stands in a region of a contract"},
      {"loop serial (%1, %3, %2) {(%5) yield ()} store @0 (%5, %4)", "not defined here"},
  };
  for (const auto& [body, reason] : cases) {
    const Status status = verdict(body);
    EXPECT_NE(status.message().find(reason), std::string::npos) << body << ": " << status.message();
  }
}

TEST(KernelBits, FloatsRoundOnceAndComeBack) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (const double value : {0.0, 1.0, -2.5, 0.0009765625, 65504.0})
      if (type != DType::bf16 || value != 65504.0) EXPECT_EQ(float_value(type, float_bits(type, value)), value);
  // Halfway between two f16 values in f64 but not once rounded to f32: one rounding goes up, two would go to even.
  const double above_half = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(float_value(DType::f16, float_bits(DType::f16, above_half)), 1.0 + 0x1p-10);
  EXPECT_EQ(float_value(DType::f16, float_bits(DType::f16, -above_half)), -1.0 - 0x1p-10);
  EXPECT_EQ(float_bits(DType::f16, 1e9), 0x7c00);
  EXPECT_EQ(float_bits(DType::bf16, -1e300), 0xff80);
}

// ---- The builder ----

TEST(KernelBuilder, SharesFoldsAndHoists) {
  Builder b("k");
  b.set_dims(1);
  const BufferId x = b.buffer({"x", DType::f32, Scope::argument_in, IntExpr::symbol(0), 64});
  const BufferId y = b.buffer({"y", DType::f32, Scope::argument_out, IntExpr::symbol(0), 64});
  EXPECT_EQ(b.add(b.i64(2), b.i64(3)), b.i64(5));
  EXPECT_EQ(b.mul(b.task(), b.i64(1)), b.task());
  EXPECT_EQ(b.constant_of(b.binary(ScalarOp::floor_div, b.i64(-7), b.i64(2))), -4);
  EXPECT_EQ(b.constant_of(b.binary(ScalarOp::floor_mod, b.i64(-7), b.i64(2))), 1);
  EXPECT_EQ(b.binary(ScalarOp::floor_div, b.task(), b.i64(8)), b.binary(ScalarOp::shift_right, b.task(), b.i64(3)));
  ValueId base = kNone;
  b.loop(LoopKind::vector, b.i64(0), b.dim(0), 1, Runs::always, [&](ValueId i) {
    base = b.mul(b.dim(0), b.task());
    const ValueId row = b.load(x, b.task());
    EXPECT_EQ(row, b.load(x, b.task()));
    b.store(y, i, b.add(row, b.load(x, b.add(base, i))));
  });
  EXPECT_EQ(base, b.mul(b.dim(0), b.task()));
  const auto kernel = b.finish(IntExpr(1));
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  const Statement& loop = *find(const_cast<Kernel&>(*kernel).body, Op::loop);
  EXPECT_EQ(loop.regions[0].body.size(), 5u) << print(*kernel);  // index, load, add, store, yield
}

TEST(KernelBuilder, LoadsStayInRegionsThatMayNotRun) {
  Builder b("k");
  b.set_dims(1);
  const BufferId x = b.buffer({"x", DType::f32, Scope::argument_in, IntExpr(1), 64});
  const BufferId y = b.buffer({"y", DType::f32, Scope::argument_out, IntExpr(1), 64});
  const Ids sum =
      b.reduce({ReduceOp::sum, DType::f32, 4, 0}, b.i64(0), b.dim(0), [&](ValueId) { return b.load(x, b.i64(0)); });
  b.store(y, b.i64(0), sum[0]);
  const auto kernel = b.finish(IntExpr(1));
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_EQ(find(const_cast<Kernel&>(*kernel).body, Op::reduce)->regions[0].body[0].op, Op::load) << print(*kernel);
}

TEST(KernelBuilder, IndexExpressions) {
  Builder b("k");
  b.set_dims(2);
  const BufferId y = b.buffer({"y", DType::i64, Scope::argument_out, IntExpr(8), 64});
  const IntExpr i = IntExpr::axis(0), n = IntExpr::symbol(0), m = IntExpr::symbol(1);
  const auto value_of = [&](Symbol s) { return is_axis_symbol(s) ? b.task() : b.dim(s); };
  b.store(y, b.i64(0), b.index(floor_div(i * n - IntExpr(5), IntExpr(3)) + min(n, m) * IntExpr(-2), value_of));
  EXPECT_EQ(b.index(IntExpr::invalid(), value_of), kNone);
  EXPECT_TRUE(b.finish(IntExpr(1)).ok());
}

}  // namespace
}  // namespace quartet::kernel
