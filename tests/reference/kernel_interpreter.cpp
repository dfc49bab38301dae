#include "reference/kernel_interpreter.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "kernel/ops.h"
#include "reference/scalar.h"

namespace quartet::reference {
namespace {

using kernel::Buffer;
using kernel::BufferId;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::ReduceOp;
using kernel::Region;
using kernel::Scope;
using kernel::Statement;
using kernel::ValueId;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t read_element(DType dtype, const uint8_t* from) {
  uint64_t raw = 0;
  std::memcpy(&raw, from, size_of(dtype));
  switch (dtype) {
    case DType::i32:
      return static_cast<int32_t>(raw);
    case DType::i16:
      return static_cast<int16_t>(raw);
    case DType::i8:
      return static_cast<int8_t>(raw);
    default:
      return static_cast<int64_t>(raw);
  }
}

struct Memory {
  std::span<uint8_t> bytes;
  int64_t elements = 0;
  std::vector<int64_t> writer;  // outputs: task that wrote each element, or -1
};

struct State {
  int64_t value = 0, index = -1;
};

class Machine {
 public:
  Machine(const Kernel& kernel, Isa isa)
      : kernel_(kernel), fused_(isa != Isa::sse2), values_(kernel.value_types.size(), 0) {}

  Status bind(std::span<const std::span<uint8_t>> arguments, std::span<const int64_t> dims) {
    dims_ = dims;
    if (dims.size() != static_cast<size_t>(kernel_.dims))
      return fail("%zu dim values for %d dims", dims.size(), kernel_.dims);
    if (arguments.size() != static_cast<size_t>(kernel_.argument_count()))
      return fail("%zu arguments for %d buffers", arguments.size(), kernel_.argument_count());
    scratch_.resize(kernel_.buffers.size());
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
      const Buffer& buffer = kernel_.buffers[b];
      Memory memory;
      QUARTET_ASSIGN(memory.elements, evaluate_dims(buffer.elements));
      if (memory.elements < 0) return fail("buffer @%zu has %" PRId64 " elements", b, memory.elements);
      const auto size = checked_mul(static_cast<size_t>(memory.elements), size_of(buffer.dtype));
      if (!size) return fail("buffer @%zu is too large", b);
      if (buffer.scope == Scope::task) {
        scratch_[b].assign(*size, 0xff);
        memory.bytes = scratch_[b];
      } else {
        if (arguments[b].size() < *size)
          return fail("argument @%zu has %zu bytes instead of %zu", b, arguments[b].size(), *size);
        memory.bytes = arguments[b];
      }
      if (buffer.scope == Scope::argument_out) memory.writer.assign(static_cast<size_t>(memory.elements), -1);
      memory_.push_back(std::move(memory));
    }
    return {};
  }

  Result<int64_t> tasks() const { return evaluate_dims(kernel_.tasks); }

  Status run_task(int64_t task) {
    task_ = task;
    for (auto& scratch : scratch_) std::fill(scratch.begin(), scratch.end(), uint8_t{0xff});
    set(kernel_.body.arguments[0], task);
    return region(kernel_.body);
  }

 private:
  template <class... A>
  Status fail(const char* pattern, A... arguments) const {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-security"
#pragma clang diagnostic ignored "-Wformat-nonliteral"
    const Status words = make_error(Code::internal, pattern, arguments...);
#pragma clang diagnostic pop
    std::string where = "interpreting kernel '" + kernel_.name + "'";
    if (statement_) {
      where += format(", task %" PRId64 ", %s", task_, op_name(statement_->op));
      if (!statement_->results.empty()) where += " %" + std::to_string(statement_->results[0]);
    }
    return words.with_prefix(where + ": ");
  }

  Result<int64_t> evaluate_dims(const IntExpr& e) const {
    const auto value = e.evaluate([this](Symbol s) -> std::optional<int64_t> {
      if (s < 0 || static_cast<size_t>(s) >= dims_.size()) return std::nullopt;
      return dims_[static_cast<size_t>(s)];
    });
    if (!value) return fail("an expression over the dims has no value");
    return *value;
  }

  int64_t get(ValueId v) const { return values_[static_cast<size_t>(v)]; }
  void set(ValueId v, int64_t bits) { values_[static_cast<size_t>(v)] = bits; }
  DType type(ValueId v) const { return kernel_.value_types[static_cast<size_t>(v)]; }

