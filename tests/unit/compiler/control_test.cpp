// Control flow through compiled code: the bits are the reference interpreter's, whatever the number of vEUs.
#include <gtest/gtest.h>

#include "unit/compiler/rig.h"

namespace quartet {
namespace {

using reference::Tensor;

Tensor ints(DType dtype, std::vector<int64_t> dims, std::vector<int64_t> values) {
  return {dtype, std::move(dims), std::move(values)};
}
Tensor flag(bool value) { return ints(DType::boolean, {}, {value}); }
Tensor number(int64_t value) { return ints(DType::i64, {}, {value}); }
Tensor counted(DType dtype, const std::vector<int64_t>& dims, int64_t first = 1) {
  Tensor tensor = Tensor::zeros(dtype, dims);
  for (size_t i = 0; i < tensor.elements.size(); ++i) tensor.elements[i] = first + static_cast<int64_t>(i);
  return tensor;
}

class Control : public testing::Test {
 protected:
  // Compiles once, runs every list of inputs with 1, 2 and 8 vEUs.
  void check(const char* text, const std::vector<std::vector<Tensor>>& runs) {
    const auto graph = graph::parse(text);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    compiler::Request request{*graph, {}, host_cpu()};
    ASSERT_TRUE(request.options.set(OptionId::verify_stages, true).ok());
    const auto program = engine_->compile(request);
    ASSERT_TRUE(program.ok()) << program.status().message();
    for (const auto& inputs : runs) {
      const auto want = reference::interpret(**graph, inputs);
      ASSERT_TRUE(want.ok()) << want.status().message();
      for (const int vEUs : {1, 2, 8}) {
        const auto got = test::run(*(*program)->program, inputs, {vEUs, vEUs > 1 ? pool_ : nullptr});
        ASSERT_TRUE(got.ok()) << got.status().message();
        ASSERT_EQ(got->size(), want->size());
        for (size_t o = 0; o < got->size(); ++o) {
          EXPECT_EQ((*got)[o].dims, (*want)[o].dims) << "output " << o;
          EXPECT_EQ((*got)[o].elements, (*want)[o].elements) << "output " << o << ", " << vEUs << " vEUs\n"
                                                             << program::print((*program)->program->program());
        }
      }
    }
  }

  std::unique_ptr<compiler::Engine> engine_ = test::make_engine();
  std::shared_ptr<runtime::WorkerPool> pool_ =
      std::make_shared<runtime::WorkerPool>(runtime::WorkerPool::Options{.threads = 7, .jobs = nullptr});
};

TEST_F(Control, AnIfTakesOneSide) {
  check(R"(graph(%c: bool, %x: i32[5], %y: i32[5]) {
             %s = add %x, %y
             %r, %q = if %c : i32[5], i32[5] then {
               %a = mul %s, %x
               yield %a, %y
             } else {
               %b = sub %x, %s
               yield %s, %b
             }
             %z = add %r, %q
             return %z as z, %r as r
           })",
        {{flag(true), counted(DType::i32, {5}), counted(DType::i32, {5}, 10)},
         {flag(false), counted(DType::i32, {5}), counted(DType::i32, {5}, 10)}});
}

TEST_F(Control, IfsNestAndPassThrough) {
  check(R"(graph(%c: bool, %d: bool, %x: i32[3]) {
             %one = constant i32[] [1]
             %r = if %c : i32[3] then {
               %s = if %d : i32[3] then {
                 %a = add %x, %one
                 yield %a
               } else {
                 yield %x
               }
               yield %s
             } else {
               yield %x
             }
             return %r as r, %x as x, %r as again
           })",
        {{flag(true), flag(true), counted(DType::i32, {3})},
         {flag(true), flag(false), counted(DType::i32, {3})},
         {flag(false), flag(true), counted(DType::i32, {3})}});
}

