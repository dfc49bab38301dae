#include "base/int_expr.h"

#include <algorithm>

#include "base/checked.h"
#include "base/int_expr_builder.h"

namespace quartet {

using namespace normal_form;

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

}  // namespace quartet
