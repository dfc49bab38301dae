#include "tile/remap.h"

namespace quartet::tile {
namespace {

// Dims that are not constant 1, by number.
std::vector<size_t> wide_dims(const std::vector<IntExpr>& shape) {
  std::vector<size_t> wide;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!shape[d].is(1)) wide.push_back(d);
  }
  return wide;
}

IntExpr product(const std::vector<IntExpr>& shape) {
  IntExpr all = 1;
  for (const IntExpr& dim : shape) all *= dim;
  return all;
}

bool smaller(const IntExpr& a, const IntExpr& b) {
  if (a.is_constant() && b.is_constant()) return *a.constant() < *b.constant();
  return floor_mod(b, a).is(0);  // a divides b
}

// A run of dims of either shape with equal products.
struct Run {
  std::vector<size_t> from, to;
};

// Cuts both shapes into the smallest such runs, as far as school algebra sees; the last run takes the rest.
std::vector<Run> match(const std::vector<IntExpr>& from, const std::vector<IntExpr>& to) {
  const std::vector<size_t> wide_from = wide_dims(from), wide_to = wide_dims(to);
  std::vector<Run> runs;
  size_t i = 0, j = 0;
  while (i < wide_from.size() && j < wide_to.size()) {
    Run run;
    const size_t i0 = i, j0 = j;
    IntExpr a = from[wide_from[i]], b = to[wide_to[j]];
    run.from.push_back(wide_from[i++]);
    run.to.push_back(wide_to[j++]);
    while (a != b) {
      if (i < wide_from.size() && (j == wide_to.size() || smaller(a, b))) {
        a *= from[wide_from[i]];
        run.from.push_back(wide_from[i++]);
      } else if (j < wide_to.size()) {
        b *= to[wide_to[j]];
        run.to.push_back(wide_to[j++]);
      } else {
        break;
      }
    }
    if (a != b) {  // the rest as one run
      run.from.assign(wide_from.begin() + static_cast<ptrdiff_t>(i0), wide_from.end());
      run.to.assign(wide_to.begin() + static_cast<ptrdiff_t>(j0), wide_to.end());
      i = wide_from.size(), j = wide_to.size();
    }
    runs.push_back(std::move(run));
  }
  if (i < wide_from.size() || j < wide_to.size()) {
    if (runs.empty()) runs.emplace_back();
    for (; i < wide_from.size(); ++i) runs.back().from.push_back(wide_from[i]);
    for (; j < wide_to.size(); ++j) runs.back().to.push_back(wide_to[j]);
  }
  return runs;
}

// Functions in an expression, nested ones too.
size_t functions(const IntExpr& e) {
  size_t count = 0;
  for (const IntExpr::Term& term : e.terms()) {
    for (const IntExpr::Atom& atom : term.factors) {
      if (atom.func) count += 1 + functions(atom.func->a) + functions(atom.func->b);
    }
  }
  return count;
}

// b * floor_div(a, b) + floor_mod(a, b) is a: adds what makes such a pair vanish, wherever that leaves less to compute.
std::optional<IntExpr> recombined_once(const IntExpr& e) {
  const size_t before = functions(e);
  for (const IntExpr::Term& term : e.terms()) {
    for (size_t f = 0; f < term.factors.size(); ++f) {
      const auto& func = term.factors[f].func;
      if (!func || func->func != IntExpr::Func::floor_mod) continue;
      IntExpr scale = term.coefficient;
      for (size_t other = 0; other < term.factors.size(); ++other) {
        if (other == f) continue;
        const IntExpr::Atom& atom = term.factors[other];
        if (atom.func)
          scale = IntExpr::invalid();  // a product of functions is left alone
        else
          scale *= IntExpr::symbol(atom.symbol);
      }
      const IntExpr zero = func->a - func->b * floor_div(func->a, func->b) - floor_mod(func->a, func->b);
      IntExpr changed = e + scale * zero;
      if (changed.is_valid() && functions(changed) < before) return changed;
    }
  }
  return std::nullopt;
}

}  // namespace

IntExpr recombined(IntExpr e) {
  if (functions(e) < 2) return e;
  while (auto simpler = recombined_once(e)) e = std::move(*simpler);
  return e;
}

bool provably_equal(const IntExpr& a, const IntExpr& b, const IntExpr::RangeOf& range_of) {
  return a == b || (a - b).simplify(range_of).is(0);
}

std::vector<IntExpr> row_major_strides(const std::vector<IntExpr>& shape) {
  std::vector<IntExpr> strides(shape.size(), IntExpr(1));
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

IntExpr linearize(const std::vector<IntExpr>& point, const std::vector<IntExpr>& shape) {
  const std::vector<IntExpr> strides = row_major_strides(shape);
  IntExpr offset;
  for (size_t d = 0; d < point.size(); ++d) {
    if (!shape[d].is(1)) offset += point[d] * strides[d];
  }
  return recombined(std::move(offset));
}

std::optional<std::vector<IntExpr>> remap(const std::vector<IntExpr>& point, const std::vector<IntExpr>& from,
                                          const std::vector<IntExpr>& to, const IntExpr::RangeOf& range_of) {
  if (from == to) return point;
  if (!provably_equal(product(from), product(to), range_of)) return std::nullopt;
  std::vector<IntExpr> result(to.size());
  if (product(to).is(0)) return result;  // no point is ever asked for
  for (const Run& run : match(from, to)) {
    std::vector<IntExpr> run_point, run_from, run_to;
    for (const size_t d : run.from) run_point.push_back(point[d]), run_from.push_back(from[d]);
    for (const size_t d : run.to) run_to.push_back(to[d]);
    if (run.from.size() == 1 && run.to.size() == 1) {
      result[run.to[0]] = run_point[0];
      continue;
    }
    const IntExpr linear = linearize(run_point, run_from);
    const std::vector<IntExpr> strides = row_major_strides(run_to);
    for (size_t k = 0; k < run.to.size(); ++k) {
      IntExpr index = floor_div(linear, strides[k]);
      if (k > 0) index = floor_mod(index, run_to[k]);
      result[run.to[k]] = index.simplify(range_of);
    }
  }
  return result;
}

}  // namespace quartet::tile
