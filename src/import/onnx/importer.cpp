// The walk over a model's nodes.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/utf8.h"
#include "graph/constant.h"
#include "import/onnx/node.h"
#include "import/onnx/onnx.h"
#include "import/onnx/tensors.h"

namespace quartet::import {

namespace {

using namespace onnx;

constexpr uint64_t kMaxModelBytes = uint64_t{1} << 32;
constexpr int64_t kOldestOpset = 1, kNewestOpset = 21;
constexpr int64_t kOverridingIrVersion = 4;  // before it every initializer had to be listed as an input
constexpr size_t kMaxListed = 50;
constexpr size_t kMaxDepth = 60;  // of graphs inside nodes

std::string shown(std::string_view name) { return "'" + std::string(name.substr(0, 120)) + "'"; }

const OpRow* find_row(std::string_view op, int64_t version) {
  for (const auto rows :
       {math_ops(),    activation_ops(), matmul_ops(),  reduce_ops(), shape_ops(),   slice_ops(),    constant_ops(),
        conv_ops(),    pool_ops(),       norm_ops(),    resize_ops(), trig_ops(),    quantize_ops(), index_ops(),
        block_ops(),   einsum_ops(),     loss_ops(),    sort_ops(),   window_ops(),  control_ops(),  scan_ops(),
        nonzero_ops(), rnn_ops(),        scatter_ops(), sample_ops(), fourier_ops(), roi_ops()})
    for (const OpRow& row : rows)
      if (row.op == op && version >= row.since && version < row.until) return &row;
  return nullptr;
}

// A symbol's name: letters, digits, '_' and '.', no digit first.
std::string symbol_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    name += plain ? c : '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9') || name == "invalid") name = "_" + name;
  return name;
}

class Importer final : public GraphWalker {
 public:
  Importer(const Model& model, ExternalFiles files, std::shared_ptr<const void> owner, const ImportOptions& options)
      : model_(model), files_(std::move(files)), owner_(std::move(owner)) {
    if (!options.initializer_inputs || model.ir_version < kOverridingIrVersion) return;
    for (const ValueInfo& input : model.graph->inputs) overridable_.insert(input.name);
  }

  Result<std::shared_ptr<const graph::Graph>> run() {
    QUARTET_TRY(read_opset());
    const Graph& source = *model_.graph;
    scopes_.emplace_back();
    QUARTET_TRY(add_initializers(source));
    for (const ValueInfo& input : source.inputs) QUARTET_TRY(add_input(input));
    for (const Node& node : source.nodes) QUARTET_TRY(add_node(node));
    if (!unsupported_.empty()) return unsupported_error();
    for (const ValueInfo& output : source.outputs) QUARTET_TRY(add_output(output));
    return builder_.finish();
  }

  // A graph inside a node, in a scope of its own; names of the graphs around are known in it.
  Result<std::vector<Value>> walk(const Graph& source, std::vector<Value> arguments) override {
    if (scopes_.size() >= kMaxDepth)
      return make_error(Code::resource_exhausted, "graphs nested deeper than %zu", kMaxDepth);
    if (source.inputs.size() != arguments.size())
      return make_error(Code::invalid_argument, "the graph inside it has %zu inputs, not %zu", source.inputs.size(),
                        arguments.size());
    scopes_.emplace_back();
    auto results = walk_inside(source, std::move(arguments));
    scopes_.pop_back();
    return results;
  }

  size_t notes() const override { return unsupported_.size(); }
  void take_back(size_t notes) override { unsupported_.resize(notes); }
  std::vector<Assumption>& assumptions() override { return assumptions_; }

 private:
  using Scope = std::unordered_map<std::string, Value>;

