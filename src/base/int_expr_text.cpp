// Text form of integer expressions.
#include <cctype>

#include "base/int_expr.h"
#include "base/int_expr_limits.h"

namespace quartet {

namespace {

std::string default_name(Symbol s) {
  if (is_value_symbol(s)) return "v" + std::to_string(s - kValueSymbols);
  if (is_axis_symbol(s)) return "i" + std::to_string(s - kAxisSymbols);
  return "s" + std::to_string(s);
}

const char* func_name(IntExpr::Func func) {
  switch (func) {
    case IntExpr::Func::floor_div:
      return "floor_div";
    case IntExpr::Func::floor_mod:
      return "floor_mod";
    case IntExpr::Func::min:
      return "min";
    case IntExpr::Func::max:
      return "max";
  }
  return "invalid";
}

class Parser {
 public:
  Parser(std::string_view text, const IntExpr::SymbolOf& symbol_of) : text_(text), symbol_of_(symbol_of) {}

  Result<IntExpr> run() {
    QUARTET_ASSIGN(IntExpr e, sum());
    skip_space();
    if (at_ != text_.size()) return error("unexpected text");
    if (!e.is_valid()) return error("overflow, division by zero or too large");
    return e;
  }

 private:
  Status error(const char* what) const {
    return make_error(Code::invalid_argument, "integer expression '%.*s': %s at column %zu",
                      static_cast<int>(std::min<size_t>(text_.size(), 120)), text_.data(), what, at_ + 1);
  }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Result<IntExpr> sum() {
    QUARTET_ASSIGN(IntExpr e, product());
    for (;;) {
      if (take('+')) {
        QUARTET_ASSIGN(const IntExpr b, product());
        e = e + b;
      } else if (take('-')) {
        QUARTET_ASSIGN(const IntExpr b, product());
        e = e - b;
      } else {
        return e;
      }
    }
  }

  Result<IntExpr> product() {
    QUARTET_ASSIGN(IntExpr e, factor());
    while (take('*')) {
      QUARTET_ASSIGN(const IntExpr b, factor());
      e = e * b;
    }
    return e;
  }

  Result<IntExpr> factor() {
    if (++depth_ > kMaxExprDepth) return error("nested too deeply");
    auto result = factor_inner();
    --depth_;
    return result;
  }

  Result<IntExpr> factor_inner() {
    if (take('-')) {
      QUARTET_ASSIGN(const IntExpr e, factor());
      return -e;
    }
    if (take('(')) {
      QUARTET_ASSIGN(IntExpr e, sum());
      if (!take(')')) return error("')' expected");
      return e;
    }
    skip_space();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) return number();
    return name_or_call();
  }

  Result<IntExpr> number() {
    int64_t value = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value))
        return error("a number out of range");
      ++at_;
    }
    return IntExpr(value);
  }

  Result<IntExpr> name_or_call() {
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name.empty()) return error("a number, name or '(' expected");
    if (!take('(')) {
      if (symbol_of_)
        if (const auto s = symbol_of_(name)) return IntExpr::symbol(*s);
      return make_error(Code::invalid_argument, "integer expression: no symbol '%.*s'", static_cast<int>(name.size()),
                        name.data());
    }
    QUARTET_ASSIGN(const IntExpr a, sum());
    if (!take(',')) return error("',' expected");
    QUARTET_ASSIGN(const IntExpr b, sum());
    if (!take(')')) return error("')' expected");
    if (name == "floor_div") return floor_div(a, b);
    if (name == "floor_mod") return floor_mod(a, b);
    if (name == "ceil_div") return ceil_div(a, b);
    if (name == "min") return min(a, b);
    if (name == "max") return max(a, b);
    return error("an unknown function");
  }

  std::string_view text_;
  const IntExpr::SymbolOf& symbol_of_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string IntExpr::to_text(const NameOf& name_of) const {
  if (!valid_) return "invalid";
  std::string text;
  for (const Term& term : terms()) {
    const bool negative = term.coefficient < 0;
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    bool first = true;
    for (const Atom& atom : term.factors) {
      if (!first) text += "*";
      first = false;
      if (!atom.func)
        text += name_of ? name_of(atom.symbol) : default_name(atom.symbol);
      else
        text += std::string(func_name(atom.func->func)) + "(" + atom.func->a.to_text(name_of) + ", " +
                atom.func->b.to_text(name_of) + ")";
    }
    const uint64_t magnitude =
        negative ? uint64_t{0} - static_cast<uint64_t>(term.coefficient) : static_cast<uint64_t>(term.coefficient);
    if (magnitude != 1) text += "*" + std::to_string(magnitude);
  }
  if (text.empty()) return std::to_string(constant_);
  if (constant_ > 0) text += " + " + std::to_string(constant_);
  if (constant_ < 0) text += " - " + std::to_string(uint64_t{0} - static_cast<uint64_t>(constant_));
  return text;
}

Result<IntExpr> IntExpr::parse(std::string_view text, const SymbolOf& symbol_of) {
  return Parser(text, symbol_of).run();
}

}  // namespace quartet
