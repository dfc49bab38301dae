// Random ifs, loops and dims of the run.
#include "reference/generator_class.h"

namespace quartet::reference {

Result<ValueId> Generator::condition() {
  std::vector<ValueId> fitting{flag_};
  for (const Known& value : known_)
    if (value.exact && type(value).rank() == 0 && type(value).dtype == DType::boolean) fitting.push_back(value.id);
  if (random_.chance(2)) return random_.pick(fitting);
  QUARTET_ASSIGN(const ValueId limit, builder_.scalar(DType::i64, random_.below(6)));
  return builder_.one(OpCode::less, {limit, count_});
}

std::vector<Generator::Known> Generator::exact_values(int64_t most_elements) {
  std::vector<Known> fitting;
  for (const Known& value : known_)
    if (value.exact && count_of(type(value).shape) <= most_elements) fitting.push_back(value);
  return fitting;
}

Result<std::vector<ValueId>> Generator::fill_region(const std::vector<TensorType>& types,
                                                    const std::vector<ValueId>& otherwise) {
  const int64_t ops = 1 + random_.below(5);
  for (int64_t i = 0; i < ops; ++i) QUARTET_TRY(grow());
  std::vector<ValueId> picked;
  for (size_t i = 0; i < types.size(); ++i) {
    std::vector<Known> fitting;
    for (const Known& value : known_)
      if (value.exact && type(value) == types[i]) fitting.push_back(value);
    ValueId id = fitting.empty() ? otherwise[i] : random_.chance(2) ? fitting.back().id : random_.pick(fitting).id;
    if (types[i].dtype != DType::boolean && random_.chance(3)) {
      QUARTET_ASSIGN(id, builder_.one(OpCode::abs, {id}));
    }
    picked.push_back(id);
  }
  return picked;
}

Status Generator::control() {
  switch (random_.below(7)) {
    case 0:
    case 1:
      return branch();
    case 2:
      return branch_of_dims();
    case 3:
      return lengthen();
    case 4:
      return number_as_dim();
    default:
      return repeat();
  }
}

Status Generator::branch() {
  const std::vector<Known> values = exact_values(kMaxElements);
  std::vector<TensorType> types;
  std::vector<ValueId> otherwise;
  for (int64_t results = 1 + random_.below(2); results > 0; --results) {
    otherwise.push_back(random_.pick(values).id);
    types.push_back(builder_.type(otherwise.back()));
  }
  QUARTET_ASSIGN(const ValueId decider, condition());
  const size_t outside = known_.size();
  ++depth_;
  graph::OpExtras extras;
  for (int side = 0; side < 2; ++side) {
    QUARTET_ASSIGN(const int32_t region, builder_.region_begin());
    QUARTET_ASSIGN(const std::vector<ValueId> results, fill_region(types, otherwise));
    QUARTET_TRY(builder_.region_end(results));
    known_.resize(outside);
    extras.regions.push_back(region);
  }
  --depth_;
  QUARTET_ASSIGN(const std::vector<ValueId> results, builder_.op(OpCode::if_, {decider}, {}, std::move(extras)));
  for (const ValueId id : results) known_.push_back({id});
  ++made_;
  return {};
}

Result<IntExpr> Generator::new_dim(int64_t value, std::optional<IntExpr> upper) {
  graph::DimSymbol symbol;
  symbol.name = "t" + std::to_string(run_extents_.size());
  symbol.kind = graph::DimSymbol::Kind::run;
  symbol.upper = std::move(upper);
  QUARTET_ASSIGN(const IntExpr born, builder_.declare_symbol(std::move(symbol)));
  run_extents_[*born.as_symbol()] = value;
  return born;
}

bool Generator::has_symbol_from(const Shape& shape, Symbol first) {
  return std::any_of(shape.begin(), shape.end(),
                     [&](const IntExpr& e) { return e.contains_any([&](Symbol s) { return s >= first; }); });
}

Result<ValueId> Generator::lengthened(ValueId id) {
  const TensorType t = builder_.type(id);
  if (random_.chance(2)) return builder_.one(OpCode::concat, {id, id}, {{AttrKey::axis, int64_t{0}}});
  QUARTET_ASSIGN(const ValueId fill, random_constant({t.dtype, {}}));
  Shape low(t.rank(), IntExpr(0)), high = low;
  low[0] = random_.below(3);
  high[0] = 1 + random_.below(3);
  return builder_.one(OpCode::pad, {id, fill}, {{AttrKey::low, low}, {AttrKey::high, high}});
}

Status Generator::branch_of_dims() {
  std::vector<Known> fitting;
  for (const Known& value : exact_values(kMaxElements / 2))
    if (type(value).rank() > 0) fitting.push_back(value);
  if (fitting.empty()) return {};
  const Known x = random_.pick(fitting);
  const IntExpr dim = type(x).shape[0];
  const size_t outside = known_.size();
  ++depth_;
  graph::OpExtras extras;
  IntExpr sides[2];
  const int64_t longer = random_.below(2);
  for (int64_t side = 0; side < 2; ++side) {
    QUARTET_ASSIGN(const int32_t region, builder_.region_begin());
    QUARTET_ASSIGN(std::vector<ValueId> results, fill_region({type(x)}, {x.id}));
    if (side == longer) {
      QUARTET_ASSIGN(results[0], lengthened(results[0]));
    }
    sides[side] = builder_.type(results[0]).shape[0];
    QUARTET_TRY(builder_.region_end(results));
    known_.resize(outside);
    extras.regions.push_back(region);
  }
  --depth_;
  Attrs attrs;
  if (!builder_.dims().same(sides[0], sides[1])) {
    const std::optional<IntExpr> bound = sides[0].is_constant() && sides[1].is_constant() && random_.chance(2)
                                             ? std::optional(max(sides[0], sides[1]))
                                             : std::nullopt;
    QUARTET_ASSIGN(const IntExpr born, new_dim(value_of(sides[flag_value_ != 0 ? 0 : 1]), bound));
    attrs = {{AttrKey::births, Shape{born}}, {AttrKey::places, std::vector<int64_t>{0, 0}}};
  }
  QUARTET_ASSIGN(const std::vector<ValueId> results,
                 builder_.op(OpCode::if_, {flag_}, std::move(attrs), std::move(extras)));
  known_.push_back({results[0]});
  ++made_;
  return {};
}

Status Generator::lengthen() {
  QUARTET_ASSIGN(const Trip trip, random_trip());
  std::vector<Known> fitting;
  for (const Known& value : exact_values(1024))
    if (type(value).rank() > 0 && value_of(type(value).shape[0]) > 0) fitting.push_back(value);
  if (fitting.empty()) return {};
  const Known x = random_.pick(fitting);
  const int64_t more = 1 + random_.below(3);
  const int64_t first = value_of(type(x).shape[0]), last = first + more * trip.most;
  if (count_of(type(x).shape) / first * last > kMaxElements) return {};
  const size_t outside = known_.size();
  QUARTET_ASSIGN(const IntExpr born, new_dim(last, std::nullopt));
  TensorType inside = type(x);
  inside.shape[0] = born;
  ++depth_;
  graph::OpExtras extras;
  QUARTET_ASSIGN(const int32_t region, builder_.region_begin());
  extras.regions.push_back(region);
  QUARTET_ASSIGN(const ValueId iteration, builder_.parameter({DType::i64, {}}));
  QUARTET_ASSIGN(const ValueId running, builder_.parameter({DType::boolean, {}}));
  QUARTET_ASSIGN(const ValueId parameter, builder_.parameter(inside));
  known_.insert(known_.end(), {{iteration}, {running}, {parameter}});
  QUARTET_ASSIGN(std::vector<ValueId> yields, fill_region({inside}, {parameter}));
  TensorType rows = inside;
  rows.shape[0] = more;
  QUARTET_ASSIGN(const ValueId fill, random_constant({inside.dtype, {}}));
  QUARTET_ASSIGN(const ValueId added, builder_.one(OpCode::expand, {fill}, {{AttrKey::shape, rows.shape}}));
  QUARTET_ASSIGN(yields[0], builder_.one(OpCode::concat, {yields[0], added}, {{AttrKey::axis, int64_t{0}}}));
  yields.insert(yields.begin(), running);
  QUARTET_TRY(builder_.region_end(yields));
  known_.resize(outside);
  --depth_;
  QUARTET_ASSIGN(const std::vector<ValueId> results, builder_.op(OpCode::loop, {trip.id, graph::kNoValue, x.id},
                                                                 {{AttrKey::births, Shape{born}}}, std::move(extras)));
  known_.push_back({results[0]});
  ++made_;
  return {};
}

Status Generator::number_as_dim() {
  QUARTET_ASSIGN(const ValueId zero, builder_.scalar(DType::i64, int64_t{0}));
  QUARTET_ASSIGN(const ValueId count, builder_.one(OpCode::max, {count_, zero}));
  QUARTET_ASSIGN(const IntExpr born, new_dim(std::max<int64_t>(count_value_, 0),
                                             random_.chance(2) ? std::optional(IntExpr(9)) : std::nullopt));
  QUARTET_TRY(
      builder_.op(OpCode::bind, {count}, {{AttrKey::births, Shape{born}}, {AttrKey::reason, std::string("no dim")}})
          .status());
  Shape shape{born};
  if (random_.chance(2)) shape.insert(shape.begin() + random_.below(2), random_.pick(dims_));
  if (count_of(shape) > kMaxElements) return {};
  return add(OpCode::iota, {},
             {{AttrKey::shape, shape},
              {AttrKey::axis, random_.below(static_cast<int64_t>(shape.size()))},
              {AttrKey::dtype, random_.chance(2) ? DType::i32 : DType::f32}},
             true);
}

Result<Generator::Trip> Generator::random_trip() {
  Trip trip;
  if (random_.chance(3)) {
    trip.id = count_;
    trip.most = std::max<int64_t>(count_value_, 0);
    return trip;
  }
  std::vector<IntExpr> small;
  for (const auto& [symbol, extent] : extents_)
    if (extent <= 17) small.push_back(IntExpr::symbol(symbol));
  trip.known = !small.empty() && random_.chance(2) ? random_.pick(small) : IntExpr(random_.below(13));
  trip.most = value_of(*trip.known);
  if (trip.known->is_constant()) {
    QUARTET_ASSIGN(trip.id, builder_.scalar(DType::i64, trip.most));
    return trip;
  }
  QUARTET_ASSIGN(const ValueId list, builder_.one(OpCode::dims, {}, {{AttrKey::shape, Shape{*trip.known}}}));
  QUARTET_ASSIGN(trip.id, builder_.one(OpCode::reshape, {list}, {{AttrKey::shape, Shape{}}}));
  return trip;
}

Status Generator::repeat() {
  QUARTET_ASSIGN(const Trip trip, random_trip());
  const std::vector<Known> values = exact_values(2048);
  std::vector<ValueId> initial, operands{trip.id, random_.chance(4) ? flag_ : graph::kNoValue};
  for (int64_t count = random_.below(3); count >= 0; --count) initial.push_back(random_.pick(values).id);
  operands.insert(operands.end(), initial.begin(), initial.end());
  const size_t outside = known_.size();
  ++depth_;
  graph::OpExtras extras;
  const auto symbols = static_cast<Symbol>(builder_.symbols().size());
  QUARTET_ASSIGN(const int32_t region, builder_.region_begin());
  extras.regions.push_back(region);
  QUARTET_ASSIGN(const ValueId iteration, builder_.parameter({DType::i64, {}}));
  QUARTET_ASSIGN(const ValueId running, builder_.parameter({DType::boolean, {}}));
  known_.push_back({iteration});
  known_.push_back({running});
  std::vector<TensorType> types;
  std::vector<ValueId> parameters;
  for (const ValueId id : initial) {
    types.push_back(builder_.type(id));
    QUARTET_ASSIGN(const ValueId parameter, builder_.parameter(types.back()));
    parameters.push_back(parameter);
    known_.push_back({parameter});
  }
  QUARTET_TRY(look_up_row(iteration));
  QUARTET_ASSIGN(std::vector<ValueId> yields, fill_region(types, parameters));
  // Whether only the run knows how often.
  const bool open = !trip.known || operands[1] != graph::kNoValue;
  bool stacked = false;
  if (random_.chance(2)) {
    std::vector<Known> rows = exact_values(4 * kMaxElements / std::max<int64_t>(trip.most, 1));
    std::erase_if(rows, [&](const Known& row) { return has_symbol_from(type(row).shape, symbols); });
    yields.push_back(random_.pick(rows).id);
    stacked = builder_.type(yields.back()).rank() < 5;
    if (!stacked) yields.pop_back();
  }
  ValueId go_on = running;
  int64_t trips = operands[1] != graph::kNoValue && flag_value_ == 0 ? 0 : trip.most;
  if ((!stacked || open) && random_.chance(3)) {
    const int64_t last = random_.below(8);
    trips = std::min(trips, last + 1);
    QUARTET_ASSIGN(const ValueId limit, builder_.scalar(DType::i64, last));
    QUARTET_ASSIGN(go_on, builder_.one(OpCode::less, {iteration, limit}));
  }
  yields.insert(yields.begin(), go_on);
  QUARTET_TRY(builder_.region_end(yields));
  known_.resize(outside);
  --depth_;
  Attrs attrs;
  if (stacked && open) {
    // A bound over symbols would say another thing of the specialised graph's dims.
    std::optional<IntExpr> bound;
    if (trip.known && trip.known->is_constant() && random_.chance(2)) bound = trip.known;
    QUARTET_ASSIGN(const IntExpr born, new_dim(trips, bound));
    attrs[AttrKey::trip] = Shape{born};
  } else if (stacked) {
    attrs[AttrKey::trip] = Shape{*trip.known};
  }
  QUARTET_ASSIGN(const std::vector<ValueId> results,
                 builder_.op(OpCode::loop, std::move(operands), std::move(attrs), std::move(extras)));
  for (const ValueId id : results) known_.push_back({id});
  ++made_;
  return {};
}

Status Generator::look_up_row(ValueId iteration) {
  const Known& x = any();
  if (type(x).rank() == 0 || value_of(type(x).shape[0]) == 0) return {};
  ValueId index = iteration;
  if (random_.chance(2) && type(x).shape[0].is_constant()) {
    QUARTET_ASSIGN(const ValueId last, builder_.scalar(DType::i64, *type(x).shape[0].constant() - 1));
    QUARTET_ASSIGN(index, builder_.one(OpCode::sub, {last, iteration}));
  }
  return add(OpCode::gather, {x.id, index}, {{AttrKey::axis, int64_t{0}}}, x.exact);
}

}  // namespace quartet::reference
