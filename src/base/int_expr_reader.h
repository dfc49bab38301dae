// Reads many integer expressions that share parts.
#pragma once

#include <map>
#include <string_view>

#include "base/int_expr.h"

namespace quartet {

// As IntExpr::read, but what has the same bytes as something read before is that, shared, and not made again: the
// offsets of a program are sums over the same terms. The bytes must outlive the reader.
class IntExprReader {
 public:
  IntExpr read(ByteReader& in);
  // Functions and sums that were made and not found.
  size_t made() const { return known_.size(); }

 private:
  friend struct IntExprParser;
  std::map<std::string_view, IntExpr> known_;  // by their bytes
};

}  // namespace quartet
