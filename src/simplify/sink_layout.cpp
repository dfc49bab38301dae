// Convolutions run with channels last, between transposes. An op that reads such a transpose is computed with channels
// last, too, and transposed after: so the transposes sink until they meet the next convolution's and are gone.
#include <algorithm>
#include <numeric>

#include "simplify/rules.h"

namespace quartet::simplify {
namespace {

using Perm = std::vector<int64_t>;

// The transpose from channels last to channels first: axis c >= 2 goes to place 1, the axes between move up.
bool is_layout(const Perm& perm) {
  if (perm.size() < 3 || perm[0] != 0 || perm[1] < 2) return false;
  const auto channel = static_cast<size_t>(perm[1]);
  for (size_t i = 2; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i <= channel ? i - 1 : i)) return false;
  return true;
}

Perm inverse(const Perm& perm) {
  Perm back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return back;
}

// One op at a time; `perm` is the layout its operands come in.
class Sink {
 public:
  Sink(Rewriter& r, const Candidate& c) : r_(r), c_(c) {}

  Replacement run() {
    if (!find_layout()) return keep();
    switch (graph::op_info(c_.op.code).op_class) {
      case graph::OpClass::elementwise:
        return elementwise();
      case graph::OpClass::reduction:
        return reduction();
      default:
        break;
    }
    switch (c_.op.code) {
      case OpCode::concat:
        return concat();
      case OpCode::pad:
        return alone({AttrKey::low, AttrKey::high});
      case OpCode::slice:
        return alone({AttrKey::starts, AttrKey::limits});
      case OpCode::window:
        return window();
      case OpCode::gather:
        return gather();
      default:
        return keep();
    }
  }

 private:
  // The value before the layout's transpose, if there is one.
  std::optional<ValueId> source(ValueId id) const {
    const Op* transpose = r_.definition(id, OpCode::transpose);
    if (!transpose || *graph::attr_ints(*transpose, AttrKey::perm) != perm_) return std::nullopt;
    return transpose->operands[0];
  }

  bool find_layout() {
    for (const ValueId id : c_.op.operands) {
      const Op* transpose = id == graph::kNoValue ? nullptr : r_.definition(id, OpCode::transpose);
      if (!transpose) continue;
      const Perm& perm = *graph::attr_ints(*transpose, AttrKey::perm);
      if (!is_layout(perm)) continue;
      perm_ = perm;
      return true;
    }
    return false;
  }

  int64_t moved(int64_t axis) const { return perm_[static_cast<size_t>(axis)]; }

  Result<ValueId> transposed(ValueId id, Perm perm) {
    if (std::is_sorted(perm.begin(), perm.end())) return id;
    return r_.one(OpCode::transpose, {id}, {{AttrKey::perm, std::move(perm)}});
  }

  // Whether an operand gets into the inner layout without a transpose that stays. Where the layout is its own inverse,
  // as at rank 3, a transpose that stays would sink again, for ever.
  bool comes_along(ValueId id) const {
    const TensorType& type = r_.type(id);
    if (source(id) || r_.constant(id) || type.rank() < 2) return true;
    if (inverse(perm_) != perm_) return true;
    const auto wide = std::count_if(type.shape.begin(), type.shape.end(), [](const IntExpr& e) { return !e.is(1); });
    return wide <= 1;
  }

  bool all_come_along() const {
    return std::all_of(c_.op.operands.begin(), c_.op.operands.end(), [&](ValueId id) { return comes_along(id); });
  }

  // A whole operand of rank |perm| in the inner layout.
  Result<ValueId> inner(ValueId id) {
    if (const auto before = source(id)) return *before;
    const Perm back = inverse(perm_);
    const Shape& outer = r_.type(id).shape;
    Shape shape;
    int64_t last = -1;
    bool in_order = true;
    for (const int64_t axis : back) {
      shape.push_back(outer[static_cast<size_t>(axis)]);
      if (shape.back().is(1)) continue;
      in_order = in_order && axis > last;
      last = axis;
    }
    // Only axes of one element change places.
    if (in_order) return r_.one(OpCode::reshape, {id}, {{AttrKey::shape, std::move(shape)}});
    return transposed(id, back);
  }

  // An operand that broadcasts to rank |perm|.
  Result<ValueId> inner_broadcast(ValueId id) {
    const TensorType type = r_.type(id);
    if (type.elements().is(1)) {
      if (type.rank() == 0) return id;
      return r_.one(OpCode::reshape, {id}, {{AttrKey::shape, Shape{}}});
    }
    if (type.rank() == perm_.size()) return inner(id);
    Shape shape(perm_.size() - type.rank(), IntExpr(1));
    shape.insert(shape.end(), type.shape.begin(), type.shape.end());
    QUARTET_ASSIGN(const ValueId whole, r_.one(OpCode::reshape, {id}, {{AttrKey::shape, std::move(shape)}}));
    return inner(whole);
  }

  Replacement elementwise() {
    // One element has no layout, and its operands would all become scalars.
    if (c_.types[0].rank() != perm_.size() || c_.types[0].elements().is(1) || !all_come_along()) return keep();
    std::vector<ValueId> operands;
    for (const ValueId id : c_.op.operands) {
      QUARTET_ASSIGN(const ValueId operand, inner_broadcast(id));
      operands.push_back(operand);
    }
    QUARTET_ASSIGN(const ValueId result, r_.one(c_.op.code, std::move(operands), c_.op.attrs));
    return replace_by(transposed(result, perm_));
  }

