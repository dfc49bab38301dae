// Reasoning about integer expressions with the ranges of their symbols.
#include <algorithm>
#include <numeric>

#include "base/int_expr_builder.h"

namespace quartet {

using namespace normal_form;

namespace {

using Build = IntExprBuilder;

constexpr int kReasoningDepth = 24;

struct Reasoner {
  const IntExpr::RangeOf& range_of;
  int depth = 0;

  bool nonnegative(const IntExpr& e) {
    if (const auto c = e.constant()) return *c >= 0;
    if (!e.is_valid()) return false;
    const auto lower = bound(e, false);
    return lower && lower->is_constant() && *lower->constant() >= 0;
  }

  // One end of the range of an atom as an expression that no longer contains it. Only the end that is asked for is
  // looked for: in a chain of functions each level would ask the one below for both, twice as often at each level.
  std::optional<IntExpr> end_of_atom(const Atom& atom, bool upper) {
    if (!atom.func) {
      IntExpr::Range range = range_of(atom.symbol);
      return upper ? std::move(range.hi) : std::move(range.lo);
    }
    const IntExpr &a = atom.func->a, &b = atom.func->b;
    switch (atom.func->func) {
      case Func::floor_mod:
        return upper ? b - IntExpr(1) : IntExpr(0);
      case Func::floor_div: {
        if (!nonnegative(b - IntExpr(1))) return std::nullopt;
        if (!b.is_constant()) {
          if (!nonnegative(a)) return std::nullopt;
          return upper ? bound(a, true) : IntExpr(0);
        }
        const auto end = bound(a, upper);
        return end ? std::optional(floor_div(*end, b)) : std::nullopt;
      }
      case Func::min:
      case Func::max: {
        const auto end_a = bound(a, upper), end_b = bound(b, upper);
        // min(a, b) is at most either side, max(a, b) at least; the constant one is the more useful bound.
        if (upper == (atom.func->func == Func::min)) return end_a && (end_a->is_constant() || !end_b) ? end_a : end_b;
        if (!end_a || !end_b || !end_a->is_constant() || !end_b->is_constant()) return std::nullopt;
        return atom.func->func == Func::min ? min(*end_a, *end_b) : max(*end_a, *end_b);
      }
    }
    return std::nullopt;
  }

  // Atoms from the one to remove first: functions (they hold symbols), then axes and values, then dims.
  static std::vector<Atom> atoms_of(const IntExpr& e) {
    std::vector<Atom> atoms;
    for (const Term& term : e.terms()) atoms.insert(atoms.end(), term.factors.begin(), term.factors.end());
    std::sort(atoms.begin(), atoms.end(), [](const Atom& a, const Atom& b) { return compare_atoms(b, a) < 0; });
    atoms.erase(
        std::unique(atoms.begin(), atoms.end(), [](const Atom& a, const Atom& b) { return compare_atoms(a, b) == 0; }),
        atoms.end());
    return atoms;
  }

  // e = coefficient * atom + rest, the atom once at most in each term; ignores the atom's symbols inside other
  // functions.
  static std::optional<IntExpr::Linear> linear_in_atom(const IntExpr& e, const Atom& atom) {
    IntExpr::Linear linear{IntExpr(0), IntExpr(e.constant_term())};
    for (const Term& term : e.terms()) {
      const auto quotient = divide(term.coefficient, term.factors, Monomial{1, {atom}});
      if (!quotient) {
        linear.rest = linear.rest + Build::from_term(term);
        continue;
      }
      for (const Atom& other : quotient->factors)
        if (compare_atoms(other, atom) == 0) return std::nullopt;
      linear.coefficient = linear.coefficient + Build::from_term(*quotient);
    }
    return linear;
  }

  // A bound of e with every atom that has a range removed; nothing when a sign or an end is unknown.
  std::optional<IntExpr> bound(IntExpr e, bool upper) {
    if (depth > kReasoningDepth || !e.is_valid()) return std::nullopt;
    ++depth;
    std::optional<IntExpr> result = bound_inner(std::move(e), upper);
    --depth;
    return result;
  }

