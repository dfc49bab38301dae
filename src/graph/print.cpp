// The graph as text. The grammar is in README.md.
#include <map>
#include <unordered_set>

#include "graph/constant.h"
#include "graph/dims.h"
#include "graph/graph.h"
#include "graph/text_cursor.h"
#include "graph/text_numbers.h"

namespace quartet::graph {
namespace {

constexpr size_t kMaxSplatBytes = size_t{64} << 20;  // what the parser fills

class Printer {
 public:
  Printer(const Graph& graph, size_t inline_elements)
      : graph_(graph), dims_(graph.symbols), inline_elements_(inline_elements) {}

  std::string run() {
    for (const DimSymbol& symbol : graph_.symbols) print_symbol(symbol);
    for (size_t i = 1; i < graph_.functions.size(); ++i) print_function(graph_.functions[i], false);
    print_function(graph_.main(), true);
    return std::move(out_);
  }

 private:
  void print_symbol(const DimSymbol& symbol) {
    out_ += "dim " + symbol.name;
    if (symbol.lower != 0 || symbol.upper)
      out_ += " in [" + std::to_string(symbol.lower) + ", " + (symbol.upper ? dims_.text(*symbol.upper) : "_") + "]";
    if (symbol.kind == DimSymbol::Kind::run) out_ += " run";
    if (symbol.hint != 0) out_ += " hint " + std::to_string(symbol.hint);
    out_ += "\n";
  }

  void print_function(const Function& function, bool main) {
    function_ = &function;
    assign_names();
    out_ += main ? "graph @" : "function @";
    out_ += identifier_or_quoted(function.name) + "(";
    out_ += main ? inputs(function.body.arguments) : parameters(function.body.arguments);
    out_ += ") -> (";
    for (size_t i = 0; i < function.body.results.size(); ++i)
      out_ += (i > 0 ? ", " : "") + dims_.text(type(function.body.results[i]));
    out_ += ") {\n";
    for (const Op& op : function.body.ops) print_op(op, 1);
    out_ += "  return";
    for (size_t i = 0; i < function.body.results.size(); ++i) {
      out_ += (i > 0 ? ", " : " ") + name(function.body.results[i]);
      if (main) out_ += " as " + quote(function.output_names[i]);
    }
    out_ += "\n}\n";
  }

  // A value is written by its name if no earlier one has that, else by its number.
  void assign_names() {
    names_.clear();
    std::unordered_set<std::string_view> taken;
    for (size_t i = 0; i < function_->values.size(); ++i) {
      const std::string& own = function_->values[i].name;
      const bool named = !own.empty() && taken.insert(own).second;
      names_.push_back(named ? identifier_or_quoted(own) : std::to_string(i));
    }
  }

  std::string name(ValueId id) const { return id == kNoValue ? "_" : "%" + names_[static_cast<size_t>(id)]; }
  const TensorType& type(ValueId id) const { return function_->values[static_cast<size_t>(id)].type; }

  std::string parameter(ValueId id) const { return name(id) + ": " + dims_.text(type(id)); }

  std::string parameters(const std::vector<ValueId>& ids) const {
    std::string text;
    for (const ValueId id : ids) text += (text.empty() ? "" : ", ") + parameter(id);
    return text;
  }

  std::string inputs(const std::vector<ValueId>& ids) const {
    std::string text;
    auto given = graph_.defaults.begin();
    for (size_t i = 0; i < ids.size(); ++i) {
      text += (i > 0 ? ", " : "") + parameter(ids[i]);
      if (given == graph_.defaults.end() || given->input != static_cast<int32_t>(i)) continue;
      text += " = " + constant_text(graph_.constants[static_cast<size_t>(given->constant)]);
      ++given;
    }
    return text;
  }

  std::string list(const std::vector<ValueId>& ids) const {
    std::string text;
    for (const ValueId id : ids) text += (text.empty() ? "" : ", ") + name(id);
    return text;
  }

