// A graph as bytes and back, everything included. The reader trusts nothing: every count is held against what remains,
// nesting is bounded, and the result is verified.
#include "base/bytes.h"
#include "graph/constant.h"
#include "graph/graph.h"

namespace quartet::graph {
namespace {

constexpr uint64_t kMagic = 0x3148505247545121;  // "!QTGRPH1"
constexpr uint32_t kVersion = 2;
constexpr size_t kAlignment = 64;

void write_shape(const Shape& shape, ByteWriter& out) {
  out.u64(shape.size());
  for (const IntExpr& dim : shape) dim.write(out);
}

class Writer {
 public:
  Bytes run(const Graph& graph) {
    out_.u64(kMagic);
    out_.u32(kVersion);
    out_.u64(graph.symbols.size());
    for (const DimSymbol& symbol : graph.symbols) write(symbol);
    out_.u64(graph.constants.size());
    for (const Constant& constant : graph.constants) write(constant.type);
    out_.u64(graph.functions.size());
    for (const Function& function : graph.functions) write(function);
    out_.u64(graph.defaults.size());
    for (const InputDefault& given : graph.defaults) out_.i32(given.input), out_.i32(given.constant);
    for (const Constant& constant : graph.constants) {
      out_.align(kAlignment);
      out_.raw(constant.data, constant.bytes);
    }
    return out_.take();
  }

 private:
  void write(const DimSymbol& symbol) {
    out_.text(symbol.name);
    out_.u8(static_cast<uint8_t>(symbol.kind));
    out_.i64(symbol.lower);
    out_.u8(symbol.upper ? 1 : 0);
    if (symbol.upper) symbol.upper->write(out_);
    out_.i64(symbol.hint);
  }

  void write(const TensorType& type) {
    out_.u8(static_cast<uint8_t>(type.dtype));
    write_shape(type.shape, out_);
  }

  void write(const std::vector<ValueId>& ids) {
    out_.u64(ids.size());
    for (const ValueId id : ids) out_.i32(id);
  }

  void write(const Function& function) {
    out_.text(function.name);
    out_.u64(function.values.size());
    for (const Value& value : function.values) {
      write(value.type);
      out_.text(value.name);
    }
    write(function.body);
    out_.u64(function.output_names.size());
    for (const std::string& name : function.output_names) out_.text(name);
  }

  void write(const Block& block) {
    write(block.arguments);
    out_.u64(block.ops.size());
    for (const Op& op : block.ops) write(op);
    write(block.results);
  }

  void write(const Op& op) {
    out_.u16(static_cast<uint16_t>(op.code));
    write(op.operands);
    write(op.results);
    out_.u64(op.attrs.size());
    for (const auto& [key, attr] : op.attrs) {
      out_.u8(static_cast<uint8_t>(key));
      write_attr(attr, out_);
    }
    out_.u64(op.regions.size());
    for (const Block& region : op.regions) write(region);
    out_.i32(op.callee);
    out_.i32(op.constant);
    out_.text(op.name);
  }

  ByteWriter out_;
};

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : in_(bytes, "serialized graph") {}

  Result<std::shared_ptr<const Graph>> run() {
    auto graph = std::make_shared<Graph>();
    if (in_.u64() != kMagic) in_.fail("not a graph");
    if (const uint32_t version = in_.u32(); in_.ok() && version != kVersion)
      return make_error(Code::version_mismatch, "serialized graph: version %u, this library reads %u", version,
                        kVersion);
    for (size_t n = in_.count(19); n > 0 && in_.ok(); --n) graph->symbols.push_back(symbol());
    std::vector<TensorType> types;
    for (size_t n = in_.count(9); n > 0 && in_.ok(); --n) types.push_back(type());
    for (size_t n = in_.count(48); n > 0 && in_.ok(); --n) graph->functions.push_back(function());
    for (size_t n = in_.count(8); n > 0 && in_.ok(); --n) {
      const int32_t input = in_.i32();
      graph->defaults.push_back({input, in_.i32()});
    }
    for (TensorType& constant : types) {
      QUARTET_TRY(in_.status());
      QUARTET_ASSIGN(Constant made, read_constant(std::move(constant)));
      graph->constants.push_back(std::move(made));
    }
    QUARTET_TRY(in_.finish());
    if (const Status bad = verify(*graph); !bad)
      return make_error(Code::corrupt, "serialized graph: %s", bad.message().c_str());
    return std::shared_ptr<const Graph>(std::move(graph));
  }

 private:
  DimSymbol symbol() {
    DimSymbol symbol;
    symbol.name = in_.text();
    symbol.kind = static_cast<DimSymbol::Kind>(in_.u8());
    symbol.lower = in_.i64();
    if (in_.u8() != 0) symbol.upper = IntExpr::read(in_);
    symbol.hint = in_.i64();
    return symbol;
  }

