// What is known of dims: reasoning under the symbols' ranges, and how dims and types are written.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace quartet::graph {

// What was found out of dims, for who asks the same again and again. Good as long as no known symbol's range changes.
struct DimFacts {
  std::map<IntExpr, IntExpr, IntExpr::Less> simplified;
  std::map<IntExpr, bool, IntExpr::Less> nonnegative;
};

// Facts about dims under the ranges of a graph's symbols. Borrows the symbols, and the facts if there are any.
class Dims {
 public:
  explicit Dims(std::span<const DimSymbol> symbols, DimFacts* facts = nullptr) : symbols_(symbols), facts_(facts) {}

  IntExpr::Range range(Symbol symbol) const;
  bool is_entry_known(Symbol symbol) const;
  // The expression with every floor_div, floor_mod, min and max gone whose outcome the ranges decide.
  IntExpr simplify(const IntExpr& e) const;
  bool same(const IntExpr& a, const IntExpr& b) const;
  // Whether a >= b for every value of the symbols. False also when that cannot be shown.
  bool at_least(const IntExpr& a, const IntExpr& b) const;

  // A dim is well formed: a valid expression over the symbols alone, of bounded size and nesting, and not a negative
  // number.
  bool well_formed(const IntExpr& dim) const;
  // invalid_argument with the reason for a dim that is not well formed.
  Status no_extent(const IntExpr& dim) const;

  std::string text(const IntExpr& e) const;
  std::string text(const Shape& shape) const;      // "[batch, 64]"
  std::string text(const TensorType& type) const;  // "f32[batch, 64]"

 private:
  bool nonnegative(const IntExpr& e, int depth) const;

  std::span<const DimSymbol> symbols_;
  DimFacts* facts_;
};

// Whether a text may be a symbol's name: letters, digits, '_' and '.', no digit first, not "invalid".
bool is_symbol_name(std::string_view name);

}  // namespace quartet::graph
