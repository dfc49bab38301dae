#include "reference/graph_interpreter.h"

#include <algorithm>
#include <cstring>

#include "graph/dims.h"
#include "reference/graph_ops.h"

namespace quartet::reference {

namespace {

constexpr int kMaxDepth = 512;
constexpr int64_t kMaxElements = int64_t{1} << 28;

class Interpreter {
 public:
  explicit Interpreter(const graph::Graph& graph) : graph_(graph), extents_(graph.symbols.size()) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) {
    const graph::Function& main = graph_.main();
    if (inputs.size() != main.body.arguments.size())
      return make_error(Code::invalid_argument, "%zu inputs given, the graph has %zu", inputs.size(),
                        main.body.arguments.size());
    for (size_t i = 0; i < inputs.size(); ++i) QUARTET_TRY(bind(main, i, inputs[i]));
    for (size_t i = 0; i < inputs.size(); ++i) QUARTET_TRY(check_shape(main, i, inputs[i]));
    return call(main, inputs);
  }

 private:
  using Values = std::vector<Tensor>;

  static const graph::Value& argument(const graph::Function& function, size_t i) {
    return function.values[static_cast<size_t>(function.body.arguments[i])];
  }

  Status bind(const graph::Function& main, size_t i, const Tensor& input) {
    const graph::Value& value = argument(main, i);
    if (input.dtype != value.type.dtype || input.dims.size() != value.type.rank())
      return make_error(Code::invalid_argument, "input %zu '%s' is %s of rank %zu, wanted %s of rank %zu", i,
                        value.name.c_str(), dtype_name(input.dtype), input.dims.size(), dtype_name(value.type.dtype),
                        value.type.rank());
    for (size_t d = 0; d < input.dims.size(); ++d)
      if (const auto s = value.type.shape[d].as_symbol()) extents_[static_cast<size_t>(*s)] = input.dims[d];
    return {};
  }

  Status check_shape(const graph::Function& main, size_t i, const Tensor& input) {
    const graph::Value& value = argument(main, i);
    for (size_t d = 0; d < input.dims.size(); ++d) {
      QUARTET_ASSIGN(const int64_t wanted, extent(value.type.shape[d]));
      if (wanted != input.dims[d])
        return make_error(Code::invalid_argument, "input %zu '%s' has extent %lld on axis %zu, wanted %lld", i,
                          value.name.c_str(), static_cast<long long>(input.dims[d]), d, static_cast<long long>(wanted));
    }
    return {};
  }

  Result<int64_t> extent(const IntExpr& e) const {
    const auto value = e.evaluate([&](Symbol s) { return extents_[static_cast<size_t>(s)]; });
    if (!value) return make_error(Code::invalid_argument, "the dim %s has no value", e.to_text().c_str());
    return *value;
  }

  Result<std::vector<Tensor>> call(const graph::Function& function, const std::vector<Tensor>& arguments) {
    if (depth_ >= kMaxDepth) return make_error(Code::resource_exhausted, "calls nest deeper than %d", kMaxDepth);
    ++depth_;
    Values values(function.values.size());
    for (size_t i = 0; i < arguments.size(); ++i)
      values[static_cast<size_t>(function.body.arguments[i])] = arguments[i];
    auto results = block(function, function.body, values);
    --depth_;
    return results;
  }

  Result<std::vector<Tensor>> block(const graph::Function& function, const graph::Block& block, Values& values) {
    for (const graph::Op& op : block.ops) {
      auto results = run(function, op, values);
      if (!results.ok())
        return results.status().with_prefix("op '" + op.name + "' (" + graph::op_info(op.code).name + "): ");
      for (size_t i = 0; i < op.results.size(); ++i)
        values[static_cast<size_t>(op.results[i])] = std::move((*results)[i]);
    }
    std::vector<Tensor> results;
    for (const graph::ValueId id : block.results) results.push_back(values[static_cast<size_t>(id)]);
    return results;
  }