  Shape shape() {
    Shape shape;
    for (size_t n = in_.count(1); n > 0 && in_.ok(); --n) shape.push_back(IntExpr::read(in_));
    return shape;
  }

  TensorType type() {
    TensorType type;
    type.dtype = static_cast<DType>(in_.u8());
    type.shape = shape();
    return type;
  }

  Result<Constant> read_constant(TensorType type) {
    const size_t padding = (kAlignment - in_.offset() % kAlignment) % kAlignment;
    for (const uint8_t byte : in_.raw(padding))
      if (byte != 0) in_.fail("bytes between constants");
    const auto size = type.is_static() ? type.bytes() : std::nullopt;
    if (!size) return make_error(Code::corrupt, "serialized graph: a constant whose type has no size");
    const auto bytes = in_.raw(*size);
    QUARTET_TRY(in_.status());
    auto made = copy_constant(std::move(type), bytes);
    if (!made) return make_error(Code::corrupt, "serialized graph: %s", made.status().message().c_str());
    return made;
  }

  std::vector<ValueId> ids() {
    std::vector<ValueId> list;
    for (size_t n = in_.count(4); n > 0 && in_.ok(); --n) list.push_back(in_.i32());
    return list;
  }

  Function function() {
    Function function;
    function.name = in_.text();
    for (size_t n = in_.count(17); n > 0 && in_.ok(); --n) {
      TensorType value = type();
      function.values.push_back({std::move(value), std::string(in_.text())});
    }
    function.body = block(0);
    for (size_t n = in_.count(8); n > 0 && in_.ok(); --n) function.output_names.emplace_back(in_.text());
    return function;
  }

  Block block(int depth) {
    Block block;
    if (depth > kMaxRegionDepth) in_.fail("regions nested too deeply");
    block.arguments = ids();
    for (size_t n = in_.count(50); n > 0 && in_.ok(); --n) block.ops.push_back(op(depth));
    block.results = ids();
    return block;
  }

  Op op(int depth) {
    Op op;
    op.code = static_cast<OpCode>(in_.u16());
    op.operands = ids();
    op.results = ids();
    for (size_t n = in_.count(2); n > 0 && in_.ok(); --n) {
      const auto key = static_cast<AttrKey>(in_.u8());
      if (!op.attrs.emplace(key, attr()).second) in_.fail("an attribute twice");
    }
    for (size_t n = in_.count(24); n > 0 && in_.ok(); --n) op.regions.push_back(block(depth + 1));
    op.callee = in_.i32();
    op.constant = in_.i32();
    op.name = in_.text();
    return op;
  }

  Attr attr() {
    switch (static_cast<AttrKind>(in_.u8())) {
      case AttrKind::i64:
        return in_.i64();
      case AttrKind::f64:
        return in_.f64();
      case AttrKind::text:
        return std::string(in_.text());
      case AttrKind::ints: {
        std::vector<int64_t> values;
        for (size_t n = in_.count(8); n > 0 && in_.ok(); --n) values.push_back(in_.i64());
        return values;
      }
      case AttrKind::floats: {
        std::vector<double> values;
        for (size_t n = in_.count(8); n > 0 && in_.ok(); --n) values.push_back(in_.f64());
        return values;
      }
      case AttrKind::dtype:
        return static_cast<DType>(in_.u8());
      case AttrKind::shape:
        return shape();
    }
    in_.fail("an attribute of an unknown kind");
    return int64_t{0};
  }

  ByteReader in_;
};

}  // namespace

void write_attr(const Attr& attr, ByteWriter& out) {
  out.u8(static_cast<uint8_t>(attr.index()));
  switch (static_cast<AttrKind>(attr.index())) {
    case AttrKind::i64:
      out.i64(std::get<int64_t>(attr));
      break;
    case AttrKind::f64:
      out.f64(std::get<double>(attr));
      break;
    case AttrKind::text:
      out.text(std::get<std::string>(attr));
      break;
    case AttrKind::ints: {
      const auto& values = std::get<std::vector<int64_t>>(attr);
      out.u64(values.size());
      for (const int64_t value : values) out.i64(value);
      break;
    }
    case AttrKind::floats: {
      const auto& values = std::get<std::vector<double>>(attr);
      out.u64(values.size());
      for (const double value : values) out.f64(value);
      break;
    }
    case AttrKind::dtype:
      out.u8(static_cast<uint8_t>(std::get<DType>(attr)));
      break;
    case AttrKind::shape:
      write_shape(std::get<Shape>(attr), out);
      break;
  }
}

Bytes serialize(const Graph& graph) { return Writer().run(graph); }

Result<std::shared_ptr<const Graph>> deserialize(std::span<const uint8_t> bytes) { return Reader(bytes).run(); }

}  // namespace quartet::graph
