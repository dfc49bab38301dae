// Einsum, as transposes, sums and matrix products; more than two operands from left to right.
#include <algorithm>
#include <map>
#include <set>

#include "import/onnx/expr.h"

namespace quartet::import::onnx {

namespace {

// A label is a letter, or a number from 256 on for an axis of the ellipsis, counted from its last.
using Label = int;
using Labels = std::vector<Label>;

struct Equation {
  std::vector<Labels> operands;
  Labels result;
};

struct Operand {
  Expr value;
  Labels labels;
};

bool has(const Labels& labels, Label label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

// "ab...c" with an ellipsis of `extra` axes.
Result<Labels> read_term(std::string_view text, size_t extra) {
  Labels labels;
  bool ellipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == ' ') continue;
    if (letter == '.') {
      if (ellipsis || text.substr(i, 3) != "...") return Status(Code::invalid_argument, "a stray '.' in the equation");
      ellipsis = true;
      i += 2;
      for (size_t d = extra; d-- > 0;) labels.push_back(256 + static_cast<int>(d));
    } else if ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')) {
      labels.push_back(letter);
    } else {
      return make_error(Code::invalid_argument, "character %d in the equation", static_cast<int>(letter));
    }
  }
  return labels;
}

size_t letters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return c != ' ' && c != '.'; }));
}

Result<Equation> read_equation(const std::string& text, const std::vector<Expr>& operands) {
  const size_t arrow = text.find("->");
  std::vector<std::string> terms;
  const std::string left = text.substr(0, arrow);
  for (size_t begin = 0; begin <= left.size();) {
    const size_t end = std::min(left.find(',', begin), left.size());
    terms.push_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  if (terms.size() != operands.size())
    return make_error(Code::invalid_argument, "equation '%s' is of %zu operands, there are %zu", text.c_str(),
                      terms.size(), operands.size());
  Equation equation;
  size_t extra = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t named = letters(terms[i]), rank = operands[i].rank();
    const bool ellipsis = terms[i].find('.') != std::string::npos;
    if (named > rank || (!ellipsis && named != rank))
      return make_error(Code::invalid_argument, "term '%s' does not fit rank %zu", terms[i].c_str(), rank);
    extra = std::max(extra, rank - named);
    QUARTET_ASSIGN(Labels labels, read_term(terms[i], rank - named));
    equation.operands.push_back(std::move(labels));
  }
  if (arrow != std::string::npos) {
    QUARTET_ASSIGN(equation.result, read_term(text.substr(arrow + 2), extra));
    return equation;
  }
  // Without an arrow: the ellipsis, then the labels that stand once, in alphabetical order.
  std::map<Label, int> count;
  for (const Labels& labels : equation.operands)
    for (const Label label : labels) ++count[label];
  for (size_t d = extra; d-- > 0;) equation.result.push_back(256 + static_cast<int>(d));
  for (const auto& [label, times] : count)
    if (label < 256 && times == 1) equation.result.push_back(label);
  return equation;
}

Operand permuted(const Operand& o, const Labels& order) {
  std::vector<int64_t> perm;
  for (const Label label : order) perm.push_back(std::find(o.labels.begin(), o.labels.end(), label) - o.labels.begin());
  return {o.value.transpose(std::move(perm)), order};
}

// A label that stands twice: the diagonal of the two axes.
Operand without_repeats(Operand o) {
  if (!o.value.ok()) return o;
  for (size_t i = 0; i < o.labels.size(); ++i)
    for (size_t j = i + 1; j < o.labels.size(); ++j) {
      if (o.labels[i] != o.labels[j]) continue;
      std::vector<int64_t> perm;
      for (size_t d = 0; d < o.labels.size(); ++d)
        if (d != i && d != j) perm.push_back(static_cast<int64_t>(d));
      perm.insert(perm.end(), {static_cast<int64_t>(i), static_cast<int64_t>(j)});
      const Expr last = o.value.transpose(perm);
      if (!last.ok()) return o;
      const IntExpr n = o.value.dim(i);
      graph::Shape shape(last.shape().begin(), last.shape().begin() + static_cast<std::ptrdiff_t>(perm.size()) - 2);
      shape.push_back(n * n);
      const Expr together = last.reshape(shape);
      graph::Shape starts(shape.size(), IntExpr(0));
      std::vector<int64_t> steps(shape.size(), 1);
      // n + 1 must be a number to step by; a symbolic n is refused by the caller.
      steps.back() = n.constant().value_or(0) + 1;
      const Expr diagonal = o.value.emit().op(
          OpCode::slice, {together}, {{AttrKey::starts, starts}, {AttrKey::limits, shape}, {AttrKey::steps, steps}});
      const Label label = o.labels[i];
      o.labels.erase(o.labels.begin() + static_cast<std::ptrdiff_t>(j));
      o.labels.erase(o.labels.begin() + static_cast<std::ptrdiff_t>(i));
      o.labels.push_back(label);
      o.value = diagonal;
      return without_repeats(std::move(o));
    }
  return o;
}

