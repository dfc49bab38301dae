// Convolutions: padding becomes a pad op, the rest is the graph's conv.
#include <algorithm>
#include <numeric>

#include "import/onnx/quantize.h"
#include "import/onnx/windows.h"

namespace quartet::import::onnx {

namespace {

// Adds the bias of input 2, one number a filter, along axis 1.
Result<ValueId> with_bias(NodeContext& c, ValueId y, size_t input) {
  if (!c.has(input)) return y;
  QUARTET_ASSIGN(ValueId bias, c.in(input));
  const size_t rank = c.type(y).rank();
  graph::Shape shape(rank, IntExpr(1));
  shape[1] = c.type(y).shape[1];
  QUARTET_ASSIGN(bias, c.reshape(bias, std::move(shape)));
  return c.op(OpCode::add, {y, bias});
}

Status check_ranks(NodeContext& c, ValueId x, ValueId w) {
  const size_t rank = c.type(x).rank();
  if (rank < 3 || c.type(w).rank() != rank)
    return make_error(Code::invalid_argument, "x has rank %zu, w rank %zu; wanted the same rank, at least 3", rank,
                      c.type(w).rank());
  return {};
}

// x and w are numbers of one type.
Result<ValueId> convolution(NodeContext& c, ValueId x, ValueId w) {
  QUARTET_TRY(check_ranks(c, x, w));
  const graph::Shape filters = c.type(w).shape;
  QUARTET_ASSIGN(const Windows windows, read_windows(c, x, graph::Shape(filters.begin() + 2, filters.end())));
  QUARTET_ASSIGN(const ValueId zero, c.scalar(c.type(x).dtype, 0.0));
  QUARTET_ASSIGN(const ValueId padded, windows.pad(c, x, zero));
  return c.op(OpCode::conv, {padded, w},
              {{AttrKey::strides, windows.strides},
               {AttrKey::dilations, windows.dilations},
               {AttrKey::groups, c.attr_int("group", 1)}});
}

Status conv(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(const ValueId w, c.in(1));
  QUARTET_ASSIGN(const ValueId y, convolution(c, x, w));
  return c.give(0, with_bias(c, y, 2));
}

// The operand as i32 less its zero point, which is one number or one for each of axis `axis`.
Result<ValueId> centred(NodeContext& c, size_t input, size_t point, size_t axis) {
  QUARTET_ASSIGN(const ValueId x, c.in(input));
  QUARTET_ASSIGN(const ValueId wide, c.cast(x, DType::i32));
  if (!c.has(point)) return wide;
  QUARTET_ASSIGN(ValueId zero, c.in(point));
  QUARTET_ASSIGN(zero, c.cast(zero, DType::i32));
  graph::Shape shape;
  if (!c.type(zero).elements().is(1)) {
    shape.assign(c.type(x).rank(), IntExpr(1));
    shape[axis] = c.type(zero).elements();
  }
  QUARTET_ASSIGN(zero, c.reshape(zero, std::move(shape)));
  return c.op(OpCode::sub, {wide, zero});
}

Status conv_integer(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, centred(c, 0, 2, 1));
  QUARTET_ASSIGN(const ValueId w, centred(c, 1, 3, 0));
  return c.give(0, convolution(c, x, w));
}

// A number, or one a filter, as it broadcasts to [n, filter, ...].
Expr per_filter(const Expr& p, size_t rank) { return p.type().elements().is(1) ? p.reshape({}) : p.along(1, rank); }

// The convolution in i32 with its bias, scaled in f32 and quantised.
Status qlinear_conv(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, centred(c, 0, 2, 1));
  QUARTET_ASSIGN(const ValueId w, centred(c, 3, 5, 0));
  QUARTET_ASSIGN(ValueId product, convolution(c, x, w));
  QUARTET_ASSIGN(product, with_bias(c, product, 8));
  Emit e(c);
  const Expr y(e, product);
  const auto scale = [&](size_t i) { return per_filter(e.in(i).cast(DType::f32), y.rank()); };
  const Expr factor = scale(1) * scale(4) / scale(6);
  return e.give(0, quantized(y.cast(DType::f32) * factor, e.in(7).reshape({})));
}

// ---- Transposed convolution, by the phases of its stride ----
//
// Output o is the sum over places k and inputs i with i * stride + k * dilation = o. Outputs of one phase, o mod
// stride, use every so-manieth place, and are a plain convolution with those places in reverse order.