TEST_F(Control, ALoopCarriesAndStacks) {
  check(R"(graph(%x: i32[7, 4], %h: i32[4]) {
             %n = constant i64[] [7]
             %last, %all = loop %n, _, %h {trip = [7]} : i32[4], i32[7, 4] do (%i: i64, %go: bool, %s: i32[4]) {
               %row = gather %x, %i {axis = 0}
               %a = mul %s, %s
               %b = add %a, %row
               %true = constant bool[] [true]
               yield %true, %b, %b
             }
             return %last as last, %all as all
           })",
        {{counted(DType::i32, {7, 4}), counted(DType::i32, {4})}});
}

TEST_F(Control, ALoopRunsAsOftenAsItsTripCountAndConditionSay) {
  const char* text = R"(graph(%n: i64, %go: bool, %x: i64[3], %most: i64[3]) {
             %v, %w = loop %n, %go, %x, %x : i64[3], i64[3] do (%i: i64, %c: bool, %a: i64[3], %b: i64[3]) {
               %next = add %a, %i
               %less = less %next, %most
               %all = reduce_all %less {axes = [0]}
               yield %all, %b, %next
             }
             return %v as v, %w as w
           })";
  const Tensor x = counted(DType::i64, {3}), most = counted(DType::i64, {3}, 40);
  check(text, {{number(5), flag(true), x, most},
               {number(0), flag(true), x, most},
               {number(-3), flag(true), x, most},
               {number(5), flag(false), x, most},
               {number(1000000), flag(true), x, most},
               {number(1), flag(true), x, most}});
}

TEST_F(Control, CarriedValuesMayChangePlaces) {
  check(R"(graph(%n: i64, %x: i32[2], %y: i32[2]) {
             %a, %b, %k = loop %n, _, %x, %y, %x : i32[2], i32[2], i32[2]
                 do (%i: i64, %c: bool, %p: i32[2], %q: i32[2], %same: i32[2]) {
               yield %c, %q, %p, %same
             }
             return %a as a, %b as b, %k as k
           })",
        {{number(0), counted(DType::i32, {2}), counted(DType::i32, {2}, 7)},
         {number(3), counted(DType::i32, {2}), counted(DType::i32, {2}, 7)},
         {number(4), counted(DType::i32, {2}), counted(DType::i32, {2}, 7)}});
}

TEST_F(Control, LoopsNestAndStackIntoRows) {
  check(R"(graph(%x: i32[3, 2, 5], %c: bool) {
             %n = constant i64[] [3]
             %m = constant i64[] [2]
             %true = constant bool[] [true]
             %zero = constant i32[] [0]
             %sum, %rows = loop %n, _, %zero {trip = [3]} : i32[], i32[3, 2, 5]
                 do (%i: i64, %g: bool, %s: i32[]) {
               %plane = gather %x, %i {axis = 0}
               %inner, %parts = loop %m, _, %s {trip = [2]} : i32[], i32[2, 5] do (%j: i64, %h: bool, %t: i32[]) {
                 %row = gather %plane, %j {axis = 0}
                 %part = if %c : i32[5] then {
                   %p = mul %row, %t
                   yield %p
                 } else {
                   yield %row
                 }
                 %total = reduce_sum %part {axes = [0]}
                 %u = add %total, %t
                 yield %true, %u, %part
               }
               yield %true, %inner, %parts
             }
             return %sum as sum, %rows as rows
           })",
        {{counted(DType::i32, {3, 2, 5}), flag(true)}, {counted(DType::i32, {3, 2, 5}), flag(false)}});
}

TEST_F(Control, RowsFromTheEnd) {
  check(R"(graph(%x: i32[6, 4], %h: i32[4]) {
             %n = constant i64[] [6]
             %five = constant i64[] [5]
             %true = constant bool[] [true]
             %last, %all = loop %n, _, %h {trip = [6]} : i32[4], i32[6, 4] do (%i: i64, %go: bool, %s: i32[4]) {
               %back = sub %five, %i
               %row = gather %x, %back {axis = 0}
               %b = sub %row, %s
               yield %true, %b, %b
             }
             return %last as last, %all as all
           })",
        {{counted(DType::i32, {6, 4}), counted(DType::i32, {4})}});
}

