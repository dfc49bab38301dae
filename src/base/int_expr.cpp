#include "base/int_expr.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/int_expr_limits.h"

namespace quartet {

namespace {

using Atom = IntExpr::Atom;
using Term = IntExpr::Term;
using Func = IntExpr::Func;

int64_t floor_div_i64(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); }

int compare_i64(int64_t a, int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

int compare_atoms(const Atom& a, const Atom& b) {
  if (!a.func != !b.func) return a.func ? 1 : -1;
  if (!a.func) return compare_i64(a.symbol, b.symbol);
  if (a.func == b.func) return 0;
  if (const int c = compare_i64(static_cast<int>(a.func->func), static_cast<int>(b.func->func))) return c;
  if (const int c = IntExpr::compare(a.func->a, b.func->a)) return c;
  return IntExpr::compare(a.func->b, b.func->b);
}

int compare_factors(const std::vector<Atom>& a, const std::vector<Atom>& b) {
  if (const int c = compare_i64(static_cast<int64_t>(a.size()), static_cast<int64_t>(b.size()))) return c;
  for (size_t i = 0; i < a.size(); ++i)
    if (const int c = compare_atoms(a[i], b[i])) return c;
  return 0;
}

bool atom_less(const Atom& a, const Atom& b) { return compare_atoms(a, b) < 0; }

bool factors_contain(const std::vector<Atom>& factors, const std::function<bool(Symbol)>& pred) {
  for (const Atom& atom : factors)
    if (atom.func ? atom.func->a.contains_any(pred) || atom.func->b.contains_any(pred) : pred(atom.symbol)) return true;
  return false;
}

// A product of a number and atoms, for division.
struct Monomial {
  int64_t coefficient = 1;
  std::vector<Atom> factors;
  bool is_one() const { return coefficient == 1 && factors.empty(); }
};

// term / divisor if it divides exactly.
std::optional<Term> divide(int64_t coefficient, const std::vector<Atom>& factors, const Monomial& divisor) {
  if (coefficient % divisor.coefficient != 0) return std::nullopt;
  Term quotient{coefficient / divisor.coefficient, {}};
  auto d = divisor.factors.begin();
  for (const Atom& atom : factors) {
    if (d != divisor.factors.end() && compare_atoms(atom, *d) == 0)
      ++d;
    else
      quotient.factors.push_back(atom);
  }
  if (d != divisor.factors.end()) return std::nullopt;
  return quotient;
}

}  // namespace

// Builds normal forms.
struct IntExprBuilder {
  static const std::vector<Term>& no_terms() {
    static const std::vector<Term> none;
    return none;
  }

  static IntExpr make(int64_t constant, std::vector<Term> terms) {
    if (terms.size() > kMaxExprTerms) return IntExpr::invalid();
    IntExpr e(constant);
    if (!terms.empty()) e.terms_ = std::make_shared<const std::vector<Term>>(std::move(terms));
    return e;
  }

  static IntExpr from_atom(Atom atom) {
    Term term{1, {}};
    term.factors.push_back(std::move(atom));
    std::vector<Term> terms;
    terms.push_back(std::move(term));
    return make(0, std::move(terms));
  }

  static IntExpr from_term(const Term& term) {
    if (term.factors.empty()) return IntExpr(term.coefficient);
    return make(0, {term});
  }

  static int depth_of(const IntExpr& e) {
    int depth = 0;
    for (const Term& term : e.terms())
      for (const Atom& atom : term.factors) depth = std::max(depth, atom.func ? atom.func->depth : 0);
    return depth;
  }

  static IntExpr func(Func kind, const IntExpr& a, const IntExpr& b) {
    const int depth = 1 + std::max(depth_of(a), depth_of(b));
    if (depth > kMaxExprDepth) return IntExpr::invalid();
    return from_atom(Atom{-1, std::make_shared<const IntExpr::FuncNode>(IntExpr::FuncNode{kind, a, b, depth})});
  }