  std::optional<IntExpr> bound_inner(IntExpr e, bool upper) {
    for (int step = 0; step < kReasoningDepth; ++step) {
      if (e.is_constant()) return e;
      bool changed = false;
      for (const Atom& atom : atoms_of(e)) {
        const auto linear = linear_in_atom(e, atom);
        const bool positive = linear && nonnegative(linear->coefficient);
        const bool sign_known = positive || (linear && nonnegative(-linear->coefficient));
        const bool wanted = positive == upper;
        const auto end = end_of_atom(atom, wanted);
        if (!end && !end_of_atom(atom, !wanted)) continue;
        if (!linear) return power_bound(e, upper);
        if (!sign_known || !end) return std::nullopt;
        e = linear->coefficient * *end + linear->rest;
        changed = true;
        break;
      }
      if (!changed) return e;
    }
    return std::nullopt;
  }

  // Last resort for powers: a sum of nonnegative products is at least its constant.
  std::optional<IntExpr> power_bound(const IntExpr& e, bool upper) {
    if (upper) return std::nullopt;
    for (const Term& term : e.terms()) {
      if (term.coefficient < 0) return std::nullopt;
      for (const Atom& atom : term.factors)
        if (!nonnegative(Build::from_atom(atom))) return std::nullopt;
    }
    return IntExpr(e.constant_term());
  }

  bool within(const IntExpr& e, const IntExpr& extent) {
    return nonnegative(e) && nonnegative(extent - IntExpr(1) - e);
  }

  IntExpr simplify(const IntExpr& e) {
    if (is_polynomial(e)) return e;
    return rebuild(e, [&](const Atom& atom) -> IntExpr {
      if (!atom.func) return IntExpr::symbol(atom.symbol);
      return simplify_func(atom.func->func, simplify(atom.func->a), simplify(atom.func->b));
    });
  }

  // Without a function there is nothing to decide.
  static bool is_polynomial(const IntExpr& e) {
    return std::none_of(e.terms().begin(), e.terms().end(), [](const Term& term) {
      return std::any_of(term.factors.begin(), term.factors.end(),
                         [](const Atom& atom) { return atom.func != nullptr; });
    });
  }

  IntExpr simplify_func(Func func, const IntExpr& a, const IntExpr& b) {
    if (func == Func::min || func == Func::max) {
      if (nonnegative(b - a)) return func == Func::min ? a : b;
      if (nonnegative(a - b)) return func == Func::min ? b : a;
      return apply(func, a, b);
    }
    const bool div = func == Func::floor_div;
    const auto divisor = Build::as_monomial(b);
    if (!divisor || divisor->coefficient < 0) return within(a, b) ? (div ? IntExpr(0) : a) : apply(func, a, b);
    const auto [quotient, rest] = Build::split(a, *divisor);
    const IntExpr head = div ? quotient : IntExpr(0);
    if (within(rest, b)) return div ? head : rest;
    // rest = g * t + s with 0 <= s < g and g a divisor of b: the part s is below the resolution.
    for (const Term& term : rest.terms()) {
      const Monomial g = common(*divisor, term);
      if (g.is_one()) continue;
      const auto [t, s] = Build::split(rest, g);
      if (!within(s, Build::from_monomial(g))) continue;
      const IntExpr b_over_g = Build::split(b, g).first;
      const IntExpr inner = simplify_func(func, t, b_over_g);
      return div ? head + inner : Build::from_monomial(g) * inner + s;
    }
    return head + apply(func, rest, b);
  }

  static Monomial common(const Monomial& a, const Term& b) {
    Monomial g{std::gcd(a.coefficient, b.coefficient), {}};
    size_t i = 0, j = 0;
    while (i < a.factors.size() && j < b.factors.size()) {
      const int order = compare_atoms(a.factors[i], b.factors[j]);
      if (order == 0) g.factors.push_back(a.factors[i]);
      if (order <= 0) ++i;
      if (order >= 0) ++j;
    }
    return g;
  }
};

}  // namespace

IntExpr IntExpr::simplify(const RangeOf& range_of) const {
  Reasoner reasoner{range_of};
  return reasoner.simplify(*this);
}

bool IntExpr::provably_nonnegative(const RangeOf& range_of) const {
  Reasoner reasoner{range_of};
  return reasoner.nonnegative(reasoner.simplify(*this));
}

IntExpr::Range IntExpr::bounds(const RangeOf& range_of) const {
  Reasoner reasoner{range_of};
  const IntExpr e = reasoner.simplify(*this);
  return {reasoner.bound(e, false), reasoner.bound(e, true)};
}

}  // namespace quartet
