// Type rules of if, loop, call and require.
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

Result<Types> infer_if(const InferInput& in) {
  QUARTET_TRY(expect_scalar(in.operands[0], DType::boolean, in.dims, "the condition"));
  QUARTET_TRY(expect_count(in.regions.size(), 2, "regions"));
  const Signature &yes = in.regions[0], &no = in.regions[1];
  QUARTET_TRY(expect_count(yes.arguments.size() + no.arguments.size(), 0, "region arguments"));
  QUARTET_TRY(expect_count(no.results.size(), yes.results.size(), "results of else"));
  for (size_t i = 0; i < yes.results.size(); ++i)
    QUARTET_TRY(expect_type(no.results[i], yes.results[i], in.dims, "result " + std::to_string(i) + " of else"));
  return yes.results;
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
  for (size_t i = 0; i < carried; ++i) {
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
    default:
      return infer_call(in);
  }
}

}  // namespace quartet::graph
