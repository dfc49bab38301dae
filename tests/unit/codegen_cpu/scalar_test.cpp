// Every scalar operation of every type, on every class: closed code that gives the interpreter's bits.
#include <gtest/gtest.h>

#include "compiled.h"
#include "kernel/builder.h"

namespace quartet::testing {
namespace {

using kernel::Builder;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Runs;
using kernel::Scope;

constexpr int64_t kElements = 331;  // no multiple of anything

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32,    DType::i16,
                            DType::i8,  DType::u64, DType::u32, DType::u16,  DType::u8,  DType::boolean};

// out[i] = op(a[i], b[i], c[i]) for i < n.
Result<Kernel> elementwise(ScalarOp op, DType from, DType to) {
  Builder b(format("%s %s %s", scalar_op_name(op), dtype_name(from), dtype_name(to)));
  const int operands = scalar_op_operands(op);
  std::vector<kernel::BufferId> inputs;
  for (int i = 0; i < operands; ++i) {
    const DType type = op == ScalarOp::select && i == 0 ? DType::boolean : from;
    inputs.push_back(b.buffer({"", type, Scope::argument_in, kElements, static_cast<int32_t>(size_of(type))}));
  }
  const auto out = b.buffer({"", to, Scope::argument_out, kElements, static_cast<int32_t>(size_of(to))});
  b.loop(LoopKind::vector, b.i64(0), b.i64(kElements), 1, Runs::always, [&](kernel::ValueId i) {
    kernel::Ids loaded;
    for (const auto input : inputs) loaded.push_back(b.load(input, i));
    b.store(out, i, b.scalar(op, to, loaded));
  });
  return b.finish(1);
}

struct Case {
  Kernel kernel;
  std::vector<Argument> arguments;
};

void add_case(std::vector<Case>& cases, ScalarOp op, DType from, DType to) {
  auto kernel = elementwise(op, from, to);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  Case c{kernel.take(), {}};
  const bool positive_divisor = op == ScalarOp::floor_div || op == ScalarOp::floor_mod;
  for (size_t i = 0; i < c.kernel.buffers.size(); ++i) {
    const DType type = c.kernel.buffers[i].dtype;
    Argument values = mixed(type, kElements, i);
    if (positive_divisor && i == 1) {
      const size_t size = size_of(type);
      for (size_t at = 0; at < values.size(); at += size) {
        if (is_signed_int(type)) values[at + size - 1] &= 0x7f;
        values[at] |= 1;
      }
    }
    if (c.kernel.buffers[i].scope == Scope::argument_out) values.assign(values.size(), 0xee);
    c.arguments.push_back(std::move(values));
  }
  cases.push_back(std::move(c));
}

void run_cases(const std::vector<Case>& cases, Isa isa) {
  std::vector<Kernel> kernels;
  for (const Case& c : cases) kernels.push_back(c.kernel);
  const auto image = compile(kernels, isa);
  ASSERT_TRUE(image.ok()) << isa_name(isa) << ": " << image.status().message();
  if (!runs_here(isa)) return;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string found = difference(cases[i].kernel, (*image)->function(i), isa, cases[i].arguments, {});
    EXPECT_TRUE(found.empty()) << found;
  }
}

class ScalarCode : public ::testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Classes, ScalarCode, ::testing::ValuesIn(kClasses),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

TEST_P(ScalarCode, EveryOperationOfEveryType) {
  std::vector<Case> cases;
  for (int n = 0; n < kScalarOpCount; ++n) {
    const auto op = static_cast<ScalarOp>(n);
    if (op == ScalarOp::cast || op == ScalarOp::bitcast) continue;
    for (const DType type : kTypes)
      if (kernel::defined_for(op, type)) add_case(cases, op, type, is_comparison(op) ? DType::boolean : type);
  }
  ASSERT_GT(cases.size(), 250u);
  run_cases(cases, GetParam());
}

TEST_P(ScalarCode, EveryCast) {
  std::vector<Case> cases;
  for (const DType from : kTypes)
    for (const DType to : kTypes) add_case(cases, ScalarOp::cast, from, to);
  run_cases(cases, GetParam());
}

TEST_P(ScalarCode, EveryBitcast) {
  std::vector<Case> cases;
  for (const DType from : kTypes)
    for (const DType to : kTypes)
      if (from != DType::boolean && to != DType::boolean && from != to && size_of(from) == size_of(to))
        add_case(cases, ScalarOp::bitcast, from, to);
  run_cases(cases, GetParam());
}

}  // namespace
}  // namespace quartet::testing