  Result<std::vector<Tensor>> run(const graph::Function& function, const graph::Op& op, Values& values) {
    std::vector<const Tensor*> operands;
    for (const graph::ValueId id : op.operands)
      operands.push_back(id == graph::kNoValue ? nullptr : &values[static_cast<size_t>(id)]);
    switch (op.code) {
      case graph::OpCode::if_: {
        QUARTET_ASSIGN(std::vector<Tensor> results,
                       block(function, op.regions[operands[0]->elements[0] ? 0 : 1], values));
        for (size_t i = 0; i < results.size(); ++i) bind_births(op, function, op.results[i], results[i]);
        return results;
      }
      case graph::OpCode::bind:
        return bind_number(op, operands[0]->elements[0]);
      case graph::OpCode::loop:
        return loop(function, op, operands, values);
      case graph::OpCode::require: {
        if (!operands[0]->elements[0])
          return Status(Code::failed_precondition, std::get<std::string>(op.attrs.at(graph::AttrKey::reason)));
        std::vector<Tensor> results;
        for (size_t i = 1; i < operands.size(); ++i) results.push_back(*operands[i]);
        return results;
      }
      case graph::OpCode::call: {
        std::vector<Tensor> arguments;
        for (const Tensor* operand : operands) arguments.push_back(*operand);
        return call(graph_.functions[static_cast<size_t>(op.callee)], arguments);
      }
      default:
        break;
    }
    std::vector<const graph::TensorType*> types;
    for (const graph::ValueId id : op.results) {
      const graph::TensorType& type = function.values[static_cast<size_t>(id)].type;
      QUARTET_TRY(check_size(type));
      types.push_back(&type);
    }
    return run_op(graph_, op, operands, types, [&](const IntExpr& e) { return extent(e); });
  }

  Status check_size(const graph::TensorType& type) const {
    int64_t elements = 1;
    for (const IntExpr& e : type.shape) {
      QUARTET_ASSIGN(const int64_t d, extent(e));
      if (d < 0 || __builtin_mul_overflow(elements, d, &elements) || elements > kMaxElements)
        return make_error(Code::resource_exhausted, "a value is too large to interpret");
    }
    return {};
  }

  Result<std::vector<Tensor>> loop(const graph::Function& function, const graph::Op& op,
                                   const std::vector<const Tensor*>& operands, Values& values) {
    const graph::Block& body = op.regions[0];
    const int64_t trips = operands[0] ? operands[0]->elements[0] : INT64_MAX;
    bool condition = !operands[1] || operands[1]->elements[0];
    std::vector<Tensor> carried;
    for (size_t i = 2; i < operands.size(); ++i) carried.push_back(*operands[i]);
    std::vector<Tensor> stacked(body.results.size() - 1 - carried.size());
    int64_t iteration = 0;
    for (; iteration < trips && condition; ++iteration) {
      const auto set = [&](size_t argument, Tensor value) {
        values[static_cast<size_t>(body.arguments[argument])] = std::move(value);
      };
      Tensor index = Tensor::zeros(DType::i64, {}), flag = Tensor::zeros(DType::boolean, {});
      index.elements[0] = iteration;
      flag.elements[0] = 1;
      set(0, std::move(index));
      set(1, std::move(flag));
      for (size_t i = 0; i < carried.size(); ++i) {
        bind_births(op, function, body.arguments[i + 2], carried[i]);
        set(i + 2, carried[i]);
      }
      QUARTET_ASSIGN(std::vector<Tensor> results, block(function, body, values));
      condition = results[0].elements[0] != 0;
      for (size_t i = 0; i < carried.size(); ++i) carried[i] = std::move(results[i + 1]);
      for (size_t i = 0; i < stacked.size(); ++i) append(stacked[i], results[1 + carried.size() + i]);
    }
    QUARTET_TRY(bind_trip(op, iteration));
    for (size_t i = 0; i < carried.size(); ++i) bind_births(op, function, op.results[i], carried[i]);
    for (size_t i = 0; i < stacked.size(); ++i) {
      Tensor& scan = stacked[i];
      if (iteration == 0) {
        const graph::TensorType& type = function.values[static_cast<size_t>(op.results[carried.size() + i])].type;
        scan.dtype = type.dtype;
        for (size_t d = 1; d < type.rank(); ++d) {
          QUARTET_ASSIGN(const int64_t inner, extent(type.shape[d]));
          scan.dims.push_back(inner);
        }
      }
      scan.dims.insert(scan.dims.begin(), iteration);
    }
    carried.insert(carried.end(), std::make_move_iterator(stacked.begin()), std::make_move_iterator(stacked.end()));
    return carried;
  }

