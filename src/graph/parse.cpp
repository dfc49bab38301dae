// The text form read. The grammar is in README.md.
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "graph/builder.h"
#include "graph/text_cursor.h"
#include "graph/text_numbers.h"

namespace quartet::graph {
namespace {

constexpr size_t kMaxSplatBytes = size_t{64} << 20;

class Parser {
 public:
  Parser(std::string_view text, const ConstantSource& constants) : text_(text), at_(text), source_(constants) {}

  // Headers first, so that functions may call each other; then the bodies.
  Result<std::shared_ptr<const Graph>> run() {
    while (!at_.at_end()) {
      if (at_.take_word("dim")) {
        QUARTET_TRY(dim_declaration());
      } else if (at_.take_word("function")) {
        QUARTET_TRY(header(false));
      } else if (at_.take_word("graph")) {
        QUARTET_TRY(header(true));
      } else {
        return at_.error("'dim', 'function' or 'graph' expected");
      }
    }
    if (!main_) return at_.error("no graph");
    for (const Header& function : functions_) {
      QUARTET_TRY(located(builder_.function_declare(function.name, signature_of(function)).status()));
    }
    for (const Header& function : functions_) QUARTET_TRY(body(function, false));
    QUARTET_TRY(body(*main_, true));
    return builder_.finish();
  }

 private:
  struct Parameter {
    std::string name, key;
    TensorType type;
    std::optional<Constant> given;  // of an input: its default
  };
  struct Header {
    std::string name;
    std::vector<Parameter> parameters;
    std::vector<TensorType> results;
    bool results_given = false;
    size_t body = 0;  // where its '{' is
  };

  static Signature signature_of(const Header& header) {
    Signature signature;
    for (const Parameter& parameter : header.parameters) signature.arguments.push_back(parameter.type);
    signature.results = header.results;
    return signature;
  }

  Status located(const Status& status) const { return status.ok() ? status : at_.error(status.message()); }

  // ---- Types and dims

  Result<IntExpr> expression(std::string_view stops, bool declare) {
    QUARTET_ASSIGN(const std::string_view text, at_.until(stops));
    if (!declare) {
      auto parsed = builder_.dim(text);
      if (!parsed) return located(parsed.status());
      return parsed;
    }
    auto parsed = IntExpr::parse(text, [this](std::string_view name) -> std::optional<Symbol> {
      const auto symbol = builder_.symbol(name);
      return symbol ? symbol->as_symbol() : std::nullopt;
    });
    if (!parsed) return located(parsed.status());
    return parsed;
  }

  Result<Shape> shape(bool declare) {
    QUARTET_TRY(at_.expect("["));
    Shape shape;
    if (at_.take("]")) return shape;
    do {
      QUARTET_ASSIGN(IntExpr dim, expression(",]", declare));
      shape.push_back(std::move(dim));
    } while (at_.take(","));
    QUARTET_TRY(at_.expect("]"));
    return shape;
  }

  Result<DType> dtype() {
    const std::string_view word = at_.word();
    const auto type = dtype_from_name(word);
    if (!type || !is_valid(*type)) return at_.error("an element type expected, found '" + std::string(word) + "'");
    return *type;
  }

  // `declare`: names that are no dims yet become entry-known ones.
  Result<TensorType> type(bool declare = false) {
    TensorType result;
    QUARTET_ASSIGN(result.dtype, dtype());
    if (at_.peek() == '[') {
      QUARTET_ASSIGN(result.shape, shape(declare));
    }
    return result;
  }

  Status dim_declaration() {
    DimSymbol symbol;
    QUARTET_ASSIGN(symbol.name, at_.name());
    if (at_.take_word("in")) {
      QUARTET_TRY(at_.expect("["));
      QUARTET_ASSIGN(symbol.lower, at_.integer());
      QUARTET_TRY(at_.expect(","));
      if (!at_.take("_")) {
        QUARTET_ASSIGN(symbol.upper, expression("]", false));
      }
      QUARTET_TRY(at_.expect("]"));
    }
    if (at_.take_word("run")) symbol.kind = DimSymbol::Kind::run;
    if (at_.take_word("hint")) {
      QUARTET_ASSIGN(symbol.hint, at_.integer());
    }
    return located(builder_.declare_symbol(std::move(symbol)).status());
  }

  // ---- Functions

