// Canonical bytes: what a graph computes, without names and hints. Values, functions, symbols and constants are
// numbered by their first appearance, so that equal computations give equal bytes however the graphs were made.
#include <unordered_map>

#include "base/bytes.h"
#include "graph/graph.h"

namespace quartet::graph {
namespace {

constexpr uint32_t kCanonicalVersion = 1;

class CanonicalWriter {
 public:
  explicit CanonicalWriter(const Graph& graph) : graph_(graph) {}

  Bytes run() {
    out_.u32(kCanonicalVersion);
    // An input's dim that is a symbol alone numbers it, whatever the symbols' order in the graph.
    for (const ValueId id : graph_.main().body.arguments)
      for (const IntExpr& dim : graph_.main().values[static_cast<size_t>(id)].type.shape)
        if (const auto s = dim.as_symbol()) symbol_number(*s);
    function_number(0);
    for (size_t i = 0; i < functions_.size(); ++i) write_function(graph_.functions[static_cast<size_t>(functions_[i])]);
    for (size_t i = 0; i < symbols_.size(); ++i) write_symbol(graph_.symbols[static_cast<size_t>(symbols_[i])]);
    for (const InputDefault& given : graph_.defaults) {
      out_.i32(given.input);
      out_.digest(graph_.constants[static_cast<size_t>(given.constant)].digest);
    }
    return out_.take();
  }

 private:
  int32_t function_number(int32_t index) {
    const auto [it, fresh] = function_numbers_.try_emplace(index, static_cast<int32_t>(functions_.size()));
    if (fresh) functions_.push_back(index);
    return it->second;
  }

  Symbol symbol_number(Symbol s) {
    const auto [it, fresh] = symbol_numbers_.try_emplace(s, static_cast<Symbol>(symbols_.size()));
    if (fresh) symbols_.push_back(s);
    return it->second;
  }

  void write_symbol(const DimSymbol& symbol) {
    out_.u8(static_cast<uint8_t>(symbol.kind));
    out_.i64(symbol.lower);
    out_.u8(symbol.upper ? 1 : 0);
    if (symbol.upper) write(*symbol.upper);
  }

  void write_function(const Function& function) {
    function_ = &function;
    values_.clear();
    write(function.body);
  }

  void define(ValueId id) { values_.emplace(id, static_cast<int32_t>(values_.size())); }

  void write_uses(const std::vector<ValueId>& ids) {
    out_.u32(static_cast<uint32_t>(ids.size()));
    for (const ValueId id : ids) out_.i32(id == kNoValue ? -1 : values_.at(id));
  }

  void write(const Block& block) {
    out_.u32(static_cast<uint32_t>(block.arguments.size()));
    for (const ValueId id : block.arguments) {
      write(function_->values[static_cast<size_t>(id)].type);
      define(id);
    }
    out_.u32(static_cast<uint32_t>(block.ops.size()));
    for (const Op& op : block.ops) write(op);
    write_uses(block.results);
  }

  void write(const Op& op) {
    out_.u16(static_cast<uint16_t>(op.code));
    write_uses(op.operands);
    out_.u8(static_cast<uint8_t>(op.attrs.size()));
    for (const auto& [key, attr] : op.attrs) {
      out_.u8(static_cast<uint8_t>(key));
      write(attr);
    }
    for (const Block& region : op.regions) write(region);
    if (op.code == OpCode::constant) out_.digest(graph_.constants[static_cast<size_t>(op.constant)].digest);
    if (op.code == OpCode::call) {
      out_.i32(function_number(op.callee));
      // A recursive function's types do not follow from its body.
      for (const ValueId id : op.results) write(function_->values[static_cast<size_t>(id)].type);
    }
    out_.u32(static_cast<uint32_t>(op.results.size()));
    for (const ValueId id : op.results) define(id);
  }

  void write(const TensorType& type) {
    out_.u8(static_cast<uint8_t>(type.dtype));
    write(type.shape);
  }

  void write(const Shape& shape) {
    out_.u32(static_cast<uint32_t>(shape.size()));
    for (const IntExpr& dim : shape) write(dim);
  }

  void write(const IntExpr& e) {
    if (!e.is_constant()) {
      for (const Symbol s : e.symbols()) symbol_number(s);
      e.substitute([this](Symbol s) { return IntExpr::symbol(symbol_number(s)); }).write(out_);
    } else {
      e.write(out_);
    }
  }

  void write(const Attr& attr) {
    out_.u8(static_cast<uint8_t>(attr.index()));
    if (const auto* i64 = std::get_if<int64_t>(&attr)) out_.i64(*i64);
    if (const auto* f64 = std::get_if<double>(&attr)) out_.f64(*f64);
    if (const auto* text = std::get_if<std::string>(&attr)) out_.text(*text);
    if (const auto* ints = std::get_if<std::vector<int64_t>>(&attr)) {
      out_.u32(static_cast<uint32_t>(ints->size()));
      for (const int64_t value : *ints) out_.i64(value);
    }
    if (const auto* floats = std::get_if<std::vector<double>>(&attr)) {
      out_.u32(static_cast<uint32_t>(floats->size()));
      for (const double value : *floats) out_.f64(value);
    }
    if (const auto* dtype = std::get_if<DType>(&attr)) out_.u8(static_cast<uint8_t>(*dtype));
    if (const auto* shape = std::get_if<Shape>(&attr)) write(*shape);
  }

  const Graph& graph_;
  const Function* function_ = nullptr;
  ByteWriter out_;
  std::unordered_map<ValueId, int32_t> values_;  // of the function being written
  std::unordered_map<int32_t, int32_t> function_numbers_;
  std::vector<int32_t> functions_;  // by number
  std::unordered_map<Symbol, Symbol> symbol_numbers_;
  std::vector<Symbol> symbols_;  // by number
};

}  // namespace

Bytes canonical_bytes(const Graph& graph) { return CanonicalWriter(graph).run(); }

Digest digest(const Graph& graph) { return digest_of(canonical_bytes(graph)); }

}  // namespace quartet::graph