struct Phase {
  std::vector<int64_t> places;  // descending, a step apart
  int64_t first = 0;            // input of place places[0], less the number of the output in its phase
};

struct Axis {
  int64_t stride = 1, spread = 1;  // between the inputs of a phase's places
  std::vector<Phase> phases;
  IntExpr outputs;        // of each phase
  IntExpr start, extent;  // the part of the phases, put together, that is the result
  IntExpr before;         // zeros before that part
};

std::vector<Phase> phases_of(int64_t stride, int64_t dilation, int64_t places) {
  std::vector<Phase> phases(static_cast<size_t>(stride));
  for (int64_t k = places; k-- > 0;) {
    Phase& phase = phases[static_cast<size_t>(k * dilation % stride)];
    if (phase.places.empty()) phase.first = -(k * dilation / stride);
    phase.places.push_back(k);
  }
  return phases;
}

// w [c, m / groups, k...] as filters [m, c / groups, k...].
Result<ValueId> swapped_channels(NodeContext& c, ValueId w, int64_t groups) {
  const graph::Shape from = c.type(w).shape;
  const auto channels = from[0].constant(), filters = from[1].constant();
  if (!channels || !filters) return Status(Code::unsupported, "filters of unknown shape");
  if (groups < 1 || *channels % groups != 0)
    return make_error(Code::invalid_argument, "%lld channels in %lld groups", static_cast<long long>(*channels),
                      static_cast<long long>(groups));
  graph::Shape apart = {IntExpr(groups), IntExpr(*channels / groups)};
  apart.insert(apart.end(), from.begin() + 1, from.end());
  QUARTET_ASSIGN(const ValueId split, c.reshape(w, apart));
  std::vector<int64_t> perm(apart.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[1], perm[2]);
  QUARTET_ASSIGN(const ValueId swapped, c.op(OpCode::transpose, {split}, {{AttrKey::perm, perm}}));
  graph::Shape shape = from;
  shape[0] = IntExpr(*filters * groups);
  shape[1] = IntExpr(*channels / groups);
  return c.reshape(swapped, std::move(shape));
}

class Transposed {
 public:
  Transposed(NodeContext& c, ValueId x, ValueId w, int64_t groups) : c_(c), x_(x), w_(w), groups_(groups) {}

  Status read_axes() {
    const size_t spatial = c_.type(x_).rank() - 2;
    const graph::Shape& filters = c_.type(w_).shape;
    const auto ints = [&](const char* name, int64_t otherwise) {
      return c_.attr_ints(name).value_or(std::vector<int64_t>(spatial, otherwise));
    };
    const auto strides = ints("strides", 1), dilations = ints("dilations", 1), more = ints("output_padding", 0);
    const auto pads = c_.attr_ints("pads").value_or(std::vector<int64_t>(2 * spatial, 0));
    const auto wanted = c_.attr_ints("output_shape");
    for (const auto* list : {&strides, &dilations, &more})
      if (list->size() != spatial)
        return Status(Code::invalid_argument, "strides, dilations or output_padding of another rank");
    if (pads.size() != 2 * spatial) return Status(Code::invalid_argument, "pads of another rank");
    for (size_t i = 0; i < spatial; ++i) {
      const auto places = filters[i + 2].constant();
      if (!places || *places < 1) return Status(Code::unsupported, "filters of unknown shape");
      if (strides[i] < 1 || dilations[i] < 1 || strides[i] > 1024 || more[i] < 0 || more[i] > INT32_MAX ||
          *places > (1 << 20) || dilations[i] > (1 << 20))
        return Status(Code::invalid_argument, "a stride, dilation or output_padding out of range");
      Axis axis;
      axis.stride = strides[i];
      axis.spread = dilations[i] / std::gcd(dilations[i], strides[i]);
      axis.phases = phases_of(strides[i], dilations[i], *places);
      const IntExpr full = (c_.type(x_).shape[i + 2] - IntExpr(1)) * IntExpr(strides[i]) +
                           IntExpr((*places - 1) * dilations[i] + 1 + more[i]);
      QUARTET_TRY(place(axis, full, i, spatial, pads, wanted));
      axes_.push_back(std::move(axis));
    }
    return {};
  }

  // The whole result, without bias.
  Result<ValueId> run() {
    std::vector<size_t> chosen(axes_.size(), 0);
    QUARTET_ASSIGN(const ValueId together, interleaved(chosen, 0));
    return cut(together);
  }

