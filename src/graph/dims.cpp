#include "graph/dims.h"

namespace quartet::graph {
namespace {

constexpr int kSplitDepth = 6;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

IntExpr from_atom(const IntExpr::Atom& atom) {
  if (!atom.func) return IntExpr::symbol(atom.symbol);
  switch (atom.func->func) {
    case IntExpr::Func::floor_div:
      return floor_div(atom.func->a, atom.func->b);
    case IntExpr::Func::floor_mod:
      return floor_mod(atom.func->a, atom.func->b);
    case IntExpr::Func::min:
      return min(atom.func->a, atom.func->b);
    case IntExpr::Func::max:
      return max(atom.func->a, atom.func->b);
  }
  return IntExpr::invalid();
}

constexpr int kMaxNesting = 8;
constexpr int kMaxAtoms = 128;

// Whether an expression is small enough to reason about in bounded time; counts its atoms down.
bool is_small(const IntExpr& e, int nesting, int& atoms_left) {
  if (nesting > kMaxNesting) return false;
  for (const IntExpr::Term& term : e.terms())
    for (const IntExpr::Atom& atom : term.factors) {
      if (--atoms_left < 0) return false;
      if (atom.func &&
          (!is_small(atom.func->a, nesting + 1, atoms_left) || !is_small(atom.func->b, nesting + 1, atoms_left)))
        return false;
    }
  return true;
}

}  // namespace

bool Dims::is_entry_known(Symbol symbol) const {
  return is_dim_symbol(symbol) && static_cast<size_t>(symbol) < symbols_.size() &&
         symbols_[static_cast<size_t>(symbol)].kind == DimSymbol::Kind::entry;
}

IntExpr::Range Dims::range(Symbol symbol) const {
  if (symbol < 0 || static_cast<size_t>(symbol) >= symbols_.size()) return {};
  const DimSymbol& s = symbols_[static_cast<size_t>(symbol)];
  return {IntExpr(s.lower), s.upper};
}

IntExpr Dims::simplify(const IntExpr& e) const {
  if (e.is_constant()) return e;
  const auto found_out = [&] { return e.simplify([this](Symbol s) { return range(s); }); };
  if (!facts_ || !e.is_valid()) return found_out();
  const auto known = facts_->simplified.find(e);
  return known != facts_->simplified.end() ? known->second : facts_->simplified.emplace(e, found_out()).first->second;
}

bool Dims::same(const IntExpr& a, const IntExpr& b) const {
  return a.is_valid() && b.is_valid() && (a == b || simplify(a) == simplify(b));
}

bool Dims::at_least(const IntExpr& a, const IntExpr& b) const {
  const IntExpr difference = a - b;
  if (!facts_ || difference.is_constant() || !difference.is_valid()) return nonnegative(difference, 0);
  const auto known = facts_->nonnegative.find(difference);
  if (known != facts_->nonnegative.end()) return known->second;
  return facts_->nonnegative.emplace(difference, nonnegative(difference, 0)).first->second;
}

// Interval reasoning first; then a min or max that is a term of its own is split into its two sides. A lower bound of
// the whole holds with either side of -min and +max, and needs both sides of +min and -max.
bool Dims::nonnegative(const IntExpr& e, int depth) const {
  if (!e.is_valid()) return false;
  if (e.is_constant()) return *e.constant() >= 0;
  if (e.provably_nonnegative([this](Symbol s) { return range(s); })) return true;
  if (depth == kSplitDepth) return false;
  for (const IntExpr::Term& term : e.terms()) {
    if (term.factors.size() != 1 || !term.factors[0].func) continue;
    const IntExpr::FuncNode& node = *term.factors[0].func;
    if (node.func != IntExpr::Func::min && node.func != IntExpr::Func::max) continue;
    const IntExpr rest = e - IntExpr(term.coefficient) * from_atom(term.factors[0]);
    const IntExpr with_a = rest + IntExpr(term.coefficient) * node.a;
    const IntExpr with_b = rest + IntExpr(term.coefficient) * node.b;
    const bool either = (node.func == IntExpr::Func::min) == (term.coefficient < 0);
    if (either) return nonnegative(with_a, depth + 1) || nonnegative(with_b, depth + 1);
    return nonnegative(with_a, depth + 1) && nonnegative(with_b, depth + 1);
  }
  return false;
}

bool Dims::well_formed(const IntExpr& dim) const {
  if (!dim.is_valid()) return false;
  if (dim.is_constant()) return *dim.constant() >= 0;
  int atoms = kMaxAtoms;
  return is_small(dim, 0, atoms) &&
         !dim.contains_any([this](Symbol s) { return s < 0 || static_cast<size_t>(s) >= symbols_.size(); });
}

Status Dims::no_extent(const IntExpr& dim) const {
  if (!dim.is_valid())
    return {Code::invalid_argument, "an extent that is out of range, divides by zero or is too large an expression"};
  constexpr size_t kShown = 120;
  std::string shown = text(dim);
  if (shown.size() > kShown) shown = shown.substr(0, kShown) + " ...";
  int atoms = kMaxAtoms;
  return make_error(Code::invalid_argument, "'%s' is no extent%s", shown.c_str(),
                    is_small(dim, 0, atoms) ? "" : ": the expression is too large");
}

std::string Dims::text(const IntExpr& e) const {
  return e.to_text([this](Symbol s) {
    if (s >= 0 && static_cast<size_t>(s) < symbols_.size()) return symbols_[static_cast<size_t>(s)].name;
    return "symbol" + std::to_string(s);
  });
}

std::string Dims::text(const Shape& shape) const {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) out += ", ";
    out += text(shape[i]);
  }
  return out + "]";
}

std::string Dims::text(const TensorType& type) const { return dtype_name(type.dtype) + text(type.shape); }

bool is_symbol_name(std::string_view name) {
  if (name.empty() || name == "invalid" || is_digit(name[0])) return false;
  for (const char c : name)
    if (!is_digit(c) && !is_letter(c) && c != '_' && c != '.') return false;
  return true;
}

}  // namespace quartet::graph