  Result<std::vector<Value>> walk_inside(const Graph& source, std::vector<Value> arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) QUARTET_TRY(define(source.inputs[i].name, std::move(arguments[i])));
    QUARTET_TRY(add_initializers(source));
    for (const Node& node : source.nodes) QUARTET_TRY(add_node(node));
    std::vector<Value> results;
    for (const ValueInfo& output : source.outputs) {
      const Value* found = find(output.name);
      if (!found)
        return make_error(Code::invalid_argument, "nothing gives output %s of the graph inside it",
                          shown(output.name).c_str());
      results.push_back(*found);
    }
    return results;
  }

  // The value of a name. One of a graph around that is not a tensor yet becomes one in the innermost graph alone: a
  // tensor made here is not visible outside.
  Value* find(std::string_view name) {
    const std::string key(name);
    for (size_t i = scopes_.size(); i-- > 0;) {
      const auto found = scopes_[i].find(key);
      if (found == scopes_[i].end()) continue;
      if (i + 1 == scopes_.size() || found->second.id != graph::kNoValue) return &found->second;
      return &scopes_.back().emplace(key, found->second).first->second;
    }
    return nullptr;
  }

  Status add_initializers(const Graph& source) {
    if (source.sparse_initializers) return Status(Code::unsupported, "sparse initializers");
    for (const Tensor& tensor : source.initializers) QUARTET_TRY(add_initializer(tensor));
    return {};
  }

  Status read_opset() {
    for (const Opset& opset : model_.opsets)
      if (opset.domain.empty() || opset.domain == "ai.onnx") version_ = opset.version;
    if (version_ < kOldestOpset || version_ > kNewestOpset)
      return make_error(Code::unsupported, "operator set %lld; versions %lld to %lld are understood",
                        static_cast<long long>(version_), static_cast<long long>(kOldestOpset),
                        static_cast<long long>(kNewestOpset));
    return {};
  }

  Status define(std::string_view name, Value value) {
    if (name.empty()) return {};
    if (!scopes_.back().emplace(std::string(name), std::move(value)).second)
      return make_error(Code::invalid_argument, "two values are called %s", shown(name).c_str());
    return {};
  }

  Status add_initializer(const Tensor& tensor) {
    Value value;
    auto constant = constant_of(tensor, files_, owner_);
    if (!constant.ok()) return constant.status();
    if (scopes_.size() == 1 && overridable_.count(tensor.name) != 0) {
      if (defaults_.emplace(tensor.name, constant.take()).second) return {};
      return make_error(Code::invalid_argument, "two values are called %s", shown(tensor.name).c_str());
    }
    value.constant = constant.take();
    return define(tensor.name, std::move(value));
  }

  Status add_input(const ValueInfo& input) {
    if (scopes_.back().count(std::string(input.name))) return {};  // an initializer's default: a constant
    const auto dtype = dtype_of(input.element_type);
    if (!input.is_tensor || !dtype)
      return make_error(Code::unsupported, "input %s is not a tensor of a type that is understood (%s)",
                        shown(input.name).c_str(),
                        input.is_tensor ? type_name(input.element_type).c_str() : "no tensor");
    const auto given = defaults_.find(input.name);
    if (!input.shape && given == defaults_.end())
      return make_error(Code::unsupported, "input %s has no rank", shown(input.name).c_str());
    graph::TensorType type{*dtype, {}};
    if (!input.shape) type.shape = given->second.type.shape;
    for (size_t axis = 0; input.shape && axis < input.shape->size(); ++axis) {
      const Dim& dim = (*input.shape)[axis];
      if (dim.value && *dim.value >= 0) {
        type.shape.emplace_back(*dim.value);
        continue;
      }
      const std::string name =
          dim.parameter.empty() ? std::string(input.name) + "." + std::to_string(axis) : std::string(dim.parameter);
      QUARTET_ASSIGN(IntExpr symbol, builder_.symbol(symbol_name(name)));
      type.shape.push_back(std::move(symbol));
    }
    Value value;
    auto id = builder_.input(std::string(input.name), std::move(type));
    if (!id.ok()) return id.status();
    if (given != defaults_.end()) QUARTET_TRY(builder_.set_default(*id, given->second));
    value.id = *id;
    value.is_input = true;
    return define(input.name, std::move(value));
  }

  static std::string describe(const Node& node) {
    std::string text(node.op);
    if (!node.domain.empty() && node.domain != "ai.onnx") text = std::string(node.domain) + "::" + text;
    if (!node.name.empty()) text += " " + shown(node.name);
    return text;
  }

  Status add_node(const Node& node) {
    if (node.outputs.empty())
      return make_error(Code::invalid_argument, "node %s has no output", describe(node).c_str());
    std::vector<Value*> inputs;
    for (const std::string_view name : node.inputs) {
      if (name.empty()) {
        inputs.push_back(nullptr);
        continue;
      }
      Value* found = find(name);
      if (!found)
        return make_error(Code::invalid_argument, "node %s uses %s, which nothing before it gives",
                          describe(node).c_str(), shown(name).c_str());
      inputs.push_back(found);
    }
    while (!inputs.empty() && !inputs.back()) inputs.pop_back();
    const bool default_domain = node.domain.empty() || node.domain == "ai.onnx";
    const OpRow* row = default_domain ? find_row(node.op, version_) : nullptr;
    if (!row) return give_up(node, "the op is not supported");
    if (std::any_of(inputs.begin(), inputs.end(), [](const Value* v) { return v && v->failed; }))
      return fail_outputs(node);
    NodeContext context(node, version_, builder_, std::move(inputs), to_utf8(std::string(node.name)), *this);
    if (scopes_.size() == 1) declare_results(context);
    if (auto known = fold_known(context)) {
      context.give_ints(0, *std::move(known));
    } else if (const Status status = row->import(context); !status.ok()) {
      if (status.code() == Code::unsupported) return give_up(node, status.message());
      return status.with_prefix("node " + describe(node) + ": ");
    }
    if (std::any_of(context.outputs().begin(), context.outputs().end(), [](const Value& v) { return v.failed; }))
      return fail_outputs(node);
    if (!context.outputs()[0].ints) context.outputs()[0].floats = fold_known_floats(context);
    const auto given = [&](size_t i) {
      const Value& value = context.outputs()[i];
      return value.id != graph::kNoValue || value.ints || value.constant;
    };
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty() && !given(i) && is_used(node.outputs[i]))
        return give_up(node, "output " + std::to_string(i) + " is not supported");
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty() && given(i)) QUARTET_TRY(define(node.outputs[i], std::move(context.outputs()[i])));
    return {};
  }

  // What the model says of the shapes of results that are its outputs, as far as it is known from the inputs.
  void declare_results(NodeContext& context) {
    for (size_t i = 0; i < context.node().outputs.size(); ++i)
      for (const ValueInfo& output : model_.graph->outputs) {
        if (output.name != context.node().outputs[i] || output.name.empty()) continue;
        if (auto shape = declared_shape(output)) context.declare(i, *std::move(shape));
      }
  }

  std::optional<graph::Shape> declared_shape(const ValueInfo& value) const {
    if (!value.shape) return std::nullopt;
    graph::Shape shape;
    for (const Dim& dim : *value.shape) {
      if (dim.value && *dim.value >= 0) {
        shape.emplace_back(*dim.value);
        continue;
      }
      const auto symbols = builder_.symbols();
      const auto found = std::find_if(symbols.begin(), symbols.end(), [&](const graph::DimSymbol& s) {
        return !dim.parameter.empty() && s.name == symbol_name(dim.parameter);
      });
      if (found == symbols.end()) return std::nullopt;
      shape.push_back(IntExpr::symbol(static_cast<Symbol>(found - symbols.begin())));
    }
    return shape;
  }

  // Whether a name is an operand or output anywhere.
  bool is_used(std::string_view name) const { return is_used(*model_.graph, name); }
  static bool is_used(const Graph& source, std::string_view name) {
    for (const Node& node : source.nodes) {
      if (std::find(node.inputs.begin(), node.inputs.end(), name) != node.inputs.end()) return true;
      for (const Attribute& attribute : node.attributes)
        for (const Graph& inner : attribute.graph)
          if (is_used(inner, name)) return true;
    }
    return std::any_of(source.outputs.begin(), source.outputs.end(),
                       [&](const ValueInfo& o) { return o.name == name; });
  }

  Status give_up(const Node& node, const std::string& reason) {
    unsupported_.push_back(describe(node) + " (version " + std::to_string(version_) + "): " + reason);
    return fail_outputs(node);
  }

  // Later nodes that use these are not reported: their fault is this one's.
  Status fail_outputs(const Node& node) {
    for (const std::string_view name : node.outputs) {
      Value value;
      value.failed = true;
      QUARTET_TRY(define(name, std::move(value)));
    }
    return {};
  }

  Status unsupported_error() const {
    std::string text = std::to_string(unsupported_.size()) + (unsupported_.size() == 1 ? " node is" : " nodes are") +
                       " not supported:";
    for (size_t i = 0; i < unsupported_.size() && i < kMaxListed; ++i) text += "\n  " + unsupported_[i];
    if (unsupported_.size() > kMaxListed)
      text += "\n  and " + std::to_string(unsupported_.size() - kMaxListed) + " more";
    return Status(Code::unsupported, std::move(text));
  }

  Status add_output(const ValueInfo& output) {
    Value* found = find(output.name);
    if (!found) return make_error(Code::invalid_argument, "nothing gives output %s", shown(output.name).c_str());
    QUARTET_ASSIGN(const ValueId id, materialise(builder_, *found));
    return builder_.output(id, std::string(output.name));
  }

  const Model& model_;
  ExternalFiles files_;
  std::shared_ptr<const void> owner_;
  graph::Builder builder_;
  int64_t version_ = 0;
  std::vector<Scope> scopes_;                                       // innermost last
  std::unordered_set<std::string_view> overridable_;                // names of inputs, if those may have defaults
  std::unordered_map<std::string_view, graph::Constant> defaults_;  // of these
  std::vector<std::string> unsupported_;
  std::vector<Assumption> assumptions_;
};

