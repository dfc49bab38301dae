// What makes and compares the normal forms of integer expressions; for the files of IntExpr alone.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/int_expr.h"

namespace quartet {
namespace normal_form {

using Atom = IntExpr::Atom;
using Term = IntExpr::Term;
using Func = IntExpr::Func;

// A product of a number and atoms, for division.
struct Monomial {
  int64_t coefficient = 1;
  std::vector<Atom> factors;
  bool is_one() const { return coefficient == 1 && factors.empty(); }
};

inline int compare_i64(int64_t a, int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }
int compare_atoms(const Atom& a, const Atom& b);
int compare_factors(const std::vector<Atom>& a, const std::vector<Atom>& b);
bool factors_contain(const std::vector<Atom>& factors, const std::function<bool(Symbol)>& pred);
// term / divisor if it divides exactly.
std::optional<Term> divide(int64_t coefficient, const std::vector<Atom>& factors, const Monomial& divisor);
// The function of two expressions.
IntExpr apply(Func func, const IntExpr& a, const IntExpr& b);
// The expression with every atom replaced.
IntExpr rebuild(const IntExpr& e, const std::function<IntExpr(const Atom&)>& replace);

}  // namespace normal_form

// Builds normal forms.
struct IntExprBuilder {
  using Atom = IntExpr::Atom;
  using Term = IntExpr::Term;
  using Func = IntExpr::Func;
  using Monomial = normal_form::Monomial;

  static const std::vector<Term>& no_terms();
  static IntExpr make(int64_t constant, std::vector<Term> terms);
  // The expression's terms, shared, with another constant.
  static IntExpr with_constant(const IntExpr& e, int64_t constant);
  static IntExpr scaled(const IntExpr& e, int64_t scale);
  static IntExpr from_atom(Atom atom);
  static IntExpr from_term(const Term& term);
  static int depth_of(const IntExpr& e);
  static IntExpr func(Func kind, const IntExpr& a, const IntExpr& b);
  // a + scale * b
  static IntExpr add_scaled(const IntExpr& a, const IntExpr& b, int64_t scale);
  // Terms in any order, several of the same factors among them.
  static IntExpr collect(int64_t constant, std::vector<Term> terms);
  static IntExpr product(const IntExpr& a, const IntExpr& b);
  // The expression as one monomial, if it is a single nonzero one.
  static std::optional<Monomial> as_monomial(const IntExpr& e);
  static IntExpr from_monomial(const Monomial& m);
  // e = divisor * quotient + rest, every term of rest not divisible. A constant's remainder is in [0, c) for a numeric
  // divisor c.
  static std::pair<IntExpr, IntExpr> split(const IntExpr& e, const Monomial& divisor);
  // Greatest common divisor of a numeric divisor and every term's coefficient.
  static int64_t term_gcd(const IntExpr& e, int64_t divisor);
  // A sum of products in any order, of factors in any order; the atoms in their normal form.
  static IntExpr sum(int64_t constant, std::vector<Term> terms);
};

}  // namespace quartet
