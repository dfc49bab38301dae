// Integer expressions over symbols: dims of tensors, index maps of tiles, sizes of buffers, task counts of stages.
//
// An expression is kept in a normal form: a sum of integer multiples of products of atoms, where an atom is a symbol or
// a floor_div, floor_mod, min or max of two expressions. Sums and products distribute, constants fold, equal terms
// merge, and multiples of a constant (or symbolic) divisor leave floor_div and floor_mod; so two expressions that a
// reader would call the same by school algebra compare equal. A constant takes no allocation. Values are immutable and
// may be shared by threads.
//
// Arithmetic is on 64-bit integers; overflow while building or evaluating makes the result invalid, which is sticky and
// never a wrong number.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace quartet {

// Symbols are small integers. Graph dims use [0, kAxisSymbols); index maps use axis(i) = kAxisSymbols + i for the axes
// of a tensor expression and value(i) = kValueSymbols + i for an index computed at run time by body node i.
using Symbol = int32_t;
inline constexpr Symbol kAxisSymbols = 1 << 20;
inline constexpr Symbol kValueSymbols = 1 << 21;
constexpr Symbol axis_symbol(int i) { return kAxisSymbols + i; }
constexpr Symbol value_symbol(int i) { return kValueSymbols + i; }
constexpr bool is_dim_symbol(Symbol s) { return s >= 0 && s < kAxisSymbols; }
constexpr bool is_axis_symbol(Symbol s) { return s >= kAxisSymbols && s < kValueSymbols; }
constexpr bool is_value_symbol(Symbol s) { return s >= kValueSymbols; }

class IntExpr {
 public:
  enum class Func : uint8_t { floor_div = 0, floor_mod = 1, min = 2, max = 3 };

  struct Range;  // inclusive range of a symbol
  using RangeOf = std::function<Range(Symbol)>;
  using ValueOf = std::function<std::optional<int64_t>(Symbol)>;
  using NameOf = std::function<std::string(Symbol)>;
  using SymbolOf = std::function<std::optional<Symbol>(std::string_view)>;

  IntExpr() = default;                          // 0
  IntExpr(int64_t value) : constant_(value) {}  // NOLINT: a number is an expression
  static IntExpr symbol(Symbol s);
  static IntExpr axis(int i) { return symbol(axis_symbol(i)); }
  static IntExpr invalid();

  bool is_valid() const { return valid_; }
  bool is_constant() const { return valid_ && terms_ == nullptr; }
  // The value of a constant expression.
  std::optional<int64_t> constant() const;
  bool is(int64_t value) const { return is_constant() && constant_ == value; }
  // The symbol if the expression is exactly one.
  std::optional<Symbol> as_symbol() const;

  friend IntExpr operator+(const IntExpr& a, const IntExpr& b);
  friend IntExpr operator-(const IntExpr& a, const IntExpr& b);
  friend IntExpr operator*(const IntExpr& a, const IntExpr& b);
  IntExpr operator-() const { return IntExpr(0) - *this; }
  IntExpr& operator+=(const IntExpr& b) { return *this = *this + b; }
  IntExpr& operator*=(const IntExpr& b) { return *this = *this * b; }
  // Towards minus infinity; division by constant zero is invalid.
  friend IntExpr floor_div(const IntExpr& a, const IntExpr& b);
  friend IntExpr floor_mod(const IntExpr& a, const IntExpr& b);
  friend IntExpr ceil_div(const IntExpr& a, const IntExpr& b);
  friend IntExpr min(const IntExpr& a, const IntExpr& b);
  friend IntExpr max(const IntExpr& a, const IntExpr& b);

  // Structural equality and an arbitrary but deterministic total order of normal forms.
  friend bool operator==(const IntExpr& a, const IntExpr& b) { return compare(a, b) == 0; }
  static int compare(const IntExpr& a, const IntExpr& b);
  struct Less {
    bool operator()(const IntExpr& a, const IntExpr& b) const { return compare(a, b) < 0; }
  };

  bool contains(Symbol s) const;
  // True if a symbol for which `pred` holds occurs.
  bool contains_any(const std::function<bool(Symbol)>& pred) const;
  // Every symbol, ascending, once.
  std::vector<Symbol> symbols() const;

  // Replaces symbols; the result is normalised again. Symbols for which `map` gives nothing stay.
  IntExpr substitute(const std::function<std::optional<IntExpr>(Symbol)>& map) const;
  // Nothing if a symbol has no value, a divisor is zero or the arithmetic overflows.
  std::optional<int64_t> evaluate(const ValueOf& value_of) const;

  // If the expression is `coefficient * s + rest` with neither part containing s: both. (Polynomial in s of degree one,
  // s not inside a floor_div, floor_mod, min or max.)
  struct Linear;
  std::optional<Linear> linear_in(Symbol s) const;

  // Uses what is known of symbols' ranges: drops floor_div, floor_mod, min and max whose outcome is certain (e.g.
  // floor_div(b*i + j, b) is i when 0 <= j < b).
  IntExpr simplify(const RangeOf& range_of) const;
  // Certainly >= 0 under the ranges.
  bool provably_nonnegative(const RangeOf& range_of) const;
  // Tight-enough inclusive bounds as expressions over the symbols that have no range (dims, typically); missing when
  // unknown. Exact for affine expressions with numeric coefficients.
  Range bounds(const RangeOf& range_of) const;

  // "n*4+1", "floor_div(n, 2)". Deterministic. Symbols print as s0, i0 (axes), v0 (values) unless named.
  std::string to_text(const NameOf& name_of = {}) const;
  // Parses to_text's language: integers, names, + - *, parentheses and the four functions, plus ceil_div.
  static Result<IntExpr> parse(std::string_view text, const SymbolOf& symbol_of);

  void write(ByteWriter& out) const;
  // Bounded depth and size; fails the reader on malformed input.
  static IntExpr read(ByteReader& in);

  // Visits the normal form, for code generation: the constant, then each term's coefficient and factors.
  struct Atom;
  struct Term {
    int64_t coefficient = 0;
    std::vector<Atom> factors;  // sorted; powers are repeated
  };
  struct FuncNode;
  struct Atom {
    Symbol symbol = -1;                    // if func is null
    std::shared_ptr<const FuncNode> func;  // shared, immutable
  };
  int64_t constant_term() const { return constant_; }
  const std::vector<Term>& terms() const;

 private:
  friend struct IntExprBuilder;
  int64_t constant_ = 0;
  bool valid_ = true;
  std::shared_ptr<const std::vector<Term>> terms_;  // null when constant
};

// Each end of a range is itself an expression; a missing end is unbounded.
struct IntExpr::Range {
  std::optional<IntExpr> lo, hi;
};

struct IntExpr::Linear {
  IntExpr coefficient, rest;
};

struct IntExpr::FuncNode {
  Func func;
  IntExpr a, b;
  int depth = 1;  // functions one inside the other, this one included
};

}  // namespace quartet