  Status header(bool main) {
    if (main && main_) return at_.error("a second graph");
    Header made;
    if (at_.take("@")) {
      QUARTET_ASSIGN(made.name, at_.name());
    } else if (!main) {
      return at_.error("'@' and a name expected");
    }
    QUARTET_ASSIGN(made.parameters, parameters(main));
    if (at_.take("->")) {
      made.results_given = true;
      QUARTET_TRY(at_.expect("("));
      while (at_.peek() != ')') {
        QUARTET_ASSIGN(TensorType result, type());
        made.results.push_back(std::move(result));
        if (!at_.take(",")) break;
      }
      QUARTET_TRY(at_.expect(")"));
    } else if (!main) {
      return at_.error("'->' and the results' types expected");
    }
    made.body = at_.offset();
    QUARTET_TRY(at_.skip_block());
    if (main)
      main_ = std::move(made);
    else
      functions_.push_back(std::move(made));
    return {};
  }

  Result<std::vector<Parameter>> parameters(bool declare) {
    QUARTET_TRY(at_.expect("("));
    std::vector<Parameter> list;
    while (at_.peek() != ')') {
      Parameter parameter;
      QUARTET_ASSIGN(parameter.key, value_key(&parameter.name));
      QUARTET_TRY(at_.expect(":"));
      QUARTET_ASSIGN(parameter.type, type(declare));
      if (declare && at_.take("=")) {
        QUARTET_ASSIGN(parameter.given, constant_value());
      }
      list.push_back(std::move(parameter));
      if (!at_.take(",")) break;
    }
    QUARTET_TRY(at_.expect(")"));
    return list;
  }

  Status body(const Header& header, bool main) {
    at_ = TextCursor(text_, header.body);
    values_.clear();
    if (!main) QUARTET_TRY(located(builder_.function_begin(header.name).status()));
    for (const Parameter& parameter : header.parameters) {
      auto id = main ? builder_.input(parameter.name.empty() ? parameter.key.substr(1) : parameter.name, parameter.type)
                     : builder_.parameter(parameter.type, parameter.name);
      if (!id) return located(id.status());
      if (parameter.given) QUARTET_TRY(located(builder_.set_default(*id, *parameter.given)));
      QUARTET_TRY(bind(parameter.key, *id));
    }
    QUARTET_TRY(at_.expect("{"));
    QUARTET_TRY(ops("return"));
    std::vector<ValueId> results;
    while (at_.peek() == '%') {
      QUARTET_ASSIGN(const ValueId id, value());
      results.push_back(id);
      if (main) QUARTET_TRY(output(id, results.size() - 1));
      if (!at_.take(",")) break;
    }
    QUARTET_TRY(at_.expect("}"));
    if (!main) return located(builder_.function_end(results));
    if (!header.results_given) return {};
    bool agree = results.size() == header.results.size();
    for (size_t i = 0; agree && i < results.size(); ++i) agree = builder_.type(results[i]) == header.results[i];
    return agree ? Status() : at_.error("the results' types are not those of the graph's head");
  }

  // "as NAME", else the value's name, else its place.
  Status output(ValueId id, size_t index) {
    std::string name = builder_.value(id)->name;
    if (at_.take_word("as")) {
      QUARTET_ASSIGN(name, at_.name());
    }
    if (name.empty()) name = "output_" + std::to_string(index);
    return located(builder_.output(id, std::move(name)));
  }

  // ---- Values

  // %name, %"a name" or %12, as a key that keeps names and numbers apart. `name` gets what stays with the value:
  // nothing for a number.
  Result<std::string> value_key(std::string* name) {
    QUARTET_TRY(at_.expect("%"));
    bool quoted = false;
    QUARTET_ASSIGN(std::string text, at_.name(&quoted));
    const bool number = !quoted && text.find_first_not_of("0123456789") == std::string::npos;
    if (name) *name = number ? "" : text;
    return (number ? '#' : '%') + text;
  }

  Result<ValueId> value() {
    QUARTET_ASSIGN(const std::string key, value_key(nullptr));
    const auto it = values_.find(key);
    if (it == values_.end()) return at_.error("no value " + quote(key.substr(1)));
    return it->second;
  }

  Status bind(const std::string& key, ValueId id) {
    if (values_.emplace(key, id).second) return {};
    return at_.error("a second value " + quote(key.substr(1)));
  }

  // Values after each other; '_' is an absent one.
  Result<std::vector<ValueId>> operands() {
    std::vector<ValueId> list;
    while (at_.peek() == '%' || at_.peek() == '_') {
      if (at_.take("_")) {
        list.push_back(kNoValue);
      } else {
        QUARTET_ASSIGN(const ValueId id, value());
        list.push_back(id);
      }
      if (!at_.take(",")) break;
    }
    return list;
  }

  // ---- Ops

  // Up to and with the word that ends the block.
  Status ops(std::string_view last) {
    while (!at_.take_word(last)) {
      if (at_.at_end() || at_.peek() == '}') return at_.error("'" + std::string(last) + "' expected");
      QUARTET_TRY(op());
    }
    return {};
  }

