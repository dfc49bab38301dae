// The text form of kernel IR, written. parse.cpp reads it.
//
//   kernel "name" dims 2
//   bound 0 4096                                  # dim 0 is at most 4096
//   buffer @0 in f32 [s0*16] align 64 "x"
//   tasks [ceil_div(s0, 64)]
//   body {(%0)
//     %1 = constant f32 0x3f800000  # 1
//     %2 = dim 0
//     %3 = load f32 @0 (%2) / (%2, guard, fill)
//     store @1 (%2, %3)
//     %5 = loop serial (lo, hi, step, inits...) {(%6, %7) ... yield (%8)}
//     branch (%9) {() ... yield ()} {() ... yield ()}
//     %10 = reduce sum f32 16 65536 (lo, hi) {(%11) ... yield (%12)}      # interleave, chunk
//     contract f32 @0 @1 6 16 4 (...) {(%r, %c, %acc) ... yield ()}         # rows, columns, unroll
//     yield ()}
#include <cinttypes>

#include "kernel/ops.h"

namespace quartet::kernel {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += format("\\x%02x", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string ids(const std::vector<ValueId>& list) {
  std::string out;
  for (const ValueId v : list) out += (out.empty() ? "%" : ", %") + std::to_string(v);
  return out;
}

void print_region(std::string& out, const Region& region, int indent);

std::string attributes(const Statement& s) {
  switch (s.op) {
    case Op::constant:
      if (is_float(s.dtype)) return format("%s 0x%" PRIx64, dtype_name(s.dtype), static_cast<uint64_t>(s.immediate));
      return format("%s %" PRId64, dtype_name(s.dtype), s.immediate);
    case Op::dim:
      return format("%" PRId64, s.immediate);
    case Op::load:
      return format("%s @%d ", dtype_name(s.dtype), s.buffer);
    case Op::store:
      return format("@%d ", s.buffer);
    case Op::loop:
      return std::string(loop_kind_name(s.loop)) + " ";
    case Op::reduce:
      return format("%s %s %d %" PRId64 " ", reduce_op_name(s.reduce), dtype_name(s.dtype), s.interleave, s.chunk);
    case Op::contract:
      return format("%s @%d @%d %d %d %d ", dtype_name(s.dtype), s.buffer, s.buffer_b, s.rows, s.columns, s.unroll);
    case Op::branch:
    case Op::yield:
      return "";
    default:
      return std::string(dtype_name(s.dtype)) + " ";
  }
}

void print_statement(std::string& out, const Statement& s, int indent) {
  out.append(static_cast<size_t>(indent), ' ');
  if (!s.results.empty()) out += ids(s.results) + " = ";
  out += std::string(op_name(s.op)) + " " + attributes(s);
  if (s.op != Op::constant && s.op != Op::dim) out += "(" + ids(s.operands) + ")";
  for (const Region& region : s.regions) {
    out += " ";
    print_region(out, region, indent);
  }
  if (s.op == Op::constant && is_float(s.dtype)) out += format("  # %g", float_value(s.dtype, s.immediate));
  out += "\n";
}

void print_region(std::string& out, const Region& region, int indent) {
  out += "{(" + ids(region.arguments) + ")\n";
  for (const Statement& s : region.body) print_statement(out, s, indent + 2);
  out.append(static_cast<size_t>(indent), ' ');
  out += "}";
}

}  // namespace

std::string print(const Kernel& kernel) {
  std::string out = "kernel " + quoted(kernel.name) + " dims " + std::to_string(kernel.dims) + "\n";
  for (size_t i = 0; i < kernel.dim_bounds.size(); ++i)
    out += kernel.dim_bounds[i].is_valid() ? format("bound %zu [", i) + kernel.dim_bounds[i].to_text() + "]\n"
                                           : format("bound %zu none\n", i);
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const Buffer& b = kernel.buffers[i];
    out += format("buffer @%zu %s %s [", i, scope_name(b.scope), dtype_name(b.dtype)) + b.elements.to_text() +
           format("] align %d ", b.alignment) + quoted(b.name) + "\n";
  }
  out += "tasks [" + kernel.tasks.to_text() + "]\nbody ";
  print_region(out, kernel.body, 0);
  return out + "\n";
}

}  // namespace quartet::kernel
