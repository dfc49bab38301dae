// Reads the text form of print.cpp. Spaces separate words; blank lines and lines that start with '#' are passed over.
#include <algorithm>
#include <charconv>

#include "program/program.h"

namespace quartet::program {
namespace {

// One line, read from left to right. The first failure is kept; after it every read gives a default.
class Line {
 public:
  Line(std::string_view text, size_t number) : text_(text), number_(number) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  bool at_end() {
    skip_spaces();
    return at_ == text_.size();
  }
  void fail(const std::string& reason) {
    if (status_.ok())
      status_ = Status(Code::invalid_argument, "line " + std::to_string(number_) + ": " + reason).with_stage("program");
  }

  std::string_view word() {
    skip_spaces();
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != ';' && text_[at_] != ',' && text_[at_] != ']')
      ++at_;
    if (begin == at_) fail("a word is missing");
    return text_.substr(begin, at_ - begin);
  }
  void expect(std::string_view wanted) {
    skip_spaces();
    if (text_.substr(at_).starts_with(wanted))
      at_ += wanted.size();
    else
      fail("'" + std::string(wanted) + "' expected at '" + std::string(text_.substr(at_, 20)) + "'");
  }
  // "; name" ahead? Takes it if so.
  bool field(std::string_view name) {
    const size_t saved = at_;
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == ';') {
      ++at_;
      skip_spaces();
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with(name) &&
          (rest.size() == name.size() || rest[name.size()] == ' ' || rest[name.size()] == ';')) {
        at_ += name.size();
        return true;
      }
    }
    at_ = saved;
    return false;
  }
  void need_field(std::string_view name) {
    if (!field(name)) fail("the field '" + std::string(name) + "' is missing");
  }

  template <class T>
  T integer() {
    return parse_number<T>(word());
  }
  template <class T>
  T parse_number(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      fail("'" + std::string(text) + "' is no number of its kind");
    return value;
  }
  // The number of the thing the line defines, which must be the next one.
  void index(size_t next) {
    if (integer<size_t>() != next) fail("things are numbered in order; " + std::to_string(next) + " is next");
  }

  // Up to the next ';', ',' or ']' outside of parentheses, or the end.
  IntExpr expression() {
    skip_spaces();
    const size_t begin = at_;
    for (int depth = 0; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '(') ++depth;
      if (c == ')') --depth;
      if (depth <= 0 && (c == ';' || c == ',' || c == ']')) break;
    }
    const auto symbol_of = [](std::string_view name) -> std::optional<Symbol> {
      Symbol symbol = 0;
      if (name.size() < 2 || name[0] != 's') return std::nullopt;
      const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), symbol);
      if (error != std::errc() || end != name.data() + name.size() || !is_dim_symbol(symbol)) return std::nullopt;
      return symbol;
    };
    auto result = IntExpr::parse(text_.substr(begin, at_ - begin), symbol_of);
    if (result.ok()) return result.take();
    fail(result.status().message());
    return IntExpr::invalid();
  }

  template <class Function>
  auto list(const Function& item) {
    std::vector<decltype(item())> items;
    expect("[");
    while (ok()) {
      skip_spaces();
      if (items.empty() && peek() == ']') break;
      items.push_back(item());
      skip_spaces();
      if (peek() != ',') break;
      ++at_;
    }
    expect("]");
    return items;
  }
  std::vector<IntExpr> expressions() {
    return list([this] { return expression(); });
  }

  std::string quoted() {
    expect("\"");
    std::string out;
    while (ok()) {
      if (at_ == text_.size()) {
        fail("a name without closing quote");
        break;
      }
      const char c = text_[at_++];
      if (c == '"') break;
      out += c == '\\' ? escaped() : c;
    }
    return out;
  }

  Bytes hex(std::string_view text) {
    Bytes out;
    if (text.size() % 2 != 0) fail("an odd number of hexadecimal digits");
    for (size_t i = 0; i + 1 < text.size() && ok(); i += 2) out.push_back(hex_byte(text.substr(i, 2)));
    return out;
  }

  BufferRef reference() {
    static constexpr std::pair<std::string_view, Storage> kNames[] = {
        {"input", Storage::input},       {"output", Storage::output},  {"constant", Storage::constant},
        {"prepared", Storage::prepared}, {"slot", Storage::workspace}, {"view", Storage::view}};
    const std::string_view name = word();
    for (const auto& [known, storage] : kNames)
      if (name == known) return {storage, integer<int32_t>()};
    fail("'" + std::string(name) + "' is no kind of memory");
    return {};
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  uint8_t hex_byte(std::string_view two) {
    uint8_t value = 0;
    const auto [end, error] = std::from_chars(two.data(), two.data() + two.size(), value, 16);
    if (error != std::errc() || two.size() != 2 || end != two.data() + 2)
      fail("'" + std::string(two) + "' are no hexadecimal digits");
    return value;
  }
  char escaped() {
    const char c = peek();
    if (c != 'x') {
      if (c == '\0') fail("a name without closing quote");
      ++at_;
      return c;
    }
    const uint8_t value = hex_byte(text_.substr(at_ + 1, 2));
    at_ = std::min(at_ + 3, text_.size());
    return static_cast<char>(value);
  }

  std::string_view text_;
  size_t number_;
  size_t at_ = 0;
  Status status_;
};

