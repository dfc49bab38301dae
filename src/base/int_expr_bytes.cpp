// Bytes of integer expressions.
#include "base/bytes.h"
#include "base/int_expr.h"
#include "base/int_expr_limits.h"

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

namespace {

IntExpr apply(IntExpr::Func func, const IntExpr& a, const IntExpr& b) {
  switch (func) {
    case IntExpr::Func::floor_div:
      return floor_div(a, b);
    case IntExpr::Func::floor_mod:
      return floor_mod(a, b);
    case IntExpr::Func::min:
      return min(a, b);
    case IntExpr::Func::max:
      return max(a, b);
  }
  return IntExpr::invalid();
}

IntExpr read_at(ByteReader& in, int depth) {
  const uint8_t tag = in.u8();
  if (tag == 2) return IntExpr::invalid();
  if (tag > 2 || depth > kMaxExprDepth) {
    in.fail("a malformed integer expression");
    return IntExpr::invalid();
  }
  IntExpr result = in.i64();
  if (tag == 0) return result;
  const uint32_t terms = in.u32();
  if (terms > kMaxExprTerms) in.fail("an integer expression with too many terms");
  for (uint32_t t = 0; t < terms && in.ok(); ++t) {
    IntExpr product = in.i64();
    const int factors = in.u8();
    for (int f = 0; f < factors && in.ok(); ++f) {
      const uint8_t kind = in.u8();
      if (kind == 0) {
        const Symbol s = in.i32();
        if (s < 0) in.fail("a negative symbol");
        product = product * IntExpr::symbol(s);
        continue;
      }
      if (kind > 4) in.fail("an unknown integer function");
      const IntExpr a = read_at(in, depth + 1);
      const IntExpr b = read_at(in, depth + 1);
      product = product * apply(static_cast<IntExpr::Func>(kind - 1), a, b);
    }
    result = result + product;
  }
  return result;
}

}  // namespace

IntExpr IntExpr::read(ByteReader& in) { return read_at(in, 0); }

}  // namespace quartet
