// The text form of kernel IR, read; print.cpp shows it by example.
#include <cctype>
#include <charconv>

#include "kernel/ops.h"

namespace quartet::kernel {
namespace {

constexpr int kMaxDepth = 32;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Kernel> run() {
    QUARTET_TRY(header());
    QUARTET_TRY(word("body"));
    QUARTET_ASSIGN(kernel_.body, region({DType::i64}, 0));
    skip();
    if (at_ != text_.size()) return fail("text after the body");
    QUARTET_TRY(verify(kernel_));
    return std::move(kernel_);
  }

 private:
  Status fail(const std::string& what) const {
    size_t line = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    return make_error(Code::invalid_argument, "kernel text, line %zu: %s", line, what.c_str());
  }

  // ---- Tokens ----

  void skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#')
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else if (std::isspace(static_cast<unsigned char>(text_[at_])))
        ++at_;
      else
        return;
    }
  }

  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Status expect(char c) { return accept(c) ? Status() : fail(std::string("'") + c + "' expected"); }

  std::string_view name() {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return text_.substr(start, at_ - start);
  }

  bool accept_word(std::string_view expected) {
    skip();
    const size_t before = at_;
    if (name() == expected) return true;
    at_ = before;
    return false;
  }

  Status word(std::string_view expected) {
    return accept_word(expected) ? Status() : fail("'" + std::string(expected) + "' expected");
  }

  Result<int64_t> number() {
    skip();
    const bool negative = accept('-');
    int base = 10;
    if (text_.substr(at_, 2) == "0x") {
      at_ += 2;
      base = 16;
    }
    uint64_t magnitude = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), magnitude, base);
    if (error != std::errc() || (base == 10 && magnitude > (uint64_t{1} << 63))) return fail("a number expected");
    at_ += static_cast<size_t>(end - begin);
    return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  }

  Result<int32_t> small_number() {
    QUARTET_ASSIGN(const int64_t value, number());
    if (value < INT32_MIN || value > INT32_MAX) return fail("a number is too large");
    return static_cast<int32_t>(value);
  }

  Result<int32_t> reference(char mark) {
    QUARTET_TRY(expect(mark));
    return small_number();
  }

  Result<std::string> string() {
    QUARTET_TRY(expect('"'));
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        if (c == 'x') {
          unsigned byte = 0;
          const std::string_view digits = text_.substr(at_, 2);
          const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
          if (error != std::errc() || end != digits.data() + 2) return fail("a bad escape");
          at_ += 2;
          c = static_cast<char>(byte);
        }
      }
      out += c;
    }
    QUARTET_TRY(expect('"'));
    return out;
  }

  Result<IntExpr> expression() {
    QUARTET_TRY(expect('['));
    const size_t end = text_.find(']', at_);
    if (end == std::string_view::npos) return fail("']' expected");
    const auto symbol_of = [](std::string_view name) -> std::optional<Symbol> {
      Symbol s = 0;
      if (name.size() < 2 || name[0] != 's') return std::nullopt;
      const auto [stop, error] = std::from_chars(name.data() + 1, name.data() + name.size(), s);
      return error == std::errc() && stop == name.data() + name.size() ? std::optional(s) : std::nullopt;
    };
    const auto parsed = IntExpr::parse(text_.substr(at_, end - at_), symbol_of);
    if (!parsed.ok()) return fail(parsed.status().message());
    at_ = end + 1;
    return *parsed;
  }

  Result<DType> dtype() {
    const auto found = dtype_from_name(name());
    if (!found) return fail("a type expected");
    return *found;
  }

  Result<std::vector<ValueId>> ids() {
    std::vector<ValueId> list;
    skip();
    if (at_ >= text_.size() || text_[at_] != '%') return list;
    do {
      QUARTET_ASSIGN(const ValueId v, reference('%'));
      list.push_back(v);
    } while (accept(','));
    return list;
  }

  Result<std::vector<ValueId>> list() {
    QUARTET_TRY(expect('('));
    QUARTET_ASSIGN(std::vector<ValueId> found, ids());
    QUARTET_TRY(expect(')'));
    return found;
  }

  // ---- Header ----

  Status header() {
    QUARTET_TRY(word("kernel"));
    QUARTET_ASSIGN(kernel_.name, string());
    QUARTET_TRY(word("dims"));
    QUARTET_ASSIGN(kernel_.dims, small_number());
    while (accept_word("bound")) {
      QUARTET_ASSIGN(const int32_t dim, small_number());
      if (dim != static_cast<int32_t>(kernel_.dim_bounds.size())) return fail("bounds out of order");
      if (accept_word("none")) {
        kernel_.dim_bounds.push_back(IntExpr::invalid());
        continue;
      }
      QUARTET_ASSIGN(IntExpr bound, expression());
      kernel_.dim_bounds.push_back(std::move(bound));
    }
    while (accept_word("buffer")) QUARTET_TRY(buffer());
    QUARTET_TRY(word("tasks"));
    QUARTET_ASSIGN(kernel_.tasks, expression());
    return {};
  }

  Status buffer() {
    QUARTET_ASSIGN(const BufferId id, reference('@'));
    if (id != static_cast<BufferId>(kernel_.buffers.size())) return fail("buffers out of order");
    Buffer b;
    const auto scope = scope_from_name(name());
    if (!scope) return fail("a scope expected");
    b.scope = *scope;
    QUARTET_ASSIGN(b.dtype, dtype());
    QUARTET_ASSIGN(b.elements, expression());
    QUARTET_TRY(word("align"));
    QUARTET_ASSIGN(b.alignment, small_number());
    QUARTET_ASSIGN(b.name, string());
    kernel_.buffers.push_back(std::move(b));
    return {};
  }

  // ---- Body ----

  // The type table grows with the ids met; the verifier finds the ones never defined.
  Status set_type(ValueId v, DType type) {
    if (v < 0 || static_cast<size_t>(v) > text_.size()) return fail("a value number out of range");
    if (static_cast<size_t>(v) >= kernel_.value_types.size())
      kernel_.value_types.resize(static_cast<size_t>(v) + 1, DType::invalid);
    kernel_.value_types[static_cast<size_t>(v)] = type;
    return {};
  }

  Result<DType> type_of(ValueId v) const {
    if (v < 0 || static_cast<size_t>(v) >= kernel_.value_types.size()) return fail("a value used before it is defined");
    return kernel_.value_types[static_cast<size_t>(v)];
  }

  Result<Region> region(const std::vector<DType>& arguments, int depth) {
    if (depth > kMaxDepth) return fail("regions nest too deep");
    Region out;
    QUARTET_TRY(expect('{'));
    QUARTET_ASSIGN(out.arguments, list());
    if (out.arguments.size() != arguments.size()) return fail("a region with a wrong number of arguments");
    for (size_t i = 0; i < arguments.size(); ++i) QUARTET_TRY(set_type(out.arguments[i], arguments[i]));
    while (!accept('}')) {
      QUARTET_ASSIGN(Statement s, statement(depth));
      out.body.push_back(std::move(s));
    }
    return out;
  }

  Result<Statement> statement(int depth) {
    Statement s{};
    QUARTET_ASSIGN(s.results, ids());
    if (!s.results.empty()) QUARTET_TRY(expect('='));
    const std::string_view op = name();
    const auto found = op_from_name(op);
    if (!found) return fail("unknown operation '" + std::string(op) + "'");
    s.op = *found;
    QUARTET_TRY(attributes(s));
    if (s.op != Op::constant && s.op != Op::dim) {
      QUARTET_ASSIGN(s.operands, list());
    }
    QUARTET_TRY(regions(s, depth));
    return s;
  }

  Status attributes(Statement& s) {
    if (s.op == Op::reduce) {
      const auto kind = reduce_op_from_name(name());
      if (!kind) return fail("a reduction expected");
      s.reduce = *kind;
    }
    if (s.op == Op::loop) {
      const auto kind = loop_kind_from_name(name());
      if (!kind) return fail("a kind of loop expected");
      s.loop = *kind;
    }
    const bool typed =
        s.op == Op::constant || is_scalar(s.op) || s.op == Op::load || s.op == Op::reduce || s.op == Op::contract;
    if (typed) {
      QUARTET_ASSIGN(s.dtype, dtype());
    }
    if (s.op == Op::constant || s.op == Op::dim) {
      QUARTET_ASSIGN(s.immediate, number());
    }
    if (s.op == Op::load || s.op == Op::store || s.op == Op::contract) {
      QUARTET_ASSIGN(s.buffer, reference('@'));
    }
    if (s.op == Op::reduce) {
      QUARTET_ASSIGN(s.interleave, small_number());
      QUARTET_ASSIGN(s.chunk, number());
    }
    if (s.op == Op::contract) {
      QUARTET_ASSIGN(s.buffer_b, reference('@'));
      QUARTET_ASSIGN(s.rows, small_number());
      QUARTET_ASSIGN(s.columns, small_number());
      QUARTET_ASSIGN(s.unroll, small_number());
    }
    return {};
  }

  Status regions(Statement& s, int depth) {
    std::vector<DType> result_types(s.results.size(), s.dtype);
    std::vector<DType> arguments;
    if (s.op == Op::loop) {
      if (s.operands.size() < 3 || s.operands.size() - 3 != s.results.size())
        return fail("a loop whose results do not fit");
      arguments.push_back(DType::i64);
      for (size_t i = 3; i < s.operands.size(); ++i) {
        QUARTET_ASSIGN(const DType type, type_of(s.operands[i]));
        arguments.push_back(type);
        result_types[i - 3] = type;
      }
    }
    if (s.op == Op::reduce) arguments.push_back(DType::i64);
    if (s.op == Op::reduce && s.results.size() == 2) result_types[1] = DType::i64;
    if (s.op == Op::contract) arguments = {DType::i64, DType::i64, s.dtype};
    while (has_regions(s.op) && s.regions.size() < 2) {
      skip();
      if (at_ >= text_.size() || text_[at_] != '{') break;
      if (s.op == Op::contract && s.regions.size() == 1) arguments.pop_back();
      QUARTET_ASSIGN(Region inner, region(arguments, depth + 1));
      s.regions.push_back(std::move(inner));
    }
    if (s.op == Op::branch) {
      if (s.regions.empty() || s.regions[0].body.empty() ||
          s.regions[0].body.back().operands.size() != s.results.size())
        return fail("a branch whose results do not fit");
      for (size_t i = 0; i < s.results.size(); ++i) {
        QUARTET_ASSIGN(result_types[i], type_of(s.regions[0].body.back().operands[i]));
      }
    }
    for (size_t i = 0; i < s.results.size(); ++i) QUARTET_TRY(set_type(s.results[i], result_types[i]));
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  Kernel kernel_;
};

}  // namespace

Result<Kernel> parse(std::string_view text) { return Parser(text).run(); }

}  // namespace quartet::kernel
