// Type rules of if, loop, call, require and bind.
#include <algorithm>

#include "graph/births.h"
#include "graph/infer_rules.h"

namespace quartet::graph {
namespace {

bool same_type(const TensorType& a, const TensorType& b, const Dims& dims) {
  bool same = a.dtype == b.dtype && a.rank() == b.rank();
  for (size_t i = 0; same && i < a.rank(); ++i) same = dims.same(a.shape[i], b.shape[i]);
  return same;
}

Status expect_type(const TensorType& type, const TensorType& wanted, const Dims& dims, const std::string& what) {
  if (same_type(type, wanted, dims)) return {};
  return make_error(Code::invalid_argument, "%s is %s, wanted %s", what.c_str(), dims.text(type).c_str(),
                    dims.text(wanted).c_str());
}

Status expect_count(size_t count, size_t wanted, const char* what) {
  if (count == wanted) return {};
  return make_error(Code::invalid_argument, "%zu %s, wanted %zu", count, what, wanted);
}

Status expect_scalar(const TensorType* type, DType dtype, const Dims& dims, const char* what) {
  if (!type) return {};
  return expect_type(*type, TensorType{dtype, {}}, dims, what);
}

Shape born(const InferInput& in) {
  return in.attrs.contains(AttrKey::births) ? shape_attr(in, AttrKey::births) : Shape();
}

Result<Types> infer_bind(const InferInput& in) {
  QUARTET_TRY(expect_scalar(in.operands[0], DType::i64, in.dims, "the number"));
  if (born(in).size() == 1) return Types();
  return make_error(Code::invalid_argument, "%zu births, wanted 1", born(in).size());
}

Result<Types> infer_if(const InferInput& in) {
  QUARTET_TRY(expect_scalar(in.operands[0], DType::boolean, in.dims, "the condition"));
  QUARTET_TRY(expect_count(in.regions.size(), 2, "regions"));
  const Signature &yes = in.regions[0], &no = in.regions[1];
  QUARTET_TRY(expect_count(yes.arguments.size() + no.arguments.size(), 0, "region arguments"));
  QUARTET_TRY(expect_count(no.results.size(), yes.results.size(), "results of else"));
  const Shape births = born(in);
  const std::vector<int64_t>* given = ints_attr(in, AttrKey::places);
  const std::vector<int64_t> places = given ? *given : std::vector<int64_t>();
  const auto dims = if_dims(births, places, yes.results, no.results);
  if (!dims) return make_error(Code::invalid_argument, "places do not say where the births stand");
  // With the births in their places the sides agree.
  Types types = yes.results, others = no.results;
  for (size_t b = 0; b < births.size(); ++b) {
    for (size_t other = 0; other < b; ++other)
      if ((*dims)[b].symbol == (*dims)[other].symbol && !(in.dims.same((*dims)[b].first, (*dims)[other].first) &&
                                                          in.dims.same((*dims)[b].second, (*dims)[other].second)))
        return make_error(Code::invalid_argument, "%s stands for dims that differ", in.dims.text(births[b]).c_str());
    for (Types* side : {&types, &others})
      (*side)[static_cast<size_t>(places[2 * b])].shape[static_cast<size_t>(places[2 * b + 1])] = births[b];
  }
  for (size_t i = 0; i < types.size(); ++i)
    QUARTET_TRY(expect_type(others[i], types[i], in.dims, "result " + std::to_string(i) + " of else"));
  return types;
}

// The carried values of a loop whose dims change: first and next are what the symbols of the argument stand for.
Status check_carried(const InferInput& in, const std::vector<BornDim>& dims, size_t i) {
  const Signature& body = in.regions[0];
  const auto at = [&](bool next) {
    TensorType type = body.arguments[i + 2];
    for (IntExpr& e : type.shape)
      e = e.substitute([&](Symbol s) -> std::optional<IntExpr> {
        for (const BornDim& dim : dims)
          if (dim.symbol == s) return next ? dim.second : dim.first;
        return std::nullopt;
      });
    return type;
  };
  const std::string what = "carried value " + std::to_string(i);
  QUARTET_TRY(expect_type(*in.operands[i + 2], at(false), in.dims, what + " at first"));
  return expect_type(body.results[i + 1], at(true), in.dims, what + " yielded");
}

Status check_stacked(const TensorType& row, const Shape& births, const Dims& dims) {
  for (const IntExpr& dim : row.shape)
    for (const IntExpr& birth : births)
      if (dim.contains(birth.as_symbol().value_or(-1)))
        return make_error(Code::invalid_argument, "a stacked value's dim %s changes from iteration to iteration",
                          dims.text(dim).c_str());
  return {};
}

Result<Types> infer_loop(const InferInput& in) {
  QUARTET_TRY(expect_scalar(in.operands[0], DType::i64, in.dims, "the trip count"));
  QUARTET_TRY(expect_scalar(in.operands[1], DType::boolean, in.dims, "the condition"));
  QUARTET_TRY(expect_count(in.regions.size(), 1, "regions"));
  const Signature& body = in.regions[0];
  const size_t carried = in.operands.size() - 2;
  QUARTET_TRY(expect_count(body.arguments.size(), carried + 2, "region arguments"));
  QUARTET_TRY(expect_scalar(&body.arguments[0], DType::i64, in.dims, "the region's iteration"));
  QUARTET_TRY(expect_scalar(&body.arguments[1], DType::boolean, in.dims, "the region's condition"));
  if (body.results.size() < carried + 1)
    return make_error(Code::invalid_argument, "the region yields %zu values, at least %zu wanted", body.results.size(),
                      carried + 1);
  QUARTET_TRY(expect_scalar(&body.results[0], DType::boolean, in.dims, "the yielded condition"));
  Types types;
  const Shape births = born(in);
  const std::vector<TensorType> inside(body.arguments.begin() + 2, body.arguments.end());
  const std::vector<TensorType> next(body.results.begin() + 1,
                                     body.results.begin() + static_cast<std::ptrdiff_t>(carried) + 1);
  const std::vector<BornDim> dims = loop_dims(births, in.operands.subspan(2), inside, next);
  for (size_t i = 0; i < carried; ++i) {
    if (!births.empty()) {
      QUARTET_TRY(check_carried(in, dims, i));
      types.push_back(body.arguments[i + 2]);
      continue;
    }
    const std::string what = "carried value " + std::to_string(i);
    QUARTET_TRY(expect_type(body.arguments[i + 2], *in.operands[i + 2], in.dims, what + " inside"));
    QUARTET_TRY(expect_type(body.results[i + 1], *in.operands[i + 2], in.dims, what + " yielded"));
    types.push_back(*in.operands[i + 2]);
  }
  const bool scans = body.results.size() > carried + 1;
  if (scans != in.attrs.contains(AttrKey::trip))
    return make_error(Code::invalid_argument, "trip is given exactly if there are stacked results");
  for (size_t i = carried + 1; i < body.results.size(); ++i) {
    TensorType stacked = body.results[i];
    QUARTET_TRY(check_stacked(stacked, births, in.dims));
    stacked.shape.insert(stacked.shape.begin(), shape_attr(in, AttrKey::trip)[0]);
    types.push_back(std::move(stacked));
  }
  return types;
}

Result<Types> infer_call(const InferInput& in) {
  if (!in.callee) return make_error(Code::invalid_argument, "no such function");
  QUARTET_TRY(expect_count(in.operands.size(), in.callee->arguments.size(), "operands"));
  for (size_t i = 0; i < in.operands.size(); ++i)
    QUARTET_TRY(expect_type(*in.operands[i], in.callee->arguments[i], in.dims, "operand " + std::to_string(i)));
  return in.callee->results;
}

Result<Types> infer_require(const InferInput& in) {
  QUARTET_TRY(expect_scalar(in.operands[0], DType::boolean, in.dims, "the condition"));
  Types types;
  for (size_t i = 0; i < in.operands.size(); ++i) {
    if (!in.operands[i]) return make_error(Code::invalid_argument, "operand %zu is absent", i);
    if (i > 0) types.push_back(*in.operands[i]);
  }
  return types;
}

}  // namespace

Result<Types> infer_control(const InferInput& in) {
  switch (in.code) {
    case OpCode::if_:
      return infer_if(in);
    case OpCode::loop:
      return infer_loop(in);
    case OpCode::require:
      return infer_require(in);
    case OpCode::bind:
      return infer_bind(in);
    default:
      return infer_call(in);
  }
}

}  // namespace quartet::graph