  // a + scale * b
  static IntExpr add_scaled(const IntExpr& a, const IntExpr& b, int64_t scale) {
    if (!a.is_valid() || !b.is_valid()) return IntExpr::invalid();
    const auto scaled = checked_mul(b.constant_, scale);
    const auto constant = scaled ? checked_add(a.constant_, *scaled) : std::nullopt;
    if (!constant) return IntExpr::invalid();
    const auto &ta = a.terms(), &tb = b.terms();
    std::vector<Term> terms;
    terms.reserve(ta.size() + tb.size());
    size_t i = 0, j = 0;
    while (i < ta.size() || j < tb.size()) {
      const int order = i == ta.size() ? 1 : j == tb.size() ? -1 : compare_factors(ta[i].factors, tb[j].factors);
      if (order < 0) {
        terms.push_back(ta[i++]);
        continue;
      }
      const auto product = checked_mul(tb[j].coefficient, scale);
      const auto sum = product ? checked_add(*product, order == 0 ? ta[i].coefficient : 0) : std::nullopt;
      if (!sum) return IntExpr::invalid();
      if (*sum != 0) terms.push_back(Term{*sum, tb[j].factors});
      if (order == 0) ++i;
      ++j;
    }
    return make(*constant, std::move(terms));
  }

  // Terms in any order, several of the same factors among them.
  static IntExpr collect(int64_t constant, std::vector<Term> terms) {
    std::sort(terms.begin(), terms.end(),
              [](const Term& a, const Term& b) { return compare_factors(a.factors, b.factors) < 0; });
    std::vector<Term> sums;
    for (Term& term : terms) {
      if (sums.empty() || compare_factors(sums.back().factors, term.factors) != 0) {
        sums.push_back(std::move(term));
        continue;
      }
      const auto sum = checked_add(sums.back().coefficient, term.coefficient);
      if (!sum) return IntExpr::invalid();
      sums.back().coefficient = *sum;
    }
    std::erase_if(sums, [](const Term& term) { return term.coefficient == 0; });
    return make(constant, std::move(sums));
  }

  static IntExpr product(const IntExpr& a, const IntExpr& b) {
    if ((a.terms().size() + 1) * (b.terms().size() + 1) > kMaxExprProducts) return IntExpr::invalid();
    const auto constant = checked_mul(a.constant_, b.constant_);
    if (!constant) return IntExpr::invalid();
    std::vector<Term> terms;
    const auto add = [&terms](int64_t x, const std::vector<Atom>& fx, int64_t y, const std::vector<Atom>& fy) {
      const auto coefficient = checked_mul(x, y);
      if (!coefficient || fx.size() + fy.size() > kMaxExprFactors) return false;
      if (*coefficient == 0) return true;
      Term term{*coefficient, {}};
      term.factors.reserve(fx.size() + fy.size());
      std::merge(fx.begin(), fx.end(), fy.begin(), fy.end(), std::back_inserter(term.factors), atom_less);
      terms.push_back(std::move(term));
      return true;
    };
    for (const Term& s : a.terms()) {
      if (!add(s.coefficient, s.factors, b.constant_, {})) return IntExpr::invalid();
      for (const Term& t : b.terms())
        if (!add(s.coefficient, s.factors, t.coefficient, t.factors)) return IntExpr::invalid();
    }
    for (const Term& t : b.terms())
      if (!add(a.constant_, {}, t.coefficient, t.factors)) return IntExpr::invalid();
    return collect(*constant, std::move(terms));
  }

  // The expression as one monomial, if it is a single nonzero one.
  static std::optional<Monomial> as_monomial(const IntExpr& e) {
    if (e.is_constant()) return e.constant_ != 0 ? std::optional(Monomial{e.constant_, {}}) : std::nullopt;
    if (e.constant_ != 0 || e.terms().size() != 1) return std::nullopt;
    return Monomial{e.terms()[0].coefficient, e.terms()[0].factors};
  }

  static IntExpr from_monomial(const Monomial& m) { return from_term(Term{m.coefficient, m.factors}); }

  // e = divisor * quotient + rest, every term of rest not divisible. A constant's remainder is in [0, c) for a numeric
  // divisor c.
  static std::pair<IntExpr, IntExpr> split(const IntExpr& e, const Monomial& divisor) {
    int64_t quotient = 0, rest = e.constant_;
    if (divisor.factors.empty()) {
      quotient = floor_div_i64(e.constant_, divisor.coefficient);
      rest = e.constant_ - quotient * divisor.coefficient;
    }
    std::vector<Term> divided, kept;
    for (const Term& term : e.terms()) {
      auto q = divide(term.coefficient, term.factors, divisor);
      if (!q) {
        kept.push_back(term);
      } else if (q->factors.empty()) {
        const auto sum = checked_add(quotient, q->coefficient);
        if (!sum) return {IntExpr::invalid(), IntExpr::invalid()};
        quotient = *sum;
      } else {
        divided.push_back(*std::move(q));
      }
    }
    return {collect(quotient, std::move(divided)), collect(rest, std::move(kept))};
  }