  // The first operand is the one that is laid out; dims and steps are one per axis.
  Replacement alone(std::initializer_list<AttrKey> per_axis) {
    const auto before = source(c_.op.operands[0]);
    if (!before) return keep();
    Attrs attrs = c_.op.attrs;
    for (const AttrKey key : per_axis) {
      const Shape& given = *graph::attr_shape(c_.op, key);
      Shape shape(given.size());
      for (size_t i = 0; i < given.size(); ++i) shape[static_cast<size_t>(perm_[i])] = given[i];
      attrs[key] = std::move(shape);
    }
    if (const std::vector<int64_t>* given = graph::attr_ints(c_.op, AttrKey::steps)) {
      std::vector<int64_t> steps(given->size());
      for (size_t i = 0; i < steps.size(); ++i) steps[static_cast<size_t>(perm_[i])] = (*given)[i];
      attrs[AttrKey::steps] = std::move(steps);
    }
    std::vector<ValueId> operands = c_.op.operands;
    operands[0] = *before;
    QUARTET_ASSIGN(const ValueId result, r_.one(c_.op.code, std::move(operands), std::move(attrs)));
    return replace_by(transposed(result, perm_));
  }

  Replacement concat() {
    if (!all_come_along()) return keep();
    std::vector<ValueId> operands;
    for (const ValueId id : c_.op.operands) {
      QUARTET_ASSIGN(const ValueId operand, inner(id));
      operands.push_back(operand);
    }
    Attrs attrs = c_.op.attrs;
    attrs[AttrKey::axis] = moved(graph::attr_int(c_.op, AttrKey::axis));
    QUARTET_ASSIGN(const ValueId result, r_.one(OpCode::concat, std::move(operands), std::move(attrs)));
    return replace_by(transposed(result, perm_));
  }

  // The axes in the inner layout, if they stay in order: the places of a window and the order of a reduction follow it.
  std::optional<std::vector<int64_t>> moved_axes(const std::vector<int64_t>& axes) const {
    std::vector<int64_t> inner;
    for (const int64_t axis : axes) inner.push_back(moved(axis));
    if (!std::is_sorted(inner.begin(), inner.end())) return std::nullopt;
    return inner;
  }

  Replacement window() {
    const auto before = source(c_.op.operands[0]);
    const auto axes = moved_axes(*graph::attr_ints(c_.op, AttrKey::axes));
    if (!before || !axes) return keep();
    Attrs attrs = c_.op.attrs;
    attrs[AttrKey::axes] = *axes;
    QUARTET_ASSIGN(const ValueId result, r_.one(OpCode::window, {*before}, std::move(attrs)));
    Perm perm = perm_;
    while (perm.size() < c_.types[0].rank()) perm.push_back(static_cast<int64_t>(perm.size()));
    return replace_by(transposed(result, std::move(perm)));
  }

  Replacement gather() {
    const auto before = source(c_.op.operands[0]);
    if (!before || r_.type(c_.op.operands[1]).rank() != 1) return keep();
    Attrs attrs = c_.op.attrs;
    attrs[AttrKey::axis] = moved(graph::attr_int(c_.op, AttrKey::axis));
    QUARTET_ASSIGN(const ValueId result, r_.one(OpCode::gather, {*before, c_.op.operands[1]}, std::move(attrs)));
    return replace_by(transposed(result, perm_));
  }

  Replacement reduction() {
    const auto before = source(c_.op.operands[0]);
    const std::vector<int64_t>* given = graph::attr_ints(c_.op, AttrKey::axes);
    const std::vector<int64_t> reduced = given ? *given : std::vector<int64_t>{graph::attr_int(c_.op, AttrKey::axis)};
    const auto axes = moved_axes(reduced);
    if (!before || !axes) return keep();
    Attrs attrs = c_.op.attrs;
    if (given)
      attrs[AttrKey::axes] = *axes;
    else
      attrs[AttrKey::axis] = axes->front();
    QUARTET_ASSIGN(const std::vector<ValueId> inner, r_.emit(c_.op.code, {*before}, std::move(attrs)));
    const Perm perm = c_.types[0].rank() == perm_.size() ? perm_ : remaining(*axes);
    std::vector<ValueId> results;
    for (const ValueId id : inner) {
      QUARTET_ASSIGN(const ValueId result, transposed(id, perm));
      results.push_back(result);
    }
    return std::optional(std::move(results));
  }

  // The layout's transpose of the axes that a reduction leaves.
  Perm remaining(const std::vector<int64_t>& gone) const {
    Perm perm;
    for (const int64_t axis : perm_) {
      if (std::find(gone.begin(), gone.end(), axis) != gone.end()) continue;
      perm.push_back(axis - std::count_if(gone.begin(), gone.end(), [&](int64_t g) { return g < axis; }));
    }
    return perm;
  }

  Rewriter& r_;
  const Candidate& c_;
  Perm perm_;
};

}  // namespace

Replacement sink_layout(Rewriter& r, const Candidate& c) { return Sink(r, c).run(); }

}  // namespace quartet::simplify
