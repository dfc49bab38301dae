// Bytes of integer expressions.
#include "base/bytes.h"
#include "base/int_expr_builder.h"
#include "base/int_expr_limits.h"
#include "base/int_expr_reader.h"

namespace quartet {

void IntExpr::write(ByteWriter& out) const {
  if (!valid_) {
    out.u8(2);
    return;
  }
  out.u8(is_constant() ? 0 : 1);
  out.i64(constant_);
  if (is_constant()) return;
  out.u32(static_cast<uint32_t>(terms().size()));
  for (const Term& term : terms()) {
    out.i64(term.coefficient);
    out.u8(static_cast<uint8_t>(term.factors.size()));
    for (const Atom& atom : term.factors) {
      out.u8(atom.func ? static_cast<uint8_t>(1 + static_cast<uint8_t>(atom.func->func)) : 0);
      if (!atom.func) {
        out.i32(atom.symbol);
        continue;
      }
      atom.func->a.write(out);
      atom.func->b.write(out);
    }
  }
}

// Reads expressions, with or without a memory of what was read.
struct IntExprParser {
  ByteReader& in;
  IntExprReader* memory = nullptr;

  // Moves past an expression and looks at nothing but its lengths.
  static void skip(ByteReader& in, int depth) {
    const uint8_t tag = in.u8();
    if (tag == 2) return;
    if (tag > 2 || depth > kMaxExprDepth) return in.fail("a malformed integer expression");
    in.raw(sizeof(int64_t));
    if (tag == 0) return;
    for (uint32_t terms = in.u32(); terms > 0 && in.ok(); --terms) {
      in.raw(sizeof(int64_t));
      for (uint8_t factors = in.u8(); factors > 0 && in.ok(); --factors) skip_factor(in, depth);
    }
  }

  static void skip_factor(ByteReader& in, int depth) {
    if (in.u8() == 0) {
      in.raw(sizeof(Symbol));
      return;
    }
    skip(in, depth + 1);
    skip(in, depth + 1);
  }

  // What `make` reads, or what was read of the same bytes, which `pass` moves past.
  template <class Pass, class Make>
  IntExpr once(const Pass& pass, const Make& make) {
    if (memory == nullptr) return make();
    ByteReader ahead = in;
    pass(ahead);
    if (!ahead.ok()) return make();  // which says what is wrong
    ByteReader here = in;
    const auto bytes = here.raw(ahead.offset() - in.offset());
    const std::string_view key(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (const auto known = memory->known_.find(key); known != memory->known_.end()) {
      in.raw(bytes.size());
      return known->second;
    }
    IntExpr made = make();
    if (in.ok()) memory->known_.emplace(key, made);
    return made;
  }

  IntExpr function(int depth) {
    const uint8_t kind = in.u8();
    if (kind > 4) in.fail("an unknown integer function");
    const IntExpr a = read(depth + 1);
    const IntExpr b = read(depth + 1);
    return in.ok() ? normal_form::apply(static_cast<IntExpr::Func>(kind - 1), a, b) : IntExpr::invalid();
  }

  // A factor of a term: an atom, or what is none in normal form, which `other` is multiplied by.
  void factor(int depth, IntExpr::Term& term, IntExpr& other) {
    ByteReader ahead = in;
    if (ahead.u8() == 0) {
      in.u8();
      const Symbol s = in.i32();
      if (s < 0) in.fail("a negative symbol");
      term.factors.push_back({s, nullptr});
      return;
    }
    const IntExpr value = once([&](ByteReader& from) { skip_factor(from, depth); }, [&] { return function(depth); });
    if (!in.ok()) return;
    const bool atom = value.is_valid() && value.constant_term() == 0 && value.terms().size() == 1 &&
                      value.terms()[0].coefficient == 1 && value.terms()[0].factors.size() == 1;
    if (atom) {
      term.factors.push_back(value.terms()[0].factors[0]);
    } else {
      other = other * value;
    }
  }

  // One sum of all terms; what turns out to be more than a product of atoms is added to it.
  IntExpr sum(int depth) {
    in.u8();
    const int64_t constant = in.i64();
    const uint32_t count = in.u32();
    if (count > kMaxExprTerms) in.fail("an integer expression with too many terms");
    std::vector<IntExpr::Term> terms;
    IntExpr others;
    for (uint32_t t = 0; t < count && in.ok(); ++t) {
      IntExpr::Term term{in.i64(), {}};
      IntExpr other = 1;
      const uint8_t factors = in.u8();
      term.factors.reserve(factors);
      for (int f = 0; f < factors && in.ok(); ++f) factor(depth, term, other);
      if (other.is(1) && !term.factors.empty()) {
        terms.push_back(std::move(term));
        continue;
      }
      other = other * IntExpr(term.coefficient);
      term.coefficient = 1;
      others += term.factors.empty() ? other : IntExprBuilder::sum(0, {std::move(term)}) * other;
    }
    return in.ok() ? IntExprBuilder::sum(constant, std::move(terms)) + others : IntExpr::invalid();
  }

  IntExpr read(int depth) {
    ByteReader ahead = in;
    const uint8_t tag = ahead.u8();
    if (tag == 1 && depth <= kMaxExprDepth) {
      // Below a function the function is what is remembered.
      if (depth > 0) return sum(depth);
      return once([](ByteReader& from) { skip(from, 0); }, [&] { return sum(0); });
    }
    in.u8();
    if (tag == 0 && ahead.ok()) return in.i64();
    if (tag != 2) in.fail("a malformed integer expression");
    return IntExpr::invalid();
  }
};

IntExpr IntExpr::read(ByteReader& in) { return IntExprParser{in}.read(0); }

IntExpr IntExprReader::read(ByteReader& in) { return IntExprParser{in, this}.read(0); }

}  // namespace quartet