  // Greatest common divisor of a numeric divisor and every term's coefficient.
  static int64_t term_gcd(const IntExpr& e, int64_t divisor) {
    int64_t g = divisor;
    for (const Term& term : e.terms()) g = std::gcd(g, term.coefficient);
    return g;
  }
};

namespace {

using Build = IntExprBuilder;

const IntExpr::FuncNode* only_func(const IntExpr& e, Func kind) {
  if (e.terms().size() != 1) return nullptr;
  const Term& term = e.terms()[0];
  if (term.coefficient != 1 || term.factors.size() != 1 || !term.factors[0].func) return nullptr;
  return term.factors[0].func->func == kind ? term.factors[0].func.get() : nullptr;
}

// floor_div(rest, k), 0 <= rest's constant < k, no term divisible by k, rest not constant.
IntExpr floor_div_rest(const IntExpr& rest, int64_t k) {
  const int64_t g = Build::term_gcd(rest, k);
  if (g > 1) return floor_div(Build::split(rest, Monomial{g, {}}).first, IntExpr(k / g));
  if (const auto* inner = only_func(rest, Func::floor_div); inner && inner->b.is_constant()) {
    const auto shift = checked_mul(rest.constant_term(), *inner->b.constant());
    const auto divisor = checked_mul(k, *inner->b.constant());
    if (shift && divisor && *inner->b.constant() > 0) return floor_div(inner->a + IntExpr(*shift), IntExpr(*divisor));
  }
  return Build::func(Func::floor_div, rest, IntExpr(k));
}

IntExpr floor_mod_rest(const IntExpr& rest, int64_t k) {
  const int64_t g = Build::term_gcd(rest, k);
  if (g > 1) {
    const auto [q, r] = Build::split(rest, Monomial{g, {}});
    return IntExpr(g) * floor_mod(q, IntExpr(k / g)) + r;
  }
  if (const auto* inner = only_func(rest, Func::floor_mod); inner && inner->b.is_constant())
    if (const int64_t m = *inner->b.constant(); m > 0 && m % k == 0)
      return floor_mod(inner->a + IntExpr(rest.constant_term()), IntExpr(k));
  return Build::func(Func::floor_mod, rest, IntExpr(k));
}

}  // namespace

IntExpr IntExpr::symbol(Symbol s) { return IntExprBuilder::from_atom(Atom{s, nullptr}); }

IntExpr IntExpr::invalid() {
  IntExpr e;
  e.valid_ = false;
  return e;
}

std::optional<int64_t> IntExpr::constant() const { return is_constant() ? std::optional(constant_) : std::nullopt; }

std::optional<Symbol> IntExpr::as_symbol() const {
  if (!valid_ || constant_ != 0 || terms().size() != 1) return std::nullopt;
  const Term& term = terms()[0];
  if (term.coefficient != 1 || term.factors.size() != 1 || term.factors[0].func) return std::nullopt;
  return term.factors[0].symbol;
}

const std::vector<Term>& IntExpr::terms() const { return terms_ ? *terms_ : IntExprBuilder::no_terms(); }

IntExpr operator+(const IntExpr& a, const IntExpr& b) { return IntExprBuilder::add_scaled(a, b, 1); }
IntExpr operator-(const IntExpr& a, const IntExpr& b) { return IntExprBuilder::add_scaled(a, b, -1); }

IntExpr operator*(const IntExpr& a, const IntExpr& b) {
  if (!a.is_valid() || !b.is_valid()) return IntExpr::invalid();
  return IntExprBuilder::product(a, b);
}

IntExpr floor_div(const IntExpr& a, const IntExpr& b) {
  if (!a.is_valid() || !b.is_valid() || b.is(0)) return IntExpr::invalid();
  if (b.is_constant()) {
    const int64_t k = b.constant_;
    if (k == INT64_MIN) return IntExpr::invalid();
    if (k < 0) return floor_div(-a, IntExpr(-k));
    if (k == 1) return a;
    const auto [quotient, rest] = IntExprBuilder::split(a, Monomial{k, {}});
    return rest.is_constant() ? quotient : quotient + floor_div_rest(rest, k);
  }
  if (a == b) return 1;
  if (const auto divisor = IntExprBuilder::as_monomial(b)) {
    const auto [quotient, rest] = IntExprBuilder::split(a, *divisor);
    return rest.is(0) ? quotient : quotient + IntExprBuilder::func(Func::floor_div, rest, b);
  }
  return a.is(0) ? IntExpr(0) : IntExprBuilder::func(Func::floor_div, a, b);
}

IntExpr floor_mod(const IntExpr& a, const IntExpr& b) {
  if (!a.is_valid() || !b.is_valid() || b.is(0)) return IntExpr::invalid();
  if (b.is_constant()) {
    const int64_t k = b.constant_;
    if (k < 0) return IntExpr::invalid();  // divisors are positive
    if (k == 1) return 0;
    const IntExpr rest = IntExprBuilder::split(a, Monomial{k, {}}).second;
    return rest.is_constant() ? rest : floor_mod_rest(rest, k);
  }
  if (a == b) return 0;
  if (const auto divisor = IntExprBuilder::as_monomial(b)) {
    const IntExpr rest = IntExprBuilder::split(a, *divisor).second;
    return rest.is(0) ? rest : IntExprBuilder::func(Func::floor_mod, rest, b);
  }
  return a.is(0) ? IntExpr(0) : IntExprBuilder::func(Func::floor_mod, a, b);
}

IntExpr ceil_div(const IntExpr& a, const IntExpr& b) { return floor_div(a + b - IntExpr(1), b); }

IntExpr min(const IntExpr& a, const IntExpr& b) {
  if (!a.is_valid() || !b.is_valid()) return IntExpr::invalid();
  if (const auto difference = (a - b).constant()) return *difference <= 0 ? a : b;
  return IntExpr::compare(a, b) < 0 ? IntExprBuilder::func(Func::min, a, b) : IntExprBuilder::func(Func::min, b, a);
}

IntExpr max(const IntExpr& a, const IntExpr& b) {
  if (!a.is_valid() || !b.is_valid()) return IntExpr::invalid();
  if (const auto difference = (a - b).constant()) return *difference >= 0 ? a : b;
  return IntExpr::compare(a, b) < 0 ? IntExprBuilder::func(Func::max, a, b) : IntExprBuilder::func(Func::max, b, a);
}

int IntExpr::compare(const IntExpr& a, const IntExpr& b) {
  if (a.valid_ != b.valid_) return a.valid_ ? 1 : -1;
  if (!a.valid_) return 0;
  if (a.terms_ != b.terms_) {
    const auto &ta = a.terms(), &tb = b.terms();
    if (const int c = compare_i64(static_cast<int64_t>(ta.size()), static_cast<int64_t>(tb.size()))) return c;
    for (size_t i = 0; i < ta.size(); ++i) {
      if (const int c = compare_factors(ta[i].factors, tb[i].factors)) return c;
      if (const int c = compare_i64(ta[i].coefficient, tb[i].coefficient)) return c;
    }
  }
  return compare_i64(a.constant_, b.constant_);
}

bool IntExpr::contains_any(const std::function<bool(Symbol)>& pred) const {
  for (const Term& term : terms())
    if (factors_contain(term.factors, pred)) return true;
  return false;
}

bool IntExpr::contains(Symbol s) const {
  return contains_any([s](Symbol other) { return other == s; });
}

std::vector<Symbol> IntExpr::symbols() const {
  std::vector<Symbol> found;
  contains_any([&](Symbol s) {
    found.push_back(s);
    return false;
  });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

namespace {

IntExpr apply(Func func, const IntExpr& a, const IntExpr& b) {
  switch (func) {
    case Func::floor_div:
      return floor_div(a, b);
    case Func::floor_mod:
      return floor_mod(a, b);
    case Func::min:
      return min(a, b);
    case Func::max:
      return max(a, b);
  }
  return IntExpr::invalid();
}

// Rebuilds an expression with every atom replaced.
IntExpr rebuild(const IntExpr& e, const std::function<IntExpr(const Atom&)>& replace) {
  if (!e.is_valid() || e.is_constant()) return e;
  IntExpr result = e.constant_term();
  for (const Term& term : e.terms()) {
    IntExpr product = term.coefficient;
    for (const Atom& atom : term.factors) product = product * replace(atom);
    result = result + product;
  }
  return result;
}

}  // namespace

IntExpr IntExpr::substitute(const std::function<std::optional<IntExpr>(Symbol)>& map) const {
  return rebuild(*this, [&](const Atom& atom) -> IntExpr {
    if (atom.func) return apply(atom.func->func, atom.func->a.substitute(map), atom.func->b.substitute(map));
    if (auto replacement = map(atom.symbol)) return *std::move(replacement);
    return symbol(atom.symbol);
  });
}

std::optional<int64_t> IntExpr::evaluate(const ValueOf& value_of) const {
  if (!valid_) return std::nullopt;
  int64_t sum = constant_;
  for (const Term& term : terms()) {
    int64_t product = term.coefficient;
    for (const Atom& atom : term.factors) {
      std::optional<int64_t> value;
      if (!atom.func) {
        value = value_of(atom.symbol);
      } else {
        const auto a = atom.func->a.evaluate(value_of), b = atom.func->b.evaluate(value_of);
        if (!a || !b) return std::nullopt;
        value = apply(atom.func->func, IntExpr(*a), IntExpr(*b)).constant();
      }
      if (!value || __builtin_mul_overflow(product, *value, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

std::optional<IntExpr::Linear> IntExpr::linear_in(Symbol s) const {
  if (!valid_) return std::nullopt;
  Linear linear{IntExpr(0), IntExpr(constant_)};
  const auto is_s = [s](Symbol other) { return other == s; };
  for (const Term& term : terms()) {
    if (!factors_contain(term.factors, is_s)) {
      linear.rest = linear.rest + IntExprBuilder::from_term(term);
      continue;
    }
    const auto quotient = divide(term.coefficient, term.factors, Monomial{1, {Atom{s, nullptr}}});
    if (!quotient || factors_contain(quotient->factors, is_s)) return std::nullopt;
    linear.coefficient = linear.coefficient + IntExprBuilder::from_term(*quotient);
  }
  return linear;
}

// ---- Reasoning with ranges ----------------------------------------------------------------------------------------

namespace {

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

  // The range of an atom as expressions that no longer contain it.
  IntExpr::Range range_of_atom(const Atom& atom) {
    if (!atom.func) return range_of(atom.symbol);
    const IntExpr &a = atom.func->a, &b = atom.func->b;
    switch (atom.func->func) {
      case Func::floor_mod:
        return {IntExpr(0), b - IntExpr(1)};
      case Func::floor_div: {
        if (!nonnegative(b - IntExpr(1))) return {};
        IntExpr::Range range;
        if (b.is_constant()) {
          if (const auto lo = bound(a, false)) range.lo = floor_div(*lo, b);
          if (const auto hi = bound(a, true)) range.hi = floor_div(*hi, b);
        } else if (nonnegative(a)) {
          range.lo = IntExpr(0);
          if (const auto hi = bound(a, true)) range.hi = *hi;
        }
        return range;
      }
      case Func::min: {
        const auto lo_a = bound(a, false), lo_b = bound(b, false);
        IntExpr::Range range;
        if (lo_a && lo_b && lo_a->is_constant() && lo_b->is_constant()) range.lo = min(*lo_a, *lo_b);
        // min(a, b) is at most either side; the constant one is the more useful bound.
        const auto hi_a = bound(a, true), hi_b = bound(b, true);
        range.hi = hi_a && (hi_a->is_constant() || !hi_b) ? hi_a : hi_b;
        return range;
      }
      case Func::max: {
        const auto hi_a = bound(a, true), hi_b = bound(b, true);
        IntExpr::Range range;
        if (hi_a && hi_b && hi_a->is_constant() && hi_b->is_constant()) range.hi = max(*hi_a, *hi_b);
        const auto lo_a = bound(a, false), lo_b = bound(b, false);
        range.lo = lo_a && (lo_a->is_constant() || !lo_b) ? lo_a : lo_b;
        return range;
      }
    }
    return {};
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
        const IntExpr::Range range = range_of_atom(atom);
        if (!range.lo && !range.hi) continue;
        const auto linear = linear_in_atom(e, atom);
        if (!linear) return power_bound(e, upper);
        const bool positive = nonnegative(linear->coefficient);
        if (!positive && !nonnegative(-linear->coefficient)) return std::nullopt;
        const std::optional<IntExpr>& end = positive == upper ? range.hi : range.lo;
        if (!end) return std::nullopt;
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