  Status region(const Region& region) {
    const Statement* const outer = statement_;
    for (const Statement& s : region.body) {
      statement_ = &s;
      QUARTET_TRY(execute(s));
    }
    statement_ = outer;
    return {};
  }

  static const std::vector<ValueId>& yields(const Region& region) { return region.body.back().operands; }

  Status execute(const Statement& s) {
    switch (s.op) {
      case Op::constant:
        set(s.results[0], s.immediate);
        return {};
      case Op::dim:
        set(s.results[0], dims_[static_cast<size_t>(s.immediate)]);
        return {};
      case Op::load:
        return load(s);
      case Op::store:
        return store(s);
      case Op::loop:
        return loop(s);
      case Op::branch: {
        const Region& taken = s.regions[get(s.operands[0]) != 0 ? 0 : 1];
        QUARTET_TRY(region(taken));
        for (size_t i = 0; i < s.results.size(); ++i) set(s.results[i], get(yields(taken)[i]));
        return {};
      }
      case Op::reduce:
        return reduce(s);
      case Op::contract:
        return contract(s);
      case Op::yield:
        return {};
      default:
        return scalar(s);
    }
  }

  Status scalar(const Statement& s) {
    int64_t operands[3] = {};
    for (size_t i = 0; i < s.operands.size(); ++i) operands[i] = get(s.operands[i]);
    const auto value = evaluate(kernel::scalar_of(s.op), s.dtype, type(s.operands.back()),
                                std::span<const int64_t>(operands, s.operands.size()), fused_);
    if (!value) return fail("is not an operation of expanded kernels");
    set(s.results[0], *value);
    return {};
  }

  Result<uint8_t*> element(BufferId id, int64_t index) {
    Memory& memory = memory_[static_cast<size_t>(id)];
    if (index < 0 || index >= memory.elements)
      return fail("element %" PRId64 " of buffer @%d '%s', which has %" PRId64, index, id,
                  kernel_.buffers[static_cast<size_t>(id)].name.c_str(), memory.elements);
    return memory.bytes.data() + static_cast<size_t>(index) * size_of(kernel_.buffers[static_cast<size_t>(id)].dtype);
  }

  Status load(const Statement& s) {
    if (s.operands.size() == 3 && get(s.operands[1]) == 0) {
      set(s.results[0], get(s.operands[2]));
      return {};
    }
    QUARTET_ASSIGN(const uint8_t* const from, element(s.buffer, get(s.operands[0])));
    set(s.results[0], read_element(s.dtype, from));
    return {};
  }

  Status store(const Statement& s) {
    if (s.operands.size() == 3 && get(s.operands[2]) == 0) return {};
    const int64_t index = get(s.operands[0]), value = get(s.operands[1]);
    QUARTET_ASSIGN(uint8_t* const to, element(s.buffer, index));
    Memory& memory = memory_[static_cast<size_t>(s.buffer)];
    if (!memory.writer.empty()) {
      int64_t& writer = memory.writer[static_cast<size_t>(index)];
      if (writer >= 0 && writer != task_)
        return fail("element %" PRId64 " of buffer @%d was written by task %" PRId64, index, s.buffer, writer);
      writer = task_;
    }
    std::memcpy(to, &value, size_of(kernel_.buffers[static_cast<size_t>(s.buffer)].dtype));
    return {};
  }

  Status loop(const Statement& s) {
    const Region& body = s.regions[0];
    const int64_t lo = get(s.operands[0]), hi = get(s.operands[1]), step = get(s.operands[2]);
    std::vector<int64_t> carried;
    for (size_t i = 3; i < s.operands.size(); ++i) carried.push_back(get(s.operands[i]));
    const bool backwards = s.loop == LoopKind::vector;
    for (int64_t i = lo; i < hi; i += step) {
      set(body.arguments[0], backwards ? hi - 1 - (i - lo) : i);
      for (size_t c = 0; c < carried.size(); ++c) set(body.arguments[c + 1], carried[c]);
      QUARTET_TRY(region(body));
      for (size_t c = 0; c < carried.size(); ++c) carried[c] = get(yields(body)[c]);
    }
    for (size_t c = 0; c < carried.size(); ++c) set(s.results[c], carried[c]);
    return {};
  }

