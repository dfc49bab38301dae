#include "base/int_expr_builder.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/int_expr_limits.h"

namespace quartet {
namespace normal_form {

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

bool factors_contain(const std::vector<Atom>& factors, const std::function<bool(Symbol)>& pred) {
  for (const Atom& atom : factors)
    if (atom.func ? atom.func->a.contains_any(pred) || atom.func->b.contains_any(pred) : pred(atom.symbol)) return true;
  return false;
}

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

IntExpr rebuild(const IntExpr& e, const std::function<IntExpr(const Atom&)>& replace) {
  if (!e.is_valid() || e.is_constant()) return e;
  IntExpr result = e.constant_term();
  for (const Term& term : e.terms()) {
    IntExpr product = replace(term.factors[0]);
    for (size_t i = 1; i < term.factors.size(); ++i) product = product * replace(term.factors[i]);
    product = product * IntExpr(term.coefficient);
    result = result + product;
  }
  return result;
}

}  // namespace normal_form

using namespace normal_form;

namespace {

int64_t floor_div_i64(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); }

bool atom_less(const Atom& a, const Atom& b) { return compare_atoms(a, b) < 0; }

}  // namespace

const std::vector<Term>& IntExprBuilder::no_terms() {
  static const std::vector<Term> none;
  return none;
}

IntExpr IntExprBuilder::make(int64_t constant, std::vector<Term> terms) {
  if (terms.size() > kMaxExprTerms) return IntExpr::invalid();
  IntExpr e(constant);
  if (!terms.empty()) e.terms_ = std::make_shared<const std::vector<Term>>(std::move(terms));
  return e;
}

IntExpr IntExprBuilder::with_constant(const IntExpr& e, int64_t constant) {
  IntExpr other = e;
  other.constant_ = constant;
  return other;
}

IntExpr IntExprBuilder::scaled(const IntExpr& e, int64_t scale) {
  if (scale == 0) return IntExpr(0);
  if (scale == 1) return e;
  const auto constant = checked_mul(e.constant_, scale);
  if (!constant) return IntExpr::invalid();
  std::vector<Term> terms = e.terms();
  for (Term& term : terms) {
    const auto coefficient = checked_mul(term.coefficient, scale);
    if (!coefficient) return IntExpr::invalid();
    term.coefficient = *coefficient;
  }
  return make(*constant, std::move(terms));
}

IntExpr IntExprBuilder::from_atom(Atom atom) {
  Term term{1, {}};
  term.factors.push_back(std::move(atom));
  std::vector<Term> terms;
  terms.push_back(std::move(term));
  return make(0, std::move(terms));
}

IntExpr IntExprBuilder::from_term(const Term& term) {
  if (term.factors.empty()) return IntExpr(term.coefficient);
  return make(0, {term});
}

int IntExprBuilder::depth_of(const IntExpr& e) {
  int depth = 0;
  for (const Term& term : e.terms())
    for (const Atom& atom : term.factors) depth = std::max(depth, atom.func ? atom.func->depth : 0);
  return depth;
}

IntExpr IntExprBuilder::func(Func kind, const IntExpr& a, const IntExpr& b) {
  const int depth = 1 + std::max(depth_of(a), depth_of(b));
  if (depth > kMaxExprDepth) return IntExpr::invalid();
  return from_atom(Atom{-1, std::make_shared<const IntExpr::FuncNode>(IntExpr::FuncNode{kind, a, b, depth})});
}

IntExpr IntExprBuilder::add_scaled(const IntExpr& a, const IntExpr& b, int64_t scale) {
  if (!a.is_valid() || !b.is_valid()) return IntExpr::invalid();
  const auto scaled = checked_mul(b.constant_, scale);
  const auto constant = scaled ? checked_add(a.constant_, *scaled) : std::nullopt;
  if (!constant) return IntExpr::invalid();
  if (!b.terms_) return with_constant(a, *constant);
  if (!a.terms_ && scale == 1) return with_constant(b, *constant);
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

IntExpr IntExprBuilder::collect(int64_t constant, std::vector<Term> terms) {
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

IntExpr IntExprBuilder::product(const IntExpr& a, const IntExpr& b) {
  if (!a.terms_) return scaled(b, a.constant_);
  if (!b.terms_) return scaled(a, b.constant_);
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

std::optional<Monomial> IntExprBuilder::as_monomial(const IntExpr& e) {
  if (e.is_constant()) return e.constant_ != 0 ? std::optional(Monomial{e.constant_, {}}) : std::nullopt;
  if (e.constant_ != 0 || e.terms().size() != 1) return std::nullopt;
  return Monomial{e.terms()[0].coefficient, e.terms()[0].factors};
}

IntExpr IntExprBuilder::from_monomial(const Monomial& m) { return from_term(Term{m.coefficient, m.factors}); }

std::pair<IntExpr, IntExpr> IntExprBuilder::split(const IntExpr& e, const Monomial& divisor) {
  int64_t quotient = 0, rest = e.constant_;
  if (divisor.factors.empty()) {
    quotient = floor_div_i64(e.constant_, divisor.coefficient);
    rest = e.constant_ - quotient * divisor.coefficient;
  }
  std::vector<Term> divided, kept;
  kept.reserve(e.terms().size());
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
  if (kept.size() == e.terms().size()) return {IntExpr(quotient), with_constant(e, rest)};
  return {collect(quotient, std::move(divided)), collect(rest, std::move(kept))};
}

int64_t IntExprBuilder::term_gcd(const IntExpr& e, int64_t divisor) {
  int64_t g = divisor;
  for (const Term& term : e.terms()) g = std::gcd(g, term.coefficient);
  return g;
}

IntExpr IntExprBuilder::sum(int64_t constant, std::vector<Term> terms) {
  for (Term& term : terms) {
    if (term.factors.size() > kMaxExprFactors) return IntExpr::invalid();
    std::sort(term.factors.begin(), term.factors.end(), atom_less);
  }
  return collect(constant, std::move(terms));
}

}  // namespace quartet