TEST_F(Control, ManyVEUsShareALoopsStages) {
  check(R"(graph(%x: i32[200, 300], %w: i32[300, 300], %n: i64) {
             %y = loop %n, _, %x : i32[200, 300] do (%i: i64, %go: bool, %s: i32[200, 300]) {
               %p = matmul %s, %w
               %q = add %p, %x
               yield %go, %q
             }
             return %y as y
           })",
        {{counted(DType::i32, {200, 300}), counted(DType::i32, {300, 300}), number(4)}});
}

TEST_F(Control, ARequirementThatDoesNotHoldFailsTheRun) {
  const auto graph = graph::parse(R"(graph(%c: bool, %d: bool, %x: f32[40, 40]) {
             %y = if %c : f32[40, 40] then {
               %z = require %d, %x {reason = "d is false"}
               %p = matmul %z, %z
               yield %p
             } else { yield %x }
             return %y as y
           })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto program = engine_->compile({*graph, {}, host_cpu()});
  ASSERT_TRUE(program.ok()) << program.status().message();
  for (const bool c : {false, true})
    for (const bool d : {false, true}) {
      const auto got = test::run(*(*program)->program, {flag(c), flag(d), Tensor::zeros(DType::f32, {40, 40})});
      EXPECT_EQ(got.ok(), !c || d);
      if (got.ok()) continue;
      EXPECT_EQ(got.status().code(), Code::failed_precondition);
      EXPECT_NE(got.status().message().find("d is false"), std::string::npos) << got.status().message();
    }
}

TEST_F(Control, ADimThatALoopSets) {
  // The loop ends when the row's first element is negative; what follows is written in terms of its dim.
  check(R"(dim n
           dim steps in [0, n] run
           graph(%x: i32[n, 4], %h: i32[4]) {
             %list = dims {shape = [n]}
             %t = reshape %list {shape = []}
             %true = constant bool[] [true]
             %zero = constant i64[] [0]
             %low = constant i32[] [0]
             %last, %all = loop %t, %true, %h {trip = [steps]} : i32[4], i32[steps, 4]
                 do (%i: i64, %go: bool, %s: i32[4]) {
               %row = gather %x, %i {axis = 0}
               %b = add %row, %s
               %first = gather %row, %zero {axis = 0}
               %more = less %low, %first
               yield %more, %b, %b
             }
             %double = add %all, %all
             %sum = reduce_sum %double {axes = [0]}
             %flat = reshape %double {shape = [4 * steps]}
             return %last as last, %all as all, %sum as sum, %flat as flat
           })",
        {{counted(DType::i32, {9, 4}), counted(DType::i32, {4})},
         {counted(DType::i32, {9, 4}, -8), counted(DType::i32, {4})},
         {ints(DType::i32, {3, 4}, {5, 1, 1, 1, -5, 2, 2, 2, 3, 3, 3, 3}), counted(DType::i32, {4})},
         {counted(DType::i32, {0, 4}), counted(DType::i32, {4})}});
}

TEST_F(Control, SymbolicDims) {
  check(R"(dim n
           graph(%x: i32[n, 4], %h: i32[4], %c: bool) {
             %trip = dims {shape = [n]}
             %t = reshape %trip {shape = []}
             %true = constant bool[] [true]
             %last, %all = loop %t, _, %h {trip = [n]} : i32[4], i32[n, 4] do (%i: i64, %go: bool, %s: i32[4]) {
               %row = gather %x, %i {axis = 0}
               %b = add %row, %s
               yield %true, %b, %b
             }
             %r = if %c : i32[n, 4] then {
               yield %all
             } else {
               yield %x
             }
             return %last as last, %r as r
           })",
        {{counted(DType::i32, {9, 4}), counted(DType::i32, {4}), flag(true)},
         {counted(DType::i32, {1, 4}), counted(DType::i32, {4}), flag(false)},
         {counted(DType::i32, {0, 4}), counted(DType::i32, {4}), flag(true)}});
}

}  // namespace
}  // namespace quartet