 private:
  // Which part of the outputs, `full` of them without padding, is the result.
  Status place(Axis& axis, const IntExpr& full, size_t i, size_t spatial, const std::vector<int64_t>& pads,
               const std::optional<std::vector<int64_t>>& wanted) {
    IntExpr low(pads[i]), high(pads[spatial + i]);
    std::optional<IntExpr> given;
    const std::string mode = c_.attr_text("auto_pad", "NOTSET");
    const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (wanted || same) {
      IntExpr extent = c_.type(x_).shape[i + 2] * IntExpr(axis.stride);
      if (wanted) {
        if (wanted->size() < spatial) return Status(Code::invalid_argument, "output_shape of another rank");
        extent = IntExpr((*wanted)[wanted->size() - spatial + i]);
      }
      const IntExpr total = full - extent;
      const IntExpr half = floor_div(total, IntExpr(2));
      const bool upper = mode == "SAME_UPPER";
      low = c_.simple(upper ? half : total - half);
      given = extent;
    } else if (mode == "VALID") {
      low = high = IntExpr(0);
    } else if (mode != "NOTSET") {
      return make_error(Code::unsupported, "auto_pad = '%s'", mode.c_str());
    }
    const IntExpr extent = c_.simple(given ? *given : full - low - high);
    if (extent.is_constant() && *extent.constant() < 0)
      return Status(Code::invalid_argument, "the padding is larger than the result");
    // Less padding than nothing is zeros around the outputs; those after them the phases give when they are longer.
    const IntExpr whole = c_.simple(max(extent, IntExpr(0)));
    axis.before = c_.simple(min(max(IntExpr(0) - low, IntExpr(0)), whole));
    axis.start = c_.simple(max(low, IntExpr(0)));
    axis.extent = c_.simple(whole - axis.before);
    axis.outputs = c_.simple(ceil_div(axis.start + axis.extent, IntExpr(axis.stride)));
    return {};
  }

  // Outputs of the chosen phases, put side by side from axis `axis` on.
  Result<ValueId> interleaved(std::vector<size_t>& chosen, size_t axis) {
    if (axis == axes_.size()) return phase(chosen);
    const Axis& a = axes_[axis];
    std::vector<ValueId> parts;
    for (size_t p = 0; p < a.phases.size(); ++p) {
      chosen[axis] = p;
      QUARTET_ASSIGN(const ValueId part, interleaved(chosen, axis + 1));
      parts.push_back(part);
    }
    if (parts.size() == 1) return parts[0];
    graph::Shape shape = c_.type(parts[0]).shape;
    const auto at = static_cast<std::ptrdiff_t>(axis + 3);
    shape.insert(shape.begin() + at, IntExpr(1));
    for (ValueId& part : parts) {
      QUARTET_ASSIGN(part, c_.reshape(part, shape));
    }
    QUARTET_ASSIGN(const ValueId stacked, c_.op(OpCode::concat, parts, {{AttrKey::axis, int64_t{at}}}));
    shape.erase(shape.begin() + at);
    shape[axis + 2] = c_.simple(shape[axis + 2] * IntExpr(a.stride));
    return c_.reshape(stacked, std::move(shape));
  }

  // What the windows of a phase need, one for each of its outputs: x up to `limit`, zeros before and after it.
  void range_of(const Axis& axis, const Phase& phase, const IntExpr& dim, IntExpr& low, IntExpr& limit, IntExpr& high) {
    const auto reach = static_cast<int64_t>(phase.places.size() - 1) * axis.spread;
    const IntExpr whole = axis.outputs + IntExpr(reach), after = whole + IntExpr(phase.first);
    low = c_.simple(min(IntExpr(-phase.first), whole));
    limit = c_.simple(max(min(after, dim), IntExpr(0)));
    high = c_.simple(max(after - dim, IntExpr(0)));
  }

