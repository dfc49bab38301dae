#include "import/onnx/windows.h"

#include <algorithm>

namespace quartet::import::onnx {

namespace {

Result<std::vector<int64_t>> positive_ints(NodeContext& c, const char* name, size_t count) {
  auto values = c.attr_ints(name).value_or(std::vector<int64_t>(count, 1));
  if (values.size() != count)
    return make_error(Code::invalid_argument, "%s has %zu values for %zu spatial axes", name, values.size(), count);
  for (const int64_t value : values)
    if (value < 1 || value > INT32_MAX)
      return make_error(Code::invalid_argument, "%s: %lld is out of range", name, static_cast<long long>(value));
  return values;
}

// Elements before and after, from `pads` or so that there are ceil(dim / stride) windows.
Status read_padding(NodeContext& c, const graph::Shape& shape, Windows& w) {
  const size_t count = w.sizes.size();
  const std::string mode = c.attr_text("auto_pad", "NOTSET");
  w.low.assign(count, IntExpr(0));
  w.high.assign(count, IntExpr(0));
  if (mode == "VALID") return {};
  if (mode == "NOTSET" || mode.empty()) {
    const auto pads = c.attr_ints("pads").value_or(std::vector<int64_t>(2 * count, 0));
    if (pads.size() != 2 * count)
      return make_error(Code::invalid_argument, "pads has %zu values for %zu spatial axes", pads.size(), count);
    for (size_t i = 0; i < pads.size(); ++i) {
      if (pads[i] < 0 || pads[i] > INT32_MAX)
        return make_error(Code::unsupported, "pads: %lld", static_cast<long long>(pads[i]));
      (i < count ? w.low[i] : w.high[i - count]) = IntExpr(pads[i]);
    }
    return {};
  }
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER")
    return make_error(Code::unsupported, "auto_pad = '%s'", mode.c_str());
  for (size_t i = 0; i < count; ++i) {
    const IntExpr& dim = shape[i + 2];
    const IntExpr stride(w.strides[i]), reach = (w.sizes[i] - IntExpr(1)) * IntExpr(w.dilations[i]) + IntExpr(1);
    const IntExpr needed = (ceil_div(dim, stride) - IntExpr(1)) * stride + reach - dim;
    const IntExpr total = c.simple(max(needed, IntExpr(0)));
    // Each half by itself: that the rest of a division is not negative is not seen of a symbol.
    const IntExpr less = c.simple(floor_div(total, IntExpr(2))),
                  more = c.simple(floor_div(total + IntExpr(1), IntExpr(2)));
    w.low[i] = mode == "SAME_UPPER" ? less : more;
    w.high[i] = mode == "SAME_UPPER" ? more : less;
  }
  return {};
}

// With ceil_mode the last window may reach beyond the padded operand, but must begin before its padding at the end.
void add_last_windows(NodeContext& c, const graph::Shape& shape, Windows& w) {
  for (size_t i = 0; i < w.sizes.size(); ++i) {
    const IntExpr stride(w.strides[i]), reach = (w.sizes[i] - IntExpr(1)) * IntExpr(w.dilations[i]) + IntExpr(1);
    const IntExpr begin = shape[i + 2] + w.low[i], padded = begin + w.high[i];
    const IntExpr count = min(ceil_div(padded - reach, stride) + IntExpr(1), ceil_div(begin, stride));
    w.beyond[i] = c.simple(max((count - IntExpr(1)) * stride + reach - padded, IntExpr(0)));
    w.high[i] = c.simple(w.high[i] + w.beyond[i]);
  }
}

}  // namespace

bool Windows::is_padded() const {
  const auto some = [](const IntExpr& e) { return !e.is(0); };
  return std::any_of(low.begin(), low.end(), some) || std::any_of(high.begin(), high.end(), some);
}

Result<ValueId> Windows::pad(NodeContext& c, ValueId x, ValueId fill) const {
  if (!is_padded()) return x;
  graph::Shape before = {IntExpr(0), IntExpr(0)}, after = before;
  before.insert(before.end(), low.begin(), low.end());
  after.insert(after.end(), high.begin(), high.end());
  return c.op(OpCode::pad, {x, fill}, {{AttrKey::low, before}, {AttrKey::high, after}});
}

Result<Windows> read_windows(NodeContext& c, ValueId x, graph::Shape sizes) {
  const graph::Shape shape = c.type(x).shape;
  Windows w;
  w.sizes = std::move(sizes);
  const size_t count = w.sizes.size();
  if (shape.size() != count + 2)
    return make_error(Code::invalid_argument, "x has rank %zu for %zu spatial axes", shape.size(), count);
  if (const auto stated = c.attr_ints("kernel_shape"))
    if (graph::Shape(stated->begin(), stated->end()) != w.sizes)
      return Status(Code::invalid_argument, "kernel_shape is not the shape of the filters");
  QUARTET_ASSIGN(w.strides, positive_ints(c, "strides", count));
  QUARTET_ASSIGN(w.dilations, positive_ints(c, "dilations", count));
  QUARTET_TRY(read_padding(c, shape, w));
  w.beyond.assign(count, IntExpr(0));
  if (c.attr_int("ceil_mode", 0) != 0) add_last_windows(c, shape, w);
  return w;
}

}  // namespace quartet::import::onnx