  int64_t apply(ScalarOp op, DType dtype, int64_t a, int64_t b) const {
    const int64_t operands[] = {a, b};
    return *evaluate(op, dtype, dtype, operands, fused_);
  }

  int64_t limit(DType dtype, bool highest) const {
    if (is_float(dtype)) return kernel::float_bits(dtype, highest ? kInfinity : -kInfinity);
    const int bits = static_cast<int>(std::max<size_t>(1, size_of(dtype))) * 8;
    if (is_unsigned_int(dtype)) return highest ? static_cast<int64_t>(~uint64_t{0} >> (64 - bits)) : 0;
    const int64_t most = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
    return highest ? most : -most - 1;
  }

  State identity(const Statement& s) const {
    switch (s.reduce) {
      case ReduceOp::sum:
        return {is_float(s.dtype) ? kernel::float_bits(s.dtype, -0.0) : 0, -1};
      case ReduceOp::product:
        return {is_float(s.dtype) ? kernel::float_bits(s.dtype, 1.0) : 1, -1};
      case ReduceOp::max:
      case ReduceOp::argmax:
        return {limit(s.dtype, false), -1};
      case ReduceOp::min:
      case ReduceOp::argmin:
        return {limit(s.dtype, true), -1};
      case ReduceOp::all:
        return {1, -1};
      case ReduceOp::any:
        return {0, -1};
    }
    return {};
  }

  State merge(const Statement& s, const State& a, const State& b) const {
    switch (s.reduce) {
      case ReduceOp::sum:
        return {apply(ScalarOp::add, s.dtype, a.value, b.value), -1};
      case ReduceOp::product:
        return {apply(ScalarOp::mul, s.dtype, a.value, b.value), -1};
      case ReduceOp::max:
        return {apply(ScalarOp::max, s.dtype, a.value, b.value), -1};
      case ReduceOp::min:
        return {apply(ScalarOp::min, s.dtype, a.value, b.value), -1};
      case ReduceOp::all:
        return {a.value & b.value, -1};
      case ReduceOp::any:
        return {a.value | b.value, -1};
      case ReduceOp::argmax:
      case ReduceOp::argmin: {
        if (a.index < 0) return b;
        if (b.index < 0) return a;
        const int order = compare_best(s.dtype, a.value, b.value, s.reduce == ReduceOp::argmin);
        return order > 0 || (order == 0 && a.index < b.index) ? a : b;
      }
    }
    return a;
  }

  Status reduce(const Statement& s) {
    const Region& body = s.regions[0];
    const int64_t lo = get(s.operands[0]), hi = get(s.operands[1]);
    const size_t p = static_cast<size_t>(s.interleave);
    State total = identity(s);
    for (int64_t begin = lo; begin < hi;) {
      const int64_t end = s.chunk > 0 && hi - begin > s.chunk ? begin + s.chunk : hi;
      std::vector<State> states(p, identity(s));
      for (int64_t r = begin; r < end; ++r) {
        set(body.arguments[0], r);
        QUARTET_TRY(region(body));
        State& state = states[static_cast<size_t>(r - begin) % p];
        state = merge(s, state, {get(yields(body)[0]), r - lo});
      }
      for (size_t h = p / 2; h > 0; h /= 2)
        for (size_t i = 0; i < h; ++i) states[i] = merge(s, states[i], states[i + h]);
      total = begin == lo ? states[0] : merge(s, total, states[0]);
      begin = end;
    }
    set(s.results[0], total.value);
    if (s.results.size() > 1) set(s.results[1], total.index);
    return {};
  }

  Result<int64_t> side(BufferId id, int64_t index, DType accumulator) {
    QUARTET_ASSIGN(const uint8_t* const from, element(id, index));
    const DType dtype = kernel_.buffers[static_cast<size_t>(id)].dtype;
    const int64_t bits[] = {read_element(dtype, from)};
    return *evaluate(ScalarOp::cast, accumulator, dtype, bits, fused_);
  }

