// Attributes of ops as the host gives them.
#include <algorithm>

#include "capi/builder.h"

namespace quartet::capi {

namespace {

// The regions of control ops, by name.
int region_index(graph::OpCode code, std::string_view name) {
  if (code == graph::OpCode::if_) return name == "then" ? 0 : name == "else" ? 1 : -1;
  if (code == graph::OpCode::loop) return name == "body" ? 0 : -1;
  return -1;
}

template <class T>
Result<std::vector<T>> list_of(const quartet_attr& attr) {
  if (attr.data == nullptr && attr.count != 0) return Status(Code::invalid_argument, "data is NULL");
  if (attr.count > PTRDIFF_MAX / sizeof(T)) {
    return make_error(Code::invalid_argument, "a list of %zu elements", attr.count);
  }
  std::vector<T> values(attr.count);
  if (attr.count != 0) std::memcpy(values.data(), attr.data, attr.count * sizeof(T));
  return values;
}

template <class T>
Result<T> one_of(const quartet_attr& attr) {
  if (attr.data == nullptr) return Status(Code::invalid_argument, "data is NULL");
  if (attr.count != 1) return make_error(Code::invalid_argument, "count is %zu, not 1", attr.count);
  T value;
  std::memcpy(&value, attr.data, sizeof value);
  return value;
}

Result<graph::Attr> value_of(const quartet_builder& builder, const quartet_attr& attr) {
  switch (attr.kind) {
    case QUARTET_ATTR_I64: {
      QUARTET_ASSIGN(const int64_t value, one_of<int64_t>(attr));
      return graph::Attr(value);
    }
    case QUARTET_ATTR_F64: {
      QUARTET_ASSIGN(const double value, one_of<double>(attr));
      return graph::Attr(value);
    }
    case QUARTET_ATTR_TEXT: {
      QUARTET_ASSIGN(const std::string_view text,
                     text_argument(static_cast<const char*>(attr.data), attr.count, "data"));
      return graph::Attr(std::string(text));
    }
    case QUARTET_ATTR_I64S: {
      QUARTET_ASSIGN(std::vector<int64_t> values, list_of<int64_t>(attr));
      return graph::Attr(std::move(values));
    }
    case QUARTET_ATTR_F64S: {
      QUARTET_ASSIGN(std::vector<double> values, list_of<double>(attr));
      return graph::Attr(std::move(values));
    }
    case QUARTET_ATTR_DTYPE: {
      QUARTET_ASSIGN(const int32_t value, one_of<int32_t>(attr));
      if (value <= 0 || value >= kDTypeCount) {
        return make_error(Code::unsupported, "there is no element type %d", value);
      }
      return graph::Attr(static_cast<DType>(value));
    }
    case QUARTET_ATTR_DIMS: {
      QUARTET_ASSIGN(const std::vector<int64_t> values, list_of<int64_t>(attr));
      QUARTET_ASSIGN(graph::Shape shape, shape_argument(builder, values.data(), values.size(), "data"));
      return graph::Attr(std::move(shape));
    }
    default:
      break;
  }
  return make_error(Code::unsupported, "there is no attribute kind %d", attr.kind);
}

Status add_region(const graph::OpInfo& op, std::string_view name, const quartet_attr& attr,
                  std::vector<int32_t>& regions) {
  const int index = region_index(op.code, name);
  if (index < 0) return {Code::invalid_argument, "the op has no such region"};
  QUARTET_ASSIGN(regions[static_cast<size_t>(index)], one_of<int32_t>(attr));
  return {};
}

Status add_attr(const quartet_builder& builder, const graph::OpInfo& op, std::string_view name,
                const quartet_attr& attr, OpArguments& arguments) {
  if (attr.kind == QUARTET_ATTR_REGION) return add_region(op, name, attr, arguments.extras.regions);
  QUARTET_ASSIGN(graph::Attr value, value_of(builder, attr));
  if (op.code == graph::OpCode::call && name == "function" && attr.kind == QUARTET_ATTR_TEXT) {
    const std::string& wanted = std::get<std::string>(value);
    const auto index = builder.builder.find_function(wanted);
    if (!index || *index == 0) return Status(Code::not_found, "there is no function '" + wanted + "'");
    arguments.extras.callee = *index;
    return {};
  }
  const auto key = graph::attr_key_from_name(name);
  if (!key) return {Code::invalid_argument, "no op has such an attribute"};
  if (!arguments.attrs.emplace(*key, std::move(value)).second) return {Code::invalid_argument, "it is given twice"};
  return {};
}

}  // namespace

Result<OpArguments> attrs_argument(const quartet_builder& builder, const graph::OpInfo& op, const quartet_attr* attrs,
                                   uint32_t count) {
  OpArguments arguments;
  arguments.extras.regions.assign(static_cast<size_t>(std::max(op.regions, 0)), -1);
  if (count == 0) return arguments;
  QUARTET_TRY(not_null(attrs, "attrs"));
  const uint32_t step = attrs->struct_size;
  for (uint32_t i = 0; i < count; ++i) {
    const auto* place = reinterpret_cast<const char*>(attrs) + size_t{i} * step;
    QUARTET_ASSIGN(const quartet_attr attr, read_struct(reinterpret_cast<const quartet_attr*>(place), "attrs"));
    if (reinterpret_cast<const quartet_attr*>(place)->struct_size != step) {
      return make_error(Code::invalid_argument, "attrs[%u]: its struct_size is not that of the first", i);
    }
    QUARTET_ASSIGN(const std::string_view name, name_argument(attr.name, attr.name_size, "attrs.name"));
    if (Status status = add_attr(builder, op, name, attr, arguments); !status.ok()) {
      return status.with_prefix(
          format("attribute '%.*s': ", static_cast<int>(std::min<size_t>(name.size(), 80)), name.data()));
    }
  }
  for (size_t i = 0; i < arguments.extras.regions.size(); ++i) {
    if (arguments.extras.regions[i] < 0) return make_error(Code::invalid_argument, "%s lacks region %zu", op.name, i);
  }
  return arguments;
}

}  // namespace quartet::capi