class Parser {
 public:
  Result<Program> run(std::string_view text) {
    size_t number = 0;
    while (!text.empty()) {
      ++number;
      const size_t end = text.find('\n');
      std::string_view line_text = text.substr(0, end);
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
      if (line_text.ends_with('\r')) line_text.remove_suffix(1);
      Line line(line_text, number);
      if (line.at_end() || line_text.starts_with('#')) continue;
      parse_line(line);
      if (line.ok() && !line.at_end()) line.fail("more than the line has room for");
      if (!line.ok()) return line.status();
    }
    if (!seen_header_)
      return Status(Code::invalid_argument, "the text does not begin with 'program'").with_stage("program");
    if (p_.body.empty()) p_.run_all();
    return std::move(p_);
  }

 private:
  void parse_line(Line& line) {
    const std::string_view what = line.word();
    if (!line.ok()) return;
    if (!seen_header_) {
      seen_header_ = true;
      if (what != "program") return line.fail("the text does not begin with 'program'");
      if (!line.at_end()) {
        line.expect("flush_denormals");
        p_.flush_denormals = true;
      }
    } else if (what == "dim") {
      dim(line);
    } else if (what == "input") {
      tensor(line, p_.inputs);
    } else if (what == "output") {
      tensor(line, p_.outputs);
    } else if (what == "constant") {
      constant(line);
    } else if (what == "prepared") {
      line.index(p_.prepared.size());
      line.need_field("bytes");
      p_.prepared.push_back({line.expression()});
    } else if (what == "slot") {
      slot(line);
    } else if (what == "workspace") {
      p_.workspace_bytes = line.expression();
    } else if (what == "kernel") {
      kernel(line);
    } else if (what == "prepare") {
      stage(line, p_.prepare);
    } else if (what == "stage") {
      stage(line, p_.stages);
    } else if (what == "view") {
      view(line);
    } else if (what == "loop") {
      loop(line);
    } else if (what == "message") {
      line.index(p_.messages.size());
      p_.messages.push_back(line.quoted());
    } else if (what == "do") {
      instruction(line);
    } else if (what == "assume") {
      Assumption assumption;
      assumption.a = line.expression();
      line.need_field("is");
      assumption.b = line.expression();
      p_.assumptions.push_back(std::move(assumption));
    } else if (what == "copy") {
      Program::Copy copy;
      copy.from = line.reference();
      line.need_field("output");
      copy.output = line.integer<int32_t>();
      p_.copies.push_back(copy);
    } else if (what == "default") {
      InputDefault given;
      given.input = line.integer<int32_t>();
      line.need_field("constant");
      given.constant = line.integer<int32_t>();
      line.expect(";");
      for (const IntExpr& extent : line.expressions()) given.shape.push_back(extent.constant().value_or(-1));
      p_.defaults.push_back(std::move(given));
    } else {
      line.fail("'" + std::string(what) + "' begins no line of a program");
    }
  }

  void dim(Line& line) {
    if (line.word() != "s" + std::to_string(p_.dims.size())) line.fail("dims are s0, s1 ... in order");
    DimInfo dim;
    dim.name = line.quoted();
    line.need_field("lower");
    dim.lower = line.integer<int64_t>();
    if (line.field("upper")) dim.upper = line.expression();
    dim.run = dim.upper || line.field("run");
    p_.dims.push_back(std::move(dim));
  }

  static void tensor(Line& line, std::vector<TensorInfo>& list) {
    line.index(list.size());
    TensorInfo tensor;
    tensor.name = line.quoted();
    line.expect(";");
    const std::string_view type = line.word();
    const auto dtype = dtype_from_name(type);
    if (!dtype) line.fail("'" + std::string(type) + "' is no element type");
    tensor.dtype = dtype.value_or(DType::invalid);
    tensor.shape = line.expressions();
    list.push_back(std::move(tensor));
  }

  void constant(Line& line) {
    line.index(p_.constants.size());
    ConstantInfo constant;
    const Bytes digest = line.hex(line.word());
    if (digest.size() != 16) return line.fail("a digest has 32 hexadecimal digits");
    for (size_t i = 0; i < 8; ++i) {
      constant.digest.hi = constant.digest.hi << 8 | digest[i];
      constant.digest.lo = constant.digest.lo << 8 | digest[i + 8];
    }
    line.need_field("bytes");
    constant.bytes = line.integer<uint64_t>();
    if (line.field("inline")) constant.inline_data = line.hex(line.word());
    p_.constants.push_back(std::move(constant));
  }