Result<std::shared_ptr<const graph::Graph>> import_model(std::span<const uint8_t> bytes, ExternalFiles files,
                                                         std::shared_ptr<const void> owner,
                                                         const ImportOptions& options) {
  auto model = read_model(bytes);
  if (!model.ok()) return model.status().with_stage("import");
  auto graph = Importer(*model, std::move(files), std::move(owner), options).run();
  if (!graph.ok()) return graph.status().with_stage("import");
  return graph;
}

}  // namespace

Result<std::shared_ptr<const graph::Graph>> import_onnx(std::span<const uint8_t> bytes, const ImportOptions& options) {
  return import_model(bytes, {}, nullptr, options);
}

Result<std::shared_ptr<const graph::Graph>> import_onnx_file(const std::string& path, Os& os,
                                                             const ImportOptions& options) {
  // The bytes are read, not mapped: constants point into them for as long as the graph lives, and a file that somebody
  // rewrites meanwhile must not change them.
  auto bytes = os.read_file(path, kMaxModelBytes);
  if (!bytes.ok()) return bytes.status().with_stage("import");
  const auto owner = std::make_shared<const Blob>(bytes.take());
  const size_t slash = path.rfind('/');
  ExternalFiles files{&os, slash == std::string::npos ? std::string() : path.substr(0, slash + 1)};
  auto graph = import_model(owner->span(), std::move(files), owner, options);
  if (!graph.ok()) return graph.status().with_prefix(path + ": ");
  return graph;
}

}  // namespace quartet::import