  Status op() {
    std::vector<std::pair<std::string, std::string>> results;  // key and name
    while (at_.peek() == '%') {
      std::string name;
      QUARTET_ASSIGN(std::string key, value_key(&name));
      results.emplace_back(std::move(key), std::move(name));
      if (!at_.take(",")) break;
    }
    if (!results.empty()) QUARTET_TRY(at_.expect("="));
    const TextCursor at_op = at_;
    const std::string word(at_.word());
    const auto code = op_from_name(word);
    if (!code) return at_op.error("no op '" + word + "'");
    std::vector<ValueId> ids;
    if (*code == OpCode::constant) {
      QUARTET_ASSIGN(const ValueId id, constant());
      ids.push_back(id);
    } else {
      QUARTET_ASSIGN(ids, plain_op(*code, at_op));
    }
    if (ids.size() != results.size())
      return at_op.error(word + " has " + std::to_string(ids.size()) + " results, not " +
                         std::to_string(results.size()));
    for (size_t i = 0; i < ids.size(); ++i) {
      QUARTET_TRY(bind(results[i].first, ids[i]));
      if (!results[i].second.empty()) QUARTET_TRY(located(builder_.set_name(ids[i], results[i].second)));
    }
    return {};
  }

  Result<std::vector<ValueId>> plain_op(OpCode code, const TextCursor& at_op) {
    OpExtras extras;
    if (code == OpCode::call) {
      QUARTET_TRY(at_.expect("@"));
      QUARTET_ASSIGN(const std::string callee, at_.name());
      const auto index = builder_.find_function(callee);
      if (!index) return at_.error("no function " + quote(callee));
      extras.callee = *index;
    }
    QUARTET_ASSIGN(std::vector<ValueId> inputs, operands());
    Attrs attributes;
    QUARTET_TRY(attrs(code, attributes));
    std::vector<TensorType> types;
    if (at_.take(":")) {
      do {
        QUARTET_ASSIGN(TensorType stated, type());
        types.push_back(std::move(stated));
      } while (at_.take(","));
    }
    QUARTET_TRY(name_after_as(extras.name));
    while (at_.take_word("then") || at_.take_word("else") || at_.take_word("do")) {
      QUARTET_ASSIGN(const int32_t made, region());
      extras.regions.push_back(made);
    }
    auto results = builder_.op(code, std::move(inputs), std::move(attributes), std::move(extras));
    if (!results) return at_op.error(results.status().message());
    for (size_t i = 0; i < types.size(); ++i)
      if (types.size() != results->size() || builder_.type((*results)[i]) != types[i])
        return at_op.error("stated to be " + builder_.dims().text(types[i]) + ", is " +
                           (i < results->size() ? builder_.dims().text(builder_.type((*results)[i])) : "no result"));
    return results;
  }

  Status name_after_as(std::string& name) {
    if (!at_.take_word("as")) return {};
    QUARTET_ASSIGN(name, at_.name());
    return {};
  }

  Result<int32_t> region() {
    auto opened = builder_.region_begin();
    if (!opened) return located(opened.status());
    if (at_.peek() == '(') {
      QUARTET_ASSIGN(const std::vector<Parameter> list, parameters(false));
      for (const Parameter& parameter : list) {
        auto id = builder_.parameter(parameter.type, parameter.name);
        if (!id) return located(id.status());
        QUARTET_TRY(bind(parameter.key, *id));
      }
    }
    QUARTET_TRY(at_.expect("{"));
    QUARTET_TRY(ops("yield"));
    QUARTET_ASSIGN(const std::vector<ValueId> results, operands());
    QUARTET_TRY(at_.expect("}"));
    QUARTET_TRY(located(builder_.region_end(results)));
    return *opened;
  }

  // ---- Attributes and constants

  Status attrs(OpCode code, Attrs& out) {
    if (!at_.take("{")) return {};
    while (at_.peek() != '}') {
      const std::string word(at_.word());
      const auto key = attr_key_from_name(word);
      const AttrSpec* spec = key ? op_info(code).attr(*key) : nullptr;
      if (!spec) return at_.error(std::string(op_info(code).name) + " has no attribute '" + word + "'");
      QUARTET_TRY(at_.expect("="));
      QUARTET_ASSIGN(Attr made, attr(spec->kind));
      if (!out.emplace(*key, std::move(made)).second) return at_.error("attribute " + word + " twice");
      if (!at_.take(",")) break;
    }
    return at_.expect("}");
  }

