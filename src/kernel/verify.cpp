// The verifier: everything a later reader of kernel IR relies on.
#include <bit>
#include <limits>
#include <optional>

#include "kernel/analysis.h"
#include "kernel/ops.h"

namespace quartet::kernel {
namespace {

constexpr int kMaxDepth = 32;
constexpr int32_t kMaxDims = 4096;
constexpr int64_t kMaxUnrolled = 64;
constexpr int32_t kMaxInterleave = 1024;
constexpr int32_t kMaxTile = 4096;

// Where a statement stands.
struct Place {
  int depth = 0;
  bool vector = false;    // in a vector loop
  bool reduce = false;    // in a reduce
  bool contract = false;  // in the epilogue or init of a contract
  bool init = false;      // in the init of a contract
};

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel), varying_(varying_values(kernel)) {}

  Status run() {
    QUARTET_TRY(header());
    state_.assign(kernel_.value_types.size(), State::undefined);
    constants_.assign(kernel_.value_types.size(), std::nullopt);
    if (kernel_.body.arguments.size() != 1)
      return fail("the body has %zu arguments, not the task number alone", kernel_.body.arguments.size());
    QUARTET_TRY(region(kernel_.body, Place{}, {DType::i64}, "the body"));
    if (!yields(kernel_.body).empty()) return fail("the body yields values");
    for (size_t v = 0; v < state_.size(); ++v)
      if (state_[v] == State::undefined) return fail("value %%%zu is never defined", v);
    return {};
  }

 private:
  enum class State : uint8_t { undefined, in_scope, gone };

  template <class... A>
  Status fail(const char* pattern, A... arguments) const {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-security"
#pragma clang diagnostic ignored "-Wformat-nonliteral"
    const Status words = make_error(Code::invalid_argument, pattern, arguments...);
#pragma clang diagnostic pop
    std::string where = "kernel '" + kernel_.name + "': ";
    if (statement_) {
      where += "statement " + std::to_string(number_) + " (" + op_name(statement_->op);
      if (!statement_->results.empty()) where += " %" + std::to_string(statement_->results[0]);
      where += "): ";
    }
    return words.with_prefix(where);
  }

  static const std::vector<ValueId>& yields(const Region& region) { return region.body.back().operands; }
  DType type(ValueId v) const { return kernel_.value_types[static_cast<size_t>(v)]; }

  Status expression(const IntExpr& e, const char* what) const {
    if (!e.is_valid()) return fail("%s is not a valid expression", what);
    const int32_t dims = kernel_.dims;
    if (e.contains_any([dims](Symbol s) { return s < 0 || s >= dims; }))
      return fail("%s uses a symbol beyond the kernel's %d dims", what, dims);
    return {};
  }

