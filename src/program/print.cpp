// The text form: one line a thing, fields separated by ';', lists in brackets, numbers of things as they are referred
// to.
//
//   program
//   dim s0 "n"; lower 1
//   dim s1 "steps"; lower 0; upper s0
//   dim s2 "found"; lower 0; run
//   input 0 "x"; f32 [s0, 64]
//   output 0 "y"; f32 [s0, 10]
//   constant 0 00112233445566778899aabbccddeeff; bytes 2560
//   constant 1 ...; bytes 4; inline 0000803f
//   prepared 0; bytes 4096
//   slot 0; bytes s0*256; moments 0..1; offset 0
//   slot 1; bytes s2*8; moments 1..2; offset 0; region 0
//   workspace ceil_div(s0*256, 64)*64
//   view 0; base output 0; loop 0; first 0; stride 40; bytes 40
//   loop 0; count s0; trip slot 1; condition input 1; next slot 2; iteration 3; dim 1
//   kernel 0 "matmul"; blob 0; entry 64; arguments 3; dims [s0]; scratch 0
//   prepare 0; kernel 1 [constant 0, prepared 0]; tasks 4; wave 0; cost 1e-06
//   stage 0; kernel 0 [input 0, prepared 0, slot 0]; tasks ceil_div(s0, 4); wave 1; after [0]; cost 1e-06; library
//   copy input 0; output 1
//   default 1; constant 2; [4, 5]
//
// and, unless the body is one run of all stages, its instructions in order, indented by what stands around them:
//
//   do run 0; count 2
//   do branch slot 3
//   do   run 2; count 1
//   do otherwise
//   do   copy input 0; to slot 4; bytes 12
//   do branch_end
//   do loop 0
//   do   swap slot 4; with slot 5
//   do loop_end
//   do check slot 3; message 0
//   do grow slot 1
//   do set 2; to s1 + 1
//   do read 2; from slot 6; message 0
//
// where messages stand before as lines like
//
//   message 0 "the sequence is too long"
#include <charconv>

#include "program/program.h"