  int64_t multiply_add(DType dtype, int64_t a, int64_t b, int64_t acc) const {
    if (!is_float(dtype)) return apply(ScalarOp::add, dtype, apply(ScalarOp::mul, dtype, a, b), acc);
    const int64_t operands[] = {a, b, acc};
    return *evaluate(ScalarOp::fma, dtype, dtype, operands, fused_);
  }

  // The loops around k from operand `at` on; `chain` is what stands inside them.
  Status around_k(const Statement& s, size_t at, int64_t a, int64_t b,
                  const std::function<Status(int64_t, int64_t)>& chain) {
    if (at >= s.operands.size()) return chain(a, b);
    const int64_t count = get(s.operands[at]), a_stride = get(s.operands[at + 1]), b_stride = get(s.operands[at + 2]);
    for (int64_t i = 0; i < count; ++i) QUARTET_TRY(around_k(s, at + 3, a + i * a_stride, b + i * b_stride, chain));
    return {};
  }

  Status contract(const Statement& s) {
    int64_t o[7];
    for (size_t i = 0; i < 7; ++i) o[i] = get(s.operands[i]);
    const auto [k_count, a_base, a_row, a_k, b_base, b_k, limit] = o;
    for (int64_t row = s.rows; row-- > 0;)
      for (int64_t column = std::min<int64_t>(limit, s.columns); column-- > 0;) {
        int64_t acc = 0;  // +0 of every type
        if (s.regions.size() > 1) {
          set(s.regions[1].arguments[0], row);
          set(s.regions[1].arguments[1], column);
          QUARTET_TRY(region(s.regions[1]));
          acc = get(yields(s.regions[1])[0]);
        }
        const auto chain = [&](int64_t from_a, int64_t from_b) -> Status {
          for (int64_t k = 0; k < k_count; ++k) {
            QUARTET_ASSIGN(const int64_t a, side(s.buffer, from_a + k * a_k, s.dtype));
            QUARTET_ASSIGN(const int64_t b, side(s.buffer_b, from_b + k * b_k, s.dtype));
            acc = multiply_add(s.dtype, a, b, acc);
          }
          return {};
        };
        QUARTET_TRY(around_k(s, kernel::kContractOperands, a_base + row * a_row, b_base + column, chain));
        const Region& epilogue = s.regions[0];
        set(epilogue.arguments[0], row);
        set(epilogue.arguments[1], column);
        set(epilogue.arguments[2], acc);
        QUARTET_TRY(region(epilogue));
      }
    return {};
  }

  const Kernel& kernel_;
  const bool fused_;
  std::span<const int64_t> dims_;
  std::vector<int64_t> values_;
  std::vector<Memory> memory_;
  std::vector<std::vector<uint8_t>> scratch_;
  const Statement* statement_ = nullptr;
  int64_t task_ = 0;
};

Result<int64_t> run(const Kernel& kernel, Isa isa, std::span<const std::span<uint8_t>> arguments,
                    std::span<const int64_t> dims, int64_t begin, int64_t end) {
  QUARTET_TRY(kernel::verify(kernel));
  Machine machine(kernel, isa);
  QUARTET_TRY(machine.bind(arguments, dims));
  QUARTET_ASSIGN(const int64_t tasks, machine.tasks());
  if (end < 0) end = tasks;
  if (begin < 0 || begin > end || end > tasks)
    return make_error(Code::invalid_argument, "interpreting kernel '%s': tasks [%" PRId64 ", %" PRId64 ") of %" PRId64,
                      kernel.name.c_str(), begin, end, tasks);
  for (int64_t task = begin; task < end; ++task) QUARTET_TRY(machine.run_task(task));
  return tasks;
}

}  // namespace

Status interpret(const Kernel& kernel, Isa isa, std::span<const std::span<uint8_t>> arguments,
                 std::span<const int64_t> dims, int64_t begin, int64_t end) {
  if (end < 0)
    return make_error(Code::invalid_argument, "interpreting kernel '%s': an end of %" PRId64, kernel.name.c_str(), end);
  return run(kernel, isa, arguments, dims, begin, end).status();
}

Result<int64_t> interpret(const Kernel& kernel, Isa isa, std::span<const std::span<uint8_t>> arguments,
                          std::span<const int64_t> dims) {
  return run(kernel, isa, arguments, dims, 0, -1);
}

}  // namespace quartet::reference