  Status header() const {
    if (kernel_.dims < 0 || kernel_.dims > kMaxDims) return fail("%d dims", kernel_.dims);
    if (kernel_.dim_bounds.size() > static_cast<size_t>(kernel_.dims)) return fail("more dim bounds than dims");
    for (const IntExpr& bound : kernel_.dim_bounds)
      if (bound.is_valid()) QUARTET_TRY(expression(bound, "a dim's bound"));
    bool scratch = false;
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
      const Buffer& buffer = kernel_.buffers[b];
      if (!is_valid(buffer.dtype)) return fail("buffer @%zu has no valid type", b);
      if (buffer.scope > Scope::task) return fail("buffer @%zu has an unknown scope", b);
      if (buffer.alignment < 1 || buffer.alignment > 4096 ||
          !std::has_single_bit(static_cast<uint32_t>(buffer.alignment)))
        return fail("buffer @%zu has alignment %d", b, buffer.alignment);
      QUARTET_TRY(expression(buffer.elements, "a buffer's element count"));
      if (buffer.scope == Scope::task) {
        if (!buffer.elements.is_constant()) return fail("task scratch @%zu has no constant size", b);
        if (*buffer.elements.constant() < 0 || *buffer.elements.constant() > (int64_t{1} << 40))
          return fail("task scratch @%zu has an impossible size", b);
        scratch = true;
      } else if (scratch) {
        return fail("argument @%zu comes after task scratch", b);
      }
    }
    for (size_t v = 0; v < kernel_.value_types.size(); ++v)
      if (!is_valid(kernel_.value_types[v])) return fail("value %%%zu has no valid type", v);
    return expression(kernel_.tasks, "the task count");
  }

  Status define(ValueId v, DType expected) {
    if (v < 0 || static_cast<size_t>(v) >= state_.size()) return fail("value %%%d is out of range", v);
    State& state = state_[static_cast<size_t>(v)];
    if (state != State::undefined) return fail("value %%%d is defined twice", v);
    if (type(v) != expected) return fail("value %%%d is %s, not %s", v, dtype_name(type(v)), dtype_name(expected));
    state = State::in_scope;
    defined_.push_back(v);
    return {};
  }

  Status use(ValueId v) const {
    if (v < 0 || static_cast<size_t>(v) >= state_.size()) return fail("operand %%%d is out of range", v);
    if (state_[static_cast<size_t>(v)] != State::in_scope) return fail("operand %%%d is not defined here", v);
    return {};
  }

  Status use(ValueId v, DType expected) const {
    QUARTET_TRY(use(v));
    if (type(v) != expected) return fail("operand %%%d is %s, not %s", v, dtype_name(type(v)), dtype_name(expected));
    return {};
  }

  // The same for all lanes: what bounds and branch conditions must be.
  Status uniform(ValueId v) const {
    return varying_[static_cast<size_t>(v)] ? fail("operand %%%d differs between lanes", v) : Status();
  }

  Status region(const Region& region, Place place, const std::vector<DType>& arguments, const char* what) {
    if (++place.depth > kMaxDepth) return fail("%s nests deeper than %d", what, kMaxDepth);
    const Statement* const outer = statement_;
    const size_t outer_number = number_;
    const size_t mark = defined_.size();
    if (region.arguments.size() != arguments.size())
      return fail("%s has %zu arguments instead of %zu", what, region.arguments.size(), arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) QUARTET_TRY(define(region.arguments[i], arguments[i]));
    if (region.body.empty() || region.body.back().op != Op::yield) return fail("%s does not end with a yield", what);
    for (const Statement& statement : region.body) {
      if (statement.op == Op::yield && &statement != &region.body.back())
        return fail("%s has a yield before its end", what);
      statement_ = &statement;
      number_ = next_number_++;
      QUARTET_TRY(check(statement, place));
    }
    statement_ = outer;
    number_ = outer_number;
    for (size_t i = mark; i < defined_.size(); ++i) state_[static_cast<size_t>(defined_[i])] = State::gone;
    defined_.resize(mark);
    return {};
  }

  Status check(const Statement& s, const Place& place) {
    if (static_cast<int>(s.op) >= kOpCount) return fail("unknown operation %d", static_cast<int>(s.op));
    if (op_operands(s.op) >= 0 && s.operands.size() != static_cast<size_t>(op_operands(s.op)))
      return fail("%zu operands instead of %d", s.operands.size(), op_operands(s.op));
    if (op_results(s.op) >= 0 && s.results.size() != static_cast<size_t>(op_results(s.op)))
      return fail("%zu results instead of %d", s.results.size(), op_results(s.op));
    if (!has_regions(s.op) && !s.regions.empty()) return fail("has a region");
    for (const ValueId v : s.operands) QUARTET_TRY(use(v));
    switch (s.op) {
      case Op::constant:
        return constant(s);
      case Op::dim:
        if (s.immediate < 0 || s.immediate >= kernel_.dims)
          return fail("dim %lld of %d", static_cast<long long>(s.immediate), kernel_.dims);
        if (s.dtype != DType::i64) return fail("is %s, not i64", dtype_name(s.dtype));
        return define(s.results[0], DType::i64);
      case Op::load:
        return load(s);
      case Op::store:
        return store(s, place);
      case Op::loop:
        return loop(s, place);
      case Op::branch:
        return branch(s, place);
      case Op::reduce:
        return reduce(s, place);
      case Op::contract:
        return contract(s, place);
      case Op::yield:
        return {};
      default:
        return scalar(s);
    }
  }

  Status constant(const Statement& s) {
    if (!is_valid(s.dtype)) return fail("has no valid type");
    if (s.immediate != canonical_bits(s.dtype, s.immediate))
      return fail("bits %lld are not a %s", static_cast<long long>(s.immediate), dtype_name(s.dtype));
    QUARTET_TRY(define(s.results[0], s.dtype));
    if (s.dtype == DType::i64) constants_[static_cast<size_t>(s.results[0])] = s.immediate;
    return {};
  }

  Status scalar(const Statement& s) {
    const ScalarOp op = scalar_of(s.op);
    DType domain = s.dtype;
    if (quartet::is_comparison(op)) {
      if (s.dtype != DType::boolean) return fail("gives %s, not bool", dtype_name(s.dtype));
      domain = type(s.operands[0]);
    }
    if (!defined_for(op, domain)) return fail("is not defined for %s", dtype_name(domain));
    if (op == ScalarOp::cast) return define(s.results[0], s.dtype);
    if (op == ScalarOp::bitcast) {
      const DType from = type(s.operands[0]);
      if (from == DType::boolean || size_of(from) != size_of(s.dtype))
        return fail("from %s to %s changes the size", dtype_name(from), dtype_name(s.dtype));
      return define(s.results[0], s.dtype);
    }
    size_t first = 0;
    if (op == ScalarOp::select) {
      QUARTET_TRY(use(s.operands[0], DType::boolean));
      first = 1;
    }
    for (size_t i = first; i < s.operands.size(); ++i) QUARTET_TRY(use(s.operands[i], domain));
    return define(s.results[0], s.dtype);
  }

  Result<const Buffer*> buffer(BufferId id) const {
    if (id < 0 || static_cast<size_t>(id) >= kernel_.buffers.size()) return fail("buffer @%d is out of range", id);
    return &kernel_.buffers[static_cast<size_t>(id)];
  }

  Status load(const Statement& s) {
    QUARTET_ASSIGN(const Buffer* const from, buffer(s.buffer));
    if (s.operands.size() != 1 && s.operands.size() != 3)
      return fail("%zu operands instead of 1 or 3", s.operands.size());
    if (s.dtype != from->dtype)
      return fail("is %s, buffer @%d is %s", dtype_name(s.dtype), s.buffer, dtype_name(from->dtype));
    QUARTET_TRY(use(s.operands[0], DType::i64));
    if (s.operands.size() == 3) {
      QUARTET_TRY(use(s.operands[1], DType::boolean));
      QUARTET_TRY(use(s.operands[2], s.dtype));
    }
    return define(s.results[0], s.dtype);
  }

  Status store(const Statement& s, const Place& place) {
    QUARTET_ASSIGN(const Buffer* const to, buffer(s.buffer));
    if (s.operands.size() != 2 && s.operands.size() != 3)
      return fail("%zu operands instead of 2 or 3", s.operands.size());
    if (to->scope == Scope::argument_in) return fail("buffer @%d is read-only", s.buffer);
    if (place.reduce) return fail("stands in a reduce");
    if (place.init) return fail("stands in the init of a contract");
    QUARTET_TRY(use(s.operands[0], DType::i64));
    QUARTET_TRY(use(s.operands[1], to->dtype));
    return s.operands.size() == 3 ? use(s.operands[2], DType::boolean) : Status();
  }

  std::optional<int64_t> constant_of(ValueId v) const { return constants_[static_cast<size_t>(v)]; }

  Status loop(const Statement& s, Place place) {
    if (place.contract) return fail("stands in a region of a contract");
    if (s.operands.size() < 3) return fail("has no lo, hi and step");
    const size_t carried = s.operands.size() - 3;
    if (s.results.size() != carried) return fail("%zu results for %zu carried values", s.results.size(), carried);
    if (s.regions.size() != 1) return fail("%zu regions instead of 1", s.regions.size());
    for (size_t i = 0; i < 3; ++i) {
      QUARTET_TRY(use(s.operands[i], DType::i64));
      QUARTET_TRY(uniform(s.operands[i]));
    }
    const auto lo = constant_of(s.operands[0]), hi = constant_of(s.operands[1]), step = constant_of(s.operands[2]);
    if (!step || *step <= 0) return fail("the step is not a positive constant");
    if (s.loop == LoopKind::vector) {
      if (place.vector || place.reduce) return fail("a vector loop in a vector loop or reduce");
      if (*step != 1) return fail("a vector loop steps by %lld", static_cast<long long>(*step));
      if (carried != 0) return fail("a vector loop carries values");
      place.vector = true;
    } else if (s.loop == LoopKind::unrolled) {
      if (!lo || !hi) return fail("an unrolled loop with bounds that are not constant");
      int64_t span = 0;
      if (*hi > *lo && (__builtin_sub_overflow(*hi, *lo, &span) || (span - 1) / *step >= kMaxUnrolled))
        return fail("an unrolled loop of more than %lld iterations", static_cast<long long>(kMaxUnrolled));
    } else if (s.loop != LoopKind::serial) {
      return fail("an unknown kind of loop");
    }
    std::vector<DType> arguments{DType::i64};
    for (size_t i = 3; i < s.operands.size(); ++i) arguments.push_back(type(s.operands[i]));
    QUARTET_TRY(region(s.regions[0], place, arguments, "the loop's body"));
    const auto& yielded = yields(s.regions[0]);
    if (yielded.size() != carried) return fail("yields %zu values for %zu carried", yielded.size(), carried);
    for (size_t i = 0; i < carried; ++i) {
      QUARTET_TRY(yield_type(yielded[i], arguments[i + 1]));
      QUARTET_TRY(define(s.results[i], arguments[i + 1]));
    }
    return {};
  }

  // Yielded values were checked for scope inside their region.
  Status yield_type(ValueId v, DType expected) const {
    if (type(v) != expected) return fail("yields %s where %s is due", dtype_name(type(v)), dtype_name(expected));
    return {};
  }

  Status branch(const Statement& s, const Place& place) {
    if (place.contract) return fail("stands in a region of a contract");
    QUARTET_TRY(use(s.operands[0], DType::boolean));
    QUARTET_TRY(uniform(s.operands[0]));
    if (s.regions.size() != 2) return fail("%zu regions instead of 2", s.regions.size());
    for (const Region& side : s.regions) {
      QUARTET_TRY(region(side, place, {}, "a side of the branch"));
      if (yields(side).size() != s.results.size())
        return fail("a side yields %zu values for %zu results", yields(side).size(), s.results.size());
    }
    for (size_t i = 0; i < s.results.size(); ++i) {
      const DType expected = type(yields(s.regions[0])[i]);
      QUARTET_TRY(yield_type(yields(s.regions[1])[i], expected));
      QUARTET_TRY(define(s.results[i], expected));
    }
    return {};
  }

  Status reduce(const Statement& s, Place place) {
    if (place.contract) return fail("stands in a region of a contract");
    if (s.operands.size() != 2) return fail("%zu operands instead of lo and hi", s.operands.size());
    if (s.regions.size() != 1) return fail("%zu regions instead of 1", s.regions.size());
    for (const ValueId v : s.operands) {
      QUARTET_TRY(use(v, DType::i64));
      QUARTET_TRY(uniform(v));
    }
    if (s.reduce > ReduceOp::argmin) return fail("an unknown reduction");
    const bool logical = s.reduce == ReduceOp::all || s.reduce == ReduceOp::any;
    const bool indexed = s.reduce == ReduceOp::argmax || s.reduce == ReduceOp::argmin;
    if (logical ? s.dtype != DType::boolean : !is_float(s.dtype) && !is_int(s.dtype))
      return fail("%s is not defined for %s", reduce_op_name(s.reduce), dtype_name(s.dtype));
    if (s.interleave < 1 || s.interleave > kMaxInterleave || !std::has_single_bit(static_cast<uint32_t>(s.interleave)))
      return fail("interleave %d", s.interleave);
    if (s.chunk < 0 || s.chunk % s.interleave != 0) return fail("chunks of %lld", static_cast<long long>(s.chunk));
    place.reduce = true;
    QUARTET_TRY(region(s.regions[0], place, {DType::i64}, "the reduce's element"));
    if (yields(s.regions[0]).size() != 1) return fail("yields %zu elements instead of 1", yields(s.regions[0]).size());
    QUARTET_TRY(yield_type(yields(s.regions[0])[0], s.dtype));
    if (s.results.size() != (indexed ? 2u : 1u)) return fail("%zu results", s.results.size());
    QUARTET_TRY(define(s.results[0], s.dtype));
    return indexed ? define(s.results[1], DType::i64) : Status();
  }

  Status contract(const Statement& s, Place place) {
    if (place.vector || place.reduce || place.contract) return fail("stands in a vector loop, reduce or contract");
    if (s.operands.size() < kContractOperands || (s.operands.size() - kContractOperands) % 3 != 0)
      return fail("%zu operands", s.operands.size());
    for (const ValueId v : s.operands) QUARTET_TRY(use(v, DType::i64));
    for (const BufferId id : {s.buffer, s.buffer_b}) {
      QUARTET_ASSIGN(const Buffer* const side, buffer(id));
      if (side->dtype == DType::boolean) return fail("buffer @%d is bool", id);
    }
    if (s.dtype != DType::f32 && s.dtype != DType::f64 && !is_int(s.dtype))
      return fail("accumulates in %s", dtype_name(s.dtype));
    if (s.rows < 1 || s.rows > kMaxTile || s.columns < 1 || s.columns > kMaxTile || s.rows * s.columns > kMaxTile)
      return fail("a tile of %d by %d", s.rows, s.columns);
    if (s.unroll < 1 || s.unroll > kMaxUnrolled) return fail("unrolls k by %d", s.unroll);
    if (s.regions.empty() || s.regions.size() > 2) return fail("%zu regions instead of 1 or 2", s.regions.size());
    place.contract = true;
    QUARTET_TRY(region(s.regions[0], place, {DType::i64, DType::i64, s.dtype}, "the epilogue"));
    if (!yields(s.regions[0]).empty()) return fail("the epilogue yields values");
    if (s.regions.size() == 1) return {};
    place.init = true;
    QUARTET_TRY(region(s.regions[1], place, {DType::i64, DType::i64}, "the init"));
    if (yields(s.regions[1]).size() != 1)
      return fail("the init yields %zu values instead of 1", yields(s.regions[1]).size());
    return yield_type(yields(s.regions[1])[0], s.dtype);
  }

  const Kernel& kernel_;
  const std::vector<bool> varying_;
  std::vector<State> state_;
  std::vector<std::optional<int64_t>> constants_;
  std::vector<ValueId> defined_;
  const Statement* statement_ = nullptr;
  size_t number_ = 0, next_number_ = 0;
};

}  // namespace

Status verify(const Kernel& kernel) { return Verifier(kernel).run(); }

}  // namespace quartet::kernel