namespace quartet::program {
namespace {

std::string quoted(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string hex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const uint8_t byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

// The shortest text that reads back as the same number.
std::string number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

template <class T, class Function>
std::string list(const std::vector<T>& items, const Function& each) {
  std::string out = "[";
  for (const T& item : items) {
    if (out.size() > 1) out += ", ";
    out += each(item);
  }
  return out + "]";
}

std::string expressions(const std::vector<IntExpr>& items) {
  return list(items, [](const IntExpr& e) { return e.to_text(); });
}

std::string reference(const BufferRef& ref) {
  static constexpr const char* kNames[] = {"input", "output", "constant", "prepared", "slot", "view"};
  return std::string(kNames[static_cast<size_t>(ref.storage)]) + " " + std::to_string(ref.index);
}

std::string stage_text(const Stage& stage) {
  std::string out = "; kernel " + std::to_string(stage.kernel) + " " + list(stage.arguments, reference) + "; tasks " +
                    stage.tasks.to_text() + "; wave " + std::to_string(stage.wave);
  if (!stage.after.empty())
    out += "; after " + list(stage.after, [](int32_t before) { return std::to_string(before); });
  out += "; cost " + number(stage.task_cost);
  if (stage.library) out += "; library";
  return out + "\n";
}

void print_tensors(std::string& out, const char* kind, const std::vector<TensorInfo>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i)
    out += std::string(kind) + " " + std::to_string(i) + " " + quoted(tensors[i].name) + "; " +
           dtype_name(tensors[i].dtype) + " " + expressions(tensors[i].shape) + "\n";
}

void print_buffers(std::string& out, const Program& p) {
  for (size_t i = 0; i < p.constants.size(); ++i) {
    const ConstantInfo& c = p.constants[i];
    out += "constant " + std::to_string(i) + " " + c.digest.hex() + "; bytes " + std::to_string(c.bytes);
    if (!c.inline_data.empty()) out += "; inline " + hex(c.inline_data);
    out += "\n";
  }
  for (size_t i = 0; i < p.prepared.size(); ++i)
    out += "prepared " + std::to_string(i) + "; bytes " + p.prepared[i].bytes.to_text() + "\n";
  for (size_t i = 0; i < p.workspace.size(); ++i) {
    const WorkspaceSlot& slot = p.workspace[i];
    out += "slot " + std::to_string(i) + "; bytes " + slot.bytes.to_text() + "; moments " + std::to_string(slot.first) +
           ".." + std::to_string(slot.last) + "; offset " + slot.offset.to_text() +
           (slot.region >= 0 ? "; region " + std::to_string(slot.region) : "") + "\n";
  }
  out += "workspace " + p.workspace_bytes.to_text() + "\n";
  for (size_t i = 0; i < p.views.size(); ++i) {
    const View& view = p.views[i];
    out += "view " + std::to_string(i) + "; base " + reference(view.base) + "; loop " + std::to_string(view.loop) +
           "; first " + view.first.to_text() + "; stride " + view.stride.to_text() + "; bytes " + view.bytes.to_text() +
           "\n";
  }
}

std::string loop_text(const Loop& loop) {
  std::string out;
  if (loop.count) out += "; count " + loop.count->to_text();
  if (loop.trip) out += "; trip " + reference(*loop.trip);
  if (loop.condition) out += "; condition " + reference(*loop.condition);
  if (loop.next) out += "; next " + reference(*loop.next);
  if (loop.iteration >= 0) out += "; iteration " + std::to_string(loop.iteration);
  if (loop.dim >= 0) out += "; dim " + std::to_string(loop.dim);
  return out + "\n";
}

std::string instruction_text(const Instruction& instruction) {
  switch (instruction.kind) {
    case InstructionKind::run:
      return "run " + std::to_string(instruction.first) + "; count " + std::to_string(instruction.count);
    case InstructionKind::branch:
      return "branch " + reference(instruction.from);
    case InstructionKind::otherwise:
      return "otherwise";
    case InstructionKind::branch_end:
      return "branch_end";
    case InstructionKind::loop:
      return "loop " + std::to_string(instruction.first);
    case InstructionKind::loop_end:
      return "loop_end";
    case InstructionKind::copy:
      return "copy " + reference(instruction.from) + "; to " + reference(instruction.to) + "; bytes " +
             instruction.bytes.to_text();
    case InstructionKind::swap:
      return "swap " + reference(instruction.from) + "; with " + reference(instruction.to);
    case InstructionKind::check:
      return "check " + reference(instruction.from) + "; message " + std::to_string(instruction.first);
    case InstructionKind::grow:
      return "grow " + reference(instruction.to);
    case InstructionKind::set:
      return "set " + std::to_string(instruction.first) + "; to " + instruction.bytes.to_text();
    case InstructionKind::read:
      return "read " + std::to_string(instruction.first) + "; from " + reference(instruction.from) + "; message " +
             std::to_string(instruction.count);
  }
  return "";
}

void print_body(std::string& out, const Program& p) {
  Program plain;
  plain.stages.resize(p.stages.size());
  plain.run_all();
  if (p.body == plain.body) return;
  size_t depth = 0;
  for (const Instruction& instruction : p.body) {
    const InstructionKind kind = instruction.kind;
    const bool ends =
        kind == InstructionKind::otherwise || kind == InstructionKind::branch_end || kind == InstructionKind::loop_end;
    if (ends && depth > 0) --depth;
    out += "do " + std::string(2 * depth, ' ') + instruction_text(instruction) + "\n";
    if (kind == InstructionKind::otherwise || kind == InstructionKind::branch || kind == InstructionKind::loop) ++depth;
  }
}

}  // namespace

std::string print(const Program& p) {
  std::string out = p.flush_denormals ? "program flush_denormals\n" : "program\n";
  for (size_t i = 0; i < p.dims.size(); ++i)
    out += "dim s" + std::to_string(i) + " " + quoted(p.dims[i].name) + "; lower " + std::to_string(p.dims[i].lower) +
           (p.dims[i].upper ? "; upper " + p.dims[i].upper->to_text()
            : p.dims[i].run ? "; run"
                            : "") +
           "\n";
  print_tensors(out, "input", p.inputs);
  print_tensors(out, "output", p.outputs);
  for (const Assumption& assumption : p.assumptions)
    out += "assume " + assumption.a.to_text() + "; is " + assumption.b.to_text() + "\n";
  print_buffers(out, p);
  for (size_t i = 0; i < p.kernels.size(); ++i) {
    const KernelInfo& kernel = p.kernels[i];
    out += "kernel " + std::to_string(i) + " " + quoted(kernel.name) + "; blob " + std::to_string(kernel.blob) +
           "; entry " + std::to_string(kernel.entry) + "; arguments " + std::to_string(kernel.arguments) + "; dims " +
           expressions(kernel.dims) + "; scratch " + kernel.scratch_bytes.to_text() + "\n";
  }
  for (size_t i = 0; i < p.prepare.size(); ++i) out += "prepare " + std::to_string(i) + stage_text(p.prepare[i]);
  for (size_t i = 0; i < p.stages.size(); ++i) out += "stage " + std::to_string(i) + stage_text(p.stages[i]);
  for (const Program::Copy& copy : p.copies)
    out += "copy " + reference(copy.from) + "; output " + std::to_string(copy.output) + "\n";
  for (const InputDefault& given : p.defaults)
    out += "default " + std::to_string(given.input) + "; constant " + std::to_string(given.constant) + "; " +
           list(given.shape, [](int64_t extent) { return std::to_string(extent); }) + "\n";
  for (size_t i = 0; i < p.loops.size(); ++i) out += "loop " + std::to_string(i) + loop_text(p.loops[i]);
  for (size_t i = 0; i < p.messages.size(); ++i)
    out += "message " + std::to_string(i) + " " + quoted(p.messages[i]) + "\n";
  print_body(out, p);
  return out;
}

}  // namespace quartet::program