  // Symbols that the op gives birth to, where one is the whole dim of a value.
  void bind_births(const graph::Op& op, const graph::Function& function, graph::ValueId id, const Tensor& value) {
    const graph::Shape* births = graph::attr_shape(op, graph::AttrKey::births);
    if (!births) return;
    const graph::Shape& shape = function.values[static_cast<size_t>(id)].type.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (std::find(births->begin(), births->end(), shape[axis]) != births->end())
        extents_[static_cast<size_t>(*shape[axis].as_symbol())] = value.dims[axis];
  }

  Result<std::vector<Tensor>> bind_number(const graph::Op& op, int64_t number) {
    const auto s = static_cast<size_t>(*(*graph::attr_shape(op, graph::AttrKey::births))[0].as_symbol());
    const graph::DimSymbol& symbol = graph_.symbols[s];
    bool inside = number >= symbol.lower;
    if (symbol.upper) {
      QUARTET_ASSIGN(const int64_t upper, extent(*symbol.upper));
      inside = inside && number <= upper;
    }
    if (!inside) return Status(Code::failed_precondition, std::get<std::string>(op.attrs.at(graph::AttrKey::reason)));
    extents_[s] = number;
    return std::vector<Tensor>();
  }

  // A run-known symbol of the trip count is born here.
  Status bind_trip(const graph::Op& op, int64_t iterations) {
    const graph::Shape* trip = graph::attr_shape(op, graph::AttrKey::trip);
    if (!trip) return {};
    if (const auto s = (*trip)[0].as_symbol())
      if (graph_.symbols[static_cast<size_t>(*s)].kind == graph::DimSymbol::Kind::run)
        extents_[static_cast<size_t>(*s)] = iterations;
    return {};
  }

  static void append(Tensor& stack, const Tensor& value) {
    stack.dtype = value.dtype;
    stack.dims = value.dims;
    stack.elements.insert(stack.elements.end(), value.elements.begin(), value.elements.end());
  }

  const graph::Graph& graph_;
  std::vector<std::optional<int64_t>> extents_;
  int depth_ = 0;
};

}  // namespace

Tensor Tensor::zeros(DType dtype, std::vector<int64_t> dims) {
  Tensor tensor{dtype, std::move(dims), {}};
  tensor.elements.resize(static_cast<size_t>(element_count(tensor.dims)));
  return tensor;
}

Tensor Tensor::from_memory(DType dtype, std::vector<int64_t> dims, const void* data) {
  Tensor tensor = zeros(dtype, std::move(dims));
  const size_t size = size_of(dtype);
  const auto* bytes = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < tensor.elements.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes + i * size, size);
    if (is_signed_int(dtype)) {
      const auto unused = static_cast<int>(64 - 8 * size);
      tensor.elements[i] = static_cast<int64_t>(bits << unused) >> unused;
    } else {
      tensor.elements[i] = static_cast<int64_t>(dtype == DType::boolean ? bits != 0 : bits);
    }
  }
  return tensor;
}

Bytes Tensor::to_memory() const {
  const size_t size = size_of(dtype);
  Bytes bytes(elements.size() * size);
  for (size_t i = 0; i < elements.size(); ++i) std::memcpy(bytes.data() + i * size, &elements[i], size);
  return bytes;
}

Result<std::vector<Tensor>> interpret(const graph::Graph& graph, const std::vector<Tensor>& inputs) {
  return Interpreter(graph).run(inputs);
}

Result<Exposed> expose(const graph::Graph& graph) {
  auto exposed = std::make_shared<graph::Graph>(graph);
  graph::Function& main = exposed->functions.front();
  Exposed result;
  std::vector<graph::ValueId> outputs;
  for (size_t o = 0; o < main.body.ops.size(); ++o) {
    const graph::Op& op = main.body.ops[o];
    if (op.code == graph::OpCode::constant) continue;
    for (size_t r = 0; r < op.results.size(); ++r) {
      std::string text = "op " + std::to_string(o) + " '" + op.name + "' (" + graph::op_info(op.code).name + ")";
      if (op.results.size() > 1) text += ", result " + std::to_string(r);
      result.values.push_back(std::move(text));
      outputs.push_back(op.results[r]);
    }
  }
  main.output_names.clear();
  for (size_t i = 0; i < outputs.size(); ++i) main.output_names.push_back("value_" + std::to_string(i));
  main.body.results = std::move(outputs);
  QUARTET_TRY(graph::verify(*exposed));
  result.graph = std::move(exposed);
  return result;
}

}  // namespace quartet::reference