// Sums over every label that is in none of the other terms.
Operand summed(const Operand& o, const std::set<Label>& wanted) {
  std::vector<int64_t> axes;
  Operand rest;
  for (size_t d = 0; d < o.labels.size(); ++d) {
    if (wanted.contains(o.labels[d]))
      rest.labels.push_back(o.labels[d]);
    else
      axes.push_back(static_cast<int64_t>(d));
  }
  rest.value = axes.empty() ? o.value : o.value.reduce(OpCode::reduce_sum, axes, false);
  return rest;
}

IntExpr extent(const Operand& o, Label label) {
  return o.value.dim(static_cast<size_t>(std::find(o.labels.begin(), o.labels.end(), label) - o.labels.begin()));
}

IntExpr product(const Operand& o, const Labels& labels) {
  IntExpr all = 1;
  for (const Label label : labels) all *= extent(o, label);
  return all;
}

// Labels of both: axes of extent 1 are broadcast to the other's.
void match(Operand& a, Operand& b) {
  for (Operand* o : {&a, &b}) {
    const Operand& other = o == &a ? b : a;
    graph::Shape shape = o->value.shape();
    for (size_t d = 0; d < shape.size(); ++d)
      if (has(other.labels, o->labels[d]) && shape[d].is(1)) shape[d] = extent(other, o->labels[d]);
    o->value = o->value.expand(std::move(shape));
  }
}

// The product of two operands, summed over the labels of both that are not wanted.
Operand contracted(Operand a, Operand b, const std::set<Label>& wanted) {
  match(a, b);
  Labels batch, rows, columns, inner;
  for (const Label label : a.labels)
    (!has(b.labels, label) ? rows : wanted.contains(label) ? batch : inner).push_back(label);
  for (const Label label : b.labels)
    if (!has(a.labels, label)) columns.push_back(label);
  const auto join = [](std::initializer_list<const Labels*> parts) {
    Labels all;
    for (const Labels* part : parts) all.insert(all.end(), part->begin(), part->end());
    return all;
  };
  graph::Shape outer;
  for (const Label label : batch) outer.push_back(extent(a, label));
  const auto matrices = [&](const IntExpr& m, const IntExpr& n) {
    graph::Shape shape = outer;
    shape.insert(shape.end(), {m, n});
    return shape;
  };
  const IntExpr m = product(a, rows), k = product(a, inner), n = product(b, columns);
  graph::Shape shape = outer;
  for (const Label label : rows) shape.push_back(extent(a, label));
  for (const Label label : columns) shape.push_back(extent(b, label));
  const Expr left = permuted(a, join({&batch, &rows, &inner})).value.reshape(matrices(m, k));
  const Expr right = permuted(b, join({&batch, &inner, &columns})).value.reshape(matrices(k, n));
  const Expr y = a.value.emit().op(OpCode::matmul, {left, right});
  return {y.reshape(std::move(shape)), join({&batch, &rows, &columns})};
}

Status check(const Equation& equation, const std::vector<Operand>& operands) {
  for (size_t i = 0; i < equation.result.size(); ++i) {
    const Label label = equation.result[i];
    if (std::count(equation.result.begin(), equation.result.end(), label) > 1)
      return Status(Code::invalid_argument, "the result names a label twice");
    if (std::none_of(operands.begin(), operands.end(), [&](const Operand& o) { return has(o.labels, label); }))
      return Status(Code::invalid_argument, "the result names a label that no operand has");
  }
  for (const Operand& o : operands)
    for (size_t d = 0; d < o.labels.size(); ++d)
      if (std::count(o.labels.begin(), o.labels.end(), o.labels[d]) > 1 && !o.value.dim(d).is_constant())
        return Status(Code::unsupported, "the diagonal of symbolic dims");
  return {};
}

Status einsum(NodeContext& c) {
  Emit e(c);
  std::vector<Expr> values;
  for (size_t i = 0; i < c.input_count(); ++i) values.push_back(e.in(i));
  QUARTET_TRY(e.status());
  if (values.empty()) return Status(Code::invalid_argument, "it has no input");
  const DType type = values[0].dtype(), work = working_type(type);
  for (Expr& value : values) value = value.cast(work);
  QUARTET_ASSIGN(const Equation equation, read_equation(c.attr_text("equation", ""), values));
  std::vector<Operand> operands;
  for (size_t i = 0; i < values.size(); ++i) operands.push_back({values[i], equation.operands[i]});
  QUARTET_TRY(check(equation, operands));
  // What is still needed after operand i: the result's labels and those of later operands.
  const auto needed = [&](size_t i) {
    std::set<Label> labels(equation.result.begin(), equation.result.end());
    for (size_t later = i + 1; later < operands.size(); ++later)
      labels.insert(operands[later].labels.begin(), operands[later].labels.end());
    return labels;
  };
  Operand total = summed(without_repeats(operands[0]), needed(0));
  for (size_t i = 1; i < operands.size(); ++i) {
    std::set<Label> also = needed(i);
    also.insert(total.labels.begin(), total.labels.end());
    total = contracted(total, summed(without_repeats(operands[i]), also), needed(i));
  }
  return e.give(0, permuted(summed(total, needed(operands.size())), equation.result).value.cast(type));
}

constexpr OpRow kRows[] = {{"Einsum", 12, INT64_MAX, einsum}};

}  // namespace

std::span<const OpRow> einsum_ops() { return kRows; }

}  // namespace quartet::import::onnx