  void print_op(const Op& op, int depth) {
    const std::string indent(static_cast<size_t>(2 * depth), ' ');
    out_ += indent;
    if (!op.results.empty()) out_ += list(op.results) + " = ";
    out_ += op_info(op.code).name;
    if (op.code == OpCode::constant) {
      out_ += " " + constant_text(graph_.constants[static_cast<size_t>(op.constant)]);
    } else {
      if (op.code == OpCode::call)
        out_ += " @" + identifier_or_quoted(graph_.functions[static_cast<size_t>(op.callee)].name);
      if (!op.operands.empty()) out_ += " " + list(op.operands);
      print_attrs(op.attrs);
      for (size_t i = 0; i < op.results.size(); ++i) out_ += (i > 0 ? ", " : " : ") + dims_.text(type(op.results[i]));
    }
    if (!op.name.empty()) out_ += " as " + quote(op.name);
    for (size_t i = 0; i < op.regions.size(); ++i) {
      out_ += op.code == OpCode::loop ? " do" : i == 0 ? " then" : " else";
      if (!op.regions[i].arguments.empty()) out_ += " (" + parameters(op.regions[i].arguments) + ")";
      out_ += " {\n";
      for (const Op& inner : op.regions[i].ops) print_op(inner, depth + 1);
      out_ += indent + "  yield";
      if (!op.regions[i].results.empty()) out_ += " " + list(op.regions[i].results);
      out_ += "\n" + indent + "}";
    }
    out_ += "\n";
  }

  void print_attrs(const Attrs& attrs) {
    if (attrs.empty()) return;
    std::string text;
    for (const auto& [key, attr] : attrs)
      text += (text.empty() ? "" : ", ") + std::string(attr_key_name(key)) + " = " + attr_text(attr);
    out_ += " {" + text + "}";
  }

  std::string attr_text(const Attr& attr) const {
    switch (static_cast<AttrKind>(attr.index())) {
      case AttrKind::i64:
        return std::to_string(std::get<int64_t>(attr));
      case AttrKind::f64:
        return float_text(std::get<double>(attr));
      case AttrKind::text:
        return quote(std::get<std::string>(attr));
      case AttrKind::ints: {
        std::string text;
        for (const int64_t value : std::get<std::vector<int64_t>>(attr))
          text += (text.empty() ? "" : ", ") + std::to_string(value);
        return "[" + text + "]";
      }
      case AttrKind::floats: {
        std::string text;
        for (const double value : std::get<std::vector<double>>(attr))
          text += (text.empty() ? "" : ", ") + float_text(value);
        return "[" + text + "]";
      }
      case AttrKind::dtype:
        return dtype_name(std::get<DType>(attr));
      case AttrKind::shape:
        return dims_.text(std::get<Shape>(attr));
    }
    return "";
  }

  static std::string float_text(double value) {
    return element_text(DType::f64, reinterpret_cast<const uint8_t*>(&value));
  }

  std::string constant_text(const Constant& constant) const {
    const std::string type = dims_.text(constant.type);
    const size_t size = size_of(constant.type.dtype), count = constant.bytes / size;
    if (count > 1 && is_splat(constant) && constant.bytes <= kMaxSplatBytes)
      return type + " all " + element_text(constant.type.dtype, constant.data);
    if (count > inline_elements_) return type + " digest " + constant.digest.hex();
    std::string text;
    for (size_t i = 0; i < count; ++i)
      text += (i > 0 ? ", " : "") + element_text(constant.type.dtype, constant.data + i * size);
    return type + " [" + text + "]";
  }

  const Graph& graph_;
  Dims dims_;
  size_t inline_elements_;
  const Function* function_ = nullptr;
  std::vector<std::string> names_;  // by value, of the function being printed
  std::string out_;
};

}  // namespace

std::string print(const Graph& graph, size_t inline_elements) { return Printer(graph, inline_elements).run(); }

}  // namespace quartet::graph