  Result<Attr> attr(AttrKind kind) {
    switch (kind) {
      case AttrKind::i64: {
        QUARTET_ASSIGN(const int64_t number, at_.integer());
        return Attr(number);
      }
      case AttrKind::f64: {
        QUARTET_ASSIGN(const double number, real());
        return Attr(number);
      }
      case AttrKind::text: {
        QUARTET_ASSIGN(std::string text, at_.string());
        return Attr(std::move(text));
      }
      case AttrKind::dtype: {
        QUARTET_ASSIGN(const DType type, dtype());
        return Attr(type);
      }
      case AttrKind::shape: {
        QUARTET_ASSIGN(Shape dims, shape(false));
        return Attr(std::move(dims));
      }
      case AttrKind::ints:
        return list<int64_t>([this] { return at_.integer(); });
      case AttrKind::floats:
        return list<double>([this] { return real(); });
    }
    return at_.error("an attribute of an unknown kind");
  }

  template <class T, class Read>
  Result<Attr> list(const Read& read) {
    QUARTET_TRY(at_.expect("["));
    std::vector<T> values;
    while (at_.peek() != ']') {
      QUARTET_ASSIGN(const T one, read());
      values.push_back(one);
      if (!at_.take(",")) break;
    }
    QUARTET_TRY(at_.expect("]"));
    return Attr(std::move(values));
  }

  Result<double> real() {
    QUARTET_ASSIGN(const std::string_view text, at_.until(",]} \n"));
    Bytes bytes;
    if (!parse_element(DType::f64, text, bytes)) return at_.error("a number expected");
    double number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }

  Result<ValueId> constant() {
    QUARTET_ASSIGN(Constant made, constant_value());
    std::string name;
    QUARTET_TRY(name_after_as(name));
    auto id = builder_.constant(std::move(made), std::move(name));
    if (!id) return located(id.status());
    return id;
  }

  Result<Constant> constant_value() {
    QUARTET_ASSIGN(TensorType wanted, type());
    const auto size = wanted.is_static() ? wanted.bytes() : std::nullopt;
    if (!size)
      return at_.error("a constant of type " + builder_.dims().text(wanted) + " has no size, or one above 2^62 bytes");
    Result<Constant> made = at_.error("'[', 'all' or 'digest' expected");
    if (at_.take_word("digest")) {
      made = by_digest(wanted);
    } else if (at_.take_word("all")) {
      made = splat(wanted, *size);
    } else if (at_.peek() == '[') {
      made = listed(wanted);
    }
    return made;
  }

  Result<Constant> by_digest(const TensorType& wanted) {
    const std::string word(at_.word());
    Digest digest;
    const auto half = [&word](size_t from, uint64_t& out) {
      const char* end = word.data() + from + 16;
      return std::from_chars(word.data() + from, end, out, 16).ptr == end;
    };
    if (word.size() != 32 || !half(0, digest.hi) || !half(16, digest.lo))
      return at_.error("32 hexadecimal digits expected");
    const Constant* found = source_ ? source_(digest) : nullptr;
    if (!found) return make_error(Code::not_found, "no constant has the digest %s", word.c_str());
    if (found->type != wanted) return at_.error("the constant of this digest is " + builder_.dims().text(found->type));
    return *found;
  }

  Result<Constant> splat(const TensorType& wanted, size_t size) {
    QUARTET_ASSIGN(const std::string_view text, at_.until(" \t\r\n}#"));
    Bytes element, all;
    if (!parse_element(wanted.dtype, text, element))
      return at_.error("'" + std::string(text) + "' is no " + dtype_name(wanted.dtype));
    if (size > kMaxSplatBytes) return at_.error("a filled constant of more than 64 MiB");
    all.resize(size);
    for (size_t i = 0; i < size; ++i) all[i] = element[i % element.size()];
    return located_constant(copy_constant(wanted, all));
  }

  Result<Constant> listed(const TensorType& wanted) {
    QUARTET_TRY(at_.expect("["));
    Bytes bytes;
    while (at_.peek() != ']') {
      QUARTET_ASSIGN(const std::string_view text, at_.until(",]"));
      if (!parse_element(wanted.dtype, text, bytes))
        return at_.error("'" + std::string(text) + "' is no " + dtype_name(wanted.dtype));
      if (!at_.take(",")) break;
    }
    QUARTET_TRY(at_.expect("]"));
    return located_constant(copy_constant(wanted, bytes));
  }

  Result<Constant> located_constant(Result<Constant> made) const {
    if (!made) return located(made.status());
    return made;
  }

  std::string_view text_;
  TextCursor at_;
  const ConstantSource& source_;
  Builder builder_;
  std::vector<Header> functions_;
  std::optional<Header> main_;
  std::unordered_map<std::string, ValueId> values_;  // of the function being read, by key
};

}  // namespace

Result<std::shared_ptr<const Graph>> parse(std::string_view text) { return parse(text, ConstantSource{}); }

Result<std::shared_ptr<const Graph>> parse(std::string_view text, const ConstantSource& constants) {
  auto graph = Parser(text, constants).run();
  if (!graph) return graph.status().with_stage("text");
  return graph;
}

}  // namespace quartet::graph
