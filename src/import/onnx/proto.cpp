#include "import/onnx/proto.h"

#include <stdexcept>

// A field of another kind than the format says is damage like any other.
#define protozero_assert(condition) \
  ((condition) ? static_cast<void>(0) : throw std::runtime_error("a field of the wrong kind"))
#include <protozero/pbf_reader.hpp>

namespace quartet::import::onnx {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr int kMaxDepth = 32;

std::string_view view(const protozero::data_view& data) { return {data.data(), data.size()}; }

// A repeated number, packed or one by one.
template <class T, class Packed, class Single>
void append(pbf_reader& in, std::vector<T>& out, Packed packed, Single single) {
  if (in.wire_type() == pbf_wire_type::length_delimited) {
    for (const auto value : packed(in)) out.push_back(static_cast<T>(value));
  } else {
    out.push_back(static_cast<T>(single(in)));
  }
}

template <class T>
void append_i64(pbf_reader& in, std::vector<T>& out) {
  append(in, out, [](pbf_reader& r) { return r.get_packed_int64(); }, [](pbf_reader& r) { return r.get_int64(); });
}

void append_floats(pbf_reader& in, std::vector<float>& out) {
  append(in, out, [](pbf_reader& r) { return r.get_packed_float(); }, [](pbf_reader& r) { return r.get_float(); });
}

int64_t number_of(std::string_view text) {
  int64_t value = 0;
  if (text.empty() || text.size() > 18) throw std::runtime_error("a malformed number in external data");
  for (const char c : text) {
    if (c < '0' || c > '9') throw std::runtime_error("a malformed number in external data");
    value = value * 10 + (c - '0');
  }
  return value;
}

void read_external(pbf_reader in, Tensor& tensor) {  // StringStringEntryProto
  std::string_view key, value;
  while (in.next()) {
    if (in.tag() == 1)
      key = view(in.get_view());
    else if (in.tag() == 2)
      value = view(in.get_view());
    else
      in.skip();
  }
  if (key == "location") tensor.location = value;
  if (key == "offset") tensor.offset = number_of(value);
  if (key == "length") tensor.length = number_of(value);
}

Tensor read_tensor(pbf_reader in) {
  Tensor tensor;
  while (in.next()) {
    switch (in.tag()) {
      case 1:
        append_i64(in, tensor.dims);
        break;
      case 2:
        tensor.element_type = in.get_int32();
        break;
      case 4:
        append_floats(in, tensor.floats);
        break;
      case 5:
        append(
            in, tensor.ints32, [](pbf_reader& r) { return r.get_packed_int32(); },
            [](pbf_reader& r) { return r.get_int32(); });
        break;
      case 7:
        append_i64(in, tensor.ints64);
        break;
      case 8:
        tensor.name = view(in.get_view());
        break;
      case 9:
        tensor.raw = view(in.get_view());
        break;
      case 10:
        append(
            in, tensor.doubles, [](pbf_reader& r) { return r.get_packed_double(); },
            [](pbf_reader& r) { return r.get_double(); });
        break;
      case 11:
        append(
            in, tensor.uints64, [](pbf_reader& r) { return r.get_packed_uint64(); },
            [](pbf_reader& r) { return r.get_uint64(); });
        break;
      case 13:
        read_external(in.get_message(), tensor);
        break;
      case 14:
        tensor.external = in.get_int32() == 1;
        break;
      default:
        in.skip();
    }
  }
  return tensor;
}

Graph read_graph(pbf_reader in, int depth);

Attribute read_attribute(pbf_reader in, int depth) {
  Attribute attribute;
  while (in.next()) {
    switch (in.tag()) {
      case 1:
        attribute.name = view(in.get_view());
        break;
      case 2:
        attribute.f = in.get_float();
        break;
      case 3:
        attribute.i = in.get_int64();
        break;
      case 4:
        attribute.s = view(in.get_view());
        break;
      case 5:
        attribute.tensor = read_tensor(in.get_message());
        break;
      case 6:
        attribute.graph.assign(1, read_graph(in.get_message(), depth + 1));
        break;
      case 7:
        append_floats(in, attribute.floats);
        break;
      case 8:
        append_i64(in, attribute.ints);
        break;
      case 9:
        attribute.strings.push_back(view(in.get_view()));
        break;
      case 20:
        attribute.type = in.get_int32();
        break;
      default:
        in.skip();
    }
  }
  return attribute;
}

Node read_node(pbf_reader in, int depth) {
  Node node;
  while (in.next()) {
    switch (in.tag()) {
      case 1:
        node.inputs.push_back(view(in.get_view()));
        break;
      case 2:
        node.outputs.push_back(view(in.get_view()));
        break;
      case 3:
        node.name = view(in.get_view());
        break;
      case 4:
        node.op = view(in.get_view());
        break;
      case 5:
        node.attributes.push_back(read_attribute(in.get_message(), depth));
        break;
      case 7:
        node.domain = view(in.get_view());
        break;
      default:
        in.skip();
    }
  }
  return node;
}

std::vector<Dim> read_shape(pbf_reader in) {
  std::vector<Dim> dims;
  while (in.next(1)) {
    Dim dim;
    pbf_reader d = in.get_message();
    while (d.next()) {
      if (d.tag() == 1)
        dim.value = d.get_int64();
      else if (d.tag() == 2)
        dim.parameter = view(d.get_view());
      else
        d.skip();
    }
    dims.push_back(dim);
  }
  return dims;
}

ValueInfo read_value_info(pbf_reader in) {
  ValueInfo info;
  while (in.next()) {
    if (in.tag() == 1) {
      info.name = view(in.get_view());
    } else if (in.tag() == 2) {
      pbf_reader type = in.get_message();
      while (type.next()) {
        if (type.tag() != 1) {
          type.skip();
          continue;
        }
        info.is_tensor = true;
        pbf_reader tensor = type.get_message();
        while (tensor.next()) {
          if (tensor.tag() == 1)
            info.element_type = tensor.get_int32();
          else if (tensor.tag() == 2)
            info.shape = read_shape(tensor.get_message());
          else
            tensor.skip();
        }
      }
    } else {
      in.skip();
    }
  }
  return info;
}

Graph read_graph(pbf_reader in, int depth) {
  if (depth > kMaxDepth) throw std::runtime_error("graphs nest too deeply");
  Graph graph;
  while (in.next()) {
    switch (in.tag()) {
      case 1:
        graph.nodes.push_back(read_node(in.get_message(), depth));
        break;
      case 2:
        graph.name = view(in.get_view());
        break;
      case 5:
        graph.initializers.push_back(read_tensor(in.get_message()));
        break;
      case 11:
        graph.inputs.push_back(read_value_info(in.get_message()));
        break;
      case 12:
        graph.outputs.push_back(read_value_info(in.get_message()));
        break;
      case 15:
        graph.sparse_initializers = true;
        in.skip();
        break;
      default:
        in.skip();
    }
  }
  return graph;
}

Opset read_opset(pbf_reader in) {
  Opset opset;
  while (in.next()) {
    if (in.tag() == 1)
      opset.domain = view(in.get_view());
    else if (in.tag() == 2)
      opset.version = in.get_int64();
    else
      in.skip();
  }
  return opset;
}

}  // namespace

Result<Model> read_model(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return Status(Code::corrupt, "not an ONNX model: no bytes");
  Model model;
  try {
    pbf_reader in(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          model.ir_version = in.get_int64();
          break;
        case 7:
          model.graph = read_graph(in.get_message(), 0);
          break;
        case 8:
          model.opsets.push_back(read_opset(in.get_message()));
          break;
        case 25:
          ++model.functions;
          in.skip();
          break;
        default:
          in.skip();
      }
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return make_error(Code::corrupt, "not an ONNX model, or a damaged one: %s", error.what());
  }
  if (!model.graph || model.opsets.empty())
    return Status(Code::corrupt, "not an ONNX model: it has no graph or no operator set version");
  return model;
}

}  // namespace quartet::import::onnx