  Result<ValueId> phase(const std::vector<size_t>& chosen) {
    const graph::Shape x = c_.type(x_).shape, w = c_.type(w_).shape;
    graph::Shape starts(x.size(), IntExpr(0)), limits = x, low(x.size(), IntExpr(0)), high = low;
    graph::Shape w_starts(w.size(), IntExpr(0)), w_limits = w, result = x;
    std::vector<int64_t> w_steps(w.size(), 1), dilations;
    result[1] = w[0];
    bool empty = false;
    for (size_t i = 0; i < axes_.size(); ++i) {
      const Phase& part = axes_[i].phases[chosen[i]];
      result[i + 2] = axes_[i].outputs;
      empty = empty || part.places.empty();
      if (empty) continue;
      range_of(axes_[i], part, x[i + 2], low[i + 2], limits[i + 2], high[i + 2]);
      const int64_t step = part.places.size() > 1 ? part.places[1] - part.places[0] : -1;
      w_starts[i + 2] = IntExpr(part.places.front());
      w_limits[i + 2] = IntExpr(part.places.back() - 1);
      w_steps[i + 2] = step;
      dilations.push_back(axes_[i].spread);
    }
    QUARTET_ASSIGN(const ValueId zero, c_.scalar(c_.type(x_).dtype, 0.0));
    if (empty) return c_.op(OpCode::expand, {zero}, {{AttrKey::shape, result}});
    QUARTET_ASSIGN(const ValueId part,
                   c_.op(OpCode::slice, {x_}, {{AttrKey::starts, starts}, {AttrKey::limits, limits}}));
    QUARTET_ASSIGN(const ValueId padded,
                   c_.op(OpCode::pad, {part, zero}, {{AttrKey::low, low}, {AttrKey::high, high}}));
    QUARTET_ASSIGN(const ValueId filters,
                   c_.op(OpCode::slice, {w_},
                         {{AttrKey::starts, w_starts}, {AttrKey::limits, w_limits}, {AttrKey::steps, w_steps}}));
    QUARTET_ASSIGN(const ValueId y, c_.op(OpCode::conv, {padded, filters},
                                          {{AttrKey::dilations, dilations}, {AttrKey::groups, groups_}}));
    return counted(y, std::move(result));
  }

  // Where a symbol hides that there are as many outputs as wanted, they are counted when running.
  Result<ValueId> counted(ValueId y, graph::Shape shape) {
    shape[1] = c_.type(y).shape[1];
    return c_.assumed(y, std::move(shape), "a phase of the result");
  }

  Result<ValueId> cut(ValueId y) {
    const graph::Shape shape = c_.type(y).shape;
    graph::Shape starts(shape.size(), IntExpr(0)), limits = shape, before = starts, result = shape;
    for (size_t i = 0; i < axes_.size(); ++i) {
      starts[i + 2] = axes_[i].start;
      limits[i + 2] = c_.simple(min(axes_[i].start + axes_[i].extent, shape[i + 2]));
      before[i + 2] = axes_[i].before;
      result[i + 2] = axes_[i].extent;
    }
    QUARTET_ASSIGN(ValueId part, c_.op(OpCode::slice, {y}, {{AttrKey::starts, starts}, {AttrKey::limits, limits}}));
    QUARTET_ASSIGN(part, counted(part, std::move(result)));
    if (std::all_of(before.begin(), before.end(), [](const IntExpr& e) { return e.is(0); })) return part;
    QUARTET_ASSIGN(const ValueId zero, c_.scalar(c_.type(y).dtype, 0.0));
    const graph::Shape after(shape.size(), IntExpr(0));
    return c_.op(OpCode::pad, {part, zero}, {{AttrKey::low, before}, {AttrKey::high, after}});
  }

  NodeContext& c_;
  ValueId x_, w_;
  int64_t groups_;
  std::vector<Axis> axes_;
};

Status conv_transpose(NodeContext& c) {
  QUARTET_ASSIGN(const ValueId x, c.in(0));
  QUARTET_ASSIGN(ValueId w, c.in(1));
  QUARTET_TRY(check_ranks(c, x, w));
  const int64_t groups = c.attr_int("group", 1);
  QUARTET_ASSIGN(w, swapped_channels(c, w, groups));
  Transposed transposed(c, x, w, groups);
  QUARTET_TRY(transposed.read_axes());
  QUARTET_ASSIGN(const ValueId y, transposed.run());
  return c.give(0, with_bias(c, y, 2));
}

constexpr OpRow kRows[] = {
    {"Conv", 1, INT64_MAX, conv},
    {"ConvInteger", 10, INT64_MAX, conv_integer},
    {"ConvTranspose", 1, INT64_MAX, conv_transpose},
    {"QLinearConv", 10, INT64_MAX, qlinear_conv},
};

}  // namespace

std::span<const OpRow> conv_ops() { return kRows; }

}  // namespace quartet::import::onnx