  void slot(Line& line) {
    line.index(p_.workspace.size());
    WorkspaceSlot slot;
    line.need_field("bytes");
    slot.bytes = line.expression();
    line.need_field("moments");
    const std::string_view range = line.word();
    const size_t dots = range.find("..");
    if (dots == std::string_view::npos) return line.fail("'" + std::string(range) + "' is no range of moments");
    slot.first = line.parse_number<int32_t>(range.substr(0, dots));
    slot.last = line.parse_number<int32_t>(range.substr(dots + 2));
    line.need_field("offset");
    slot.offset = line.expression();
    if (line.field("region")) slot.region = line.integer<int32_t>();
    p_.workspace.push_back(std::move(slot));
  }

  void kernel(Line& line) {
    line.index(p_.kernels.size());
    KernelInfo kernel;
    kernel.name = line.quoted();
    line.need_field("blob");
    kernel.blob = line.integer<int32_t>();
    line.need_field("entry");
    kernel.entry = line.integer<uint64_t>();
    line.need_field("arguments");
    kernel.arguments = line.integer<int32_t>();
    line.need_field("dims");
    kernel.dims = line.expressions();
    line.need_field("scratch");
    kernel.scratch_bytes = line.expression();
    p_.kernels.push_back(std::move(kernel));
  }

  static void stage(Line& line, std::vector<Stage>& list) {
    line.index(list.size());
    Stage stage;
    line.need_field("kernel");
    stage.kernel = line.integer<int32_t>();
    stage.arguments = line.list([&] { return line.reference(); });
    line.need_field("tasks");
    stage.tasks = line.expression();
    line.need_field("wave");
    stage.wave = line.integer<int32_t>();
    if (line.field("after")) stage.after = line.list([&] { return line.integer<int32_t>(); });
    line.need_field("cost");
    stage.task_cost = line.parse_number<double>(line.word());
    stage.library = line.field("library");
    list.push_back(std::move(stage));
  }

  void view(Line& line) {
    line.index(p_.views.size());
    View view;
    line.need_field("base");
    view.base = line.reference();
    line.need_field("loop");
    view.loop = line.integer<int32_t>();
    line.need_field("first");
    view.first = line.expression();
    line.need_field("stride");
    view.stride = line.expression();
    line.need_field("bytes");
    view.bytes = line.expression();
    p_.views.push_back(std::move(view));
  }

  void loop(Line& line) {
    line.index(p_.loops.size());
    Loop loop;
    if (line.field("count")) loop.count = line.expression();
    if (line.field("trip")) loop.trip = line.reference();
    if (line.field("condition")) loop.condition = line.reference();
    if (line.field("next")) loop.next = line.reference();
    if (line.field("iteration")) loop.iteration = line.integer<int32_t>();
    if (line.field("dim")) loop.dim = line.integer<int32_t>();
    p_.loops.push_back(std::move(loop));
  }

  void instruction(Line& line) {
    static constexpr std::pair<std::string_view, InstructionKind> kNames[] = {
        {"run", InstructionKind::run},
        {"branch", InstructionKind::branch},
        {"otherwise", InstructionKind::otherwise},
        {"branch_end", InstructionKind::branch_end},
        {"loop", InstructionKind::loop},
        {"loop_end", InstructionKind::loop_end},
        {"copy", InstructionKind::copy},
        {"swap", InstructionKind::swap},
        {"check", InstructionKind::check},
        {"grow", InstructionKind::grow},
        {"set", InstructionKind::set},
        {"read", InstructionKind::read}};
    const std::string_view name = line.word();
    const auto* found = std::ranges::find(kNames, name, &std::pair<std::string_view, InstructionKind>::first);
    if (found == std::end(kNames)) return line.fail("'" + std::string(name) + "' is no instruction");
    Instruction made;
    made.kind = found->second;
    if (made.kind == InstructionKind::run || made.kind == InstructionKind::loop || made.kind == InstructionKind::set ||
        made.kind == InstructionKind::read)
      made.first = line.integer<int32_t>();
    if (made.kind == InstructionKind::grow) made.to = line.reference();
    if (made.kind == InstructionKind::branch || made.kind == InstructionKind::copy ||
        made.kind == InstructionKind::swap || made.kind == InstructionKind::check)
      made.from = line.reference();
    if (made.kind == InstructionKind::run) {
      line.need_field("count");
      made.count = line.integer<int32_t>();
    } else if (made.kind == InstructionKind::copy) {
      line.need_field("to");
      made.to = line.reference();
      line.need_field("bytes");
      made.bytes = line.expression();
    } else if (made.kind == InstructionKind::check) {
      line.need_field("message");
      made.first = line.integer<int32_t>();
    } else if (made.kind == InstructionKind::swap) {
      line.need_field("with");
      made.to = line.reference();
    } else if (made.kind == InstructionKind::set) {
      line.need_field("to");
      made.bytes = line.expression();
    } else if (made.kind == InstructionKind::read) {
      line.need_field("from");
      made.from = line.reference();
      line.need_field("message");
      made.count = line.integer<int32_t>();
    }
    p_.body.push_back(std::move(made));
  }

  Program p_;
  bool seen_header_ = false;
};

}  // namespace

Result<Program> parse(std::string_view text) { return Parser().run(text); }

}  // namespace quartet::program
