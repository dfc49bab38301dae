#include "base/int_expr_reader.h"
#include "program/program.h"

namespace quartet::program {
namespace {

constexpr uint32_t kFormat = 4;

template <class T, class Function>
void write_list(ByteWriter& out, const std::vector<T>& list, const Function& each) {
  out.u64(list.size());
  for (const T& item : list) each(item);
}

void write_expressions(ByteWriter& out, const std::vector<IntExpr>& list) {
  write_list(out, list, [&](const IntExpr& e) { e.write(out); });
}

void write_tensors(ByteWriter& out, const std::vector<TensorInfo>& list) {
  write_list(out, list, [&](const TensorInfo& tensor) {
    out.text(tensor.name);
    out.u8(static_cast<uint8_t>(tensor.dtype));
    write_expressions(out, tensor.shape);
  });
}

void write_reference(ByteWriter& out, const BufferRef& ref) {
  out.u8(static_cast<uint8_t>(ref.storage));
  out.i32(ref.index);
}

void write_optional(ByteWriter& out, const std::optional<BufferRef>& ref) {
  out.u8(ref ? 1 : 0);
  if (ref) write_reference(out, *ref);
}

void write_control(ByteWriter& out, const Program& program) {
  write_list(out, program.views, [&](const View& view) {
    write_reference(out, view.base);
    out.i32(view.loop);
    view.first.write(out);
    view.stride.write(out);
    view.bytes.write(out);
  });
  write_list(out, program.loops, [&](const Loop& loop) {
    out.u8(loop.count ? 1 : 0);
    if (loop.count) loop.count->write(out);
    write_optional(out, loop.trip);
    write_optional(out, loop.condition);
    write_optional(out, loop.next);
    out.i32(loop.iteration);
    out.i32(loop.dim);
  });
  write_list(out, program.messages, [&](const std::string& message) { out.text(message); });
  write_list(out, program.body, [&](const Instruction& instruction) {
    out.u8(static_cast<uint8_t>(instruction.kind));
    out.i32(instruction.first);
    out.i32(instruction.count);
    write_reference(out, instruction.from);
    write_reference(out, instruction.to);
    instruction.bytes.write(out);
  });
}

void write_stages(ByteWriter& out, const std::vector<Stage>& list) {
  write_list(out, list, [&](const Stage& stage) {
    out.i32(stage.kernel);
    write_list(out, stage.arguments, [&](const BufferRef& ref) { write_reference(out, ref); });
    stage.tasks.write(out);
    write_list(out, stage.after, [&](int32_t before) { out.i32(before); });
    out.i32(stage.wave);
    out.f64(stage.task_cost);
    out.u8(stage.library ? 1 : 0);
  });
}

// The bytes of a program, whose expressions share their parts.
class Source : public ByteReader {
 public:
  explicit Source(const ByteReader& from) : ByteReader(from) {}
  IntExpr expression() { return expressions_.read(*this); }

 private:
  IntExprReader expressions_;
};

// Reads a list whose items take at least `min_bytes` each.
template <class T, class Function>
void read_list(Source& in, std::vector<T>& list, size_t min_bytes, const Function& each) {
  const size_t count = in.count(min_bytes);
  for (size_t i = 0; i < count && in.ok(); ++i) list.push_back(each());
}

template <class Enum>
Enum read_enum(Source& in, Enum last, const char* what) {
  const uint8_t value = in.u8();
  if (value > static_cast<uint8_t>(last)) {
    in.fail(what);
    return last;
  }
  return static_cast<Enum>(value);
}

bool read_flag(Source& in) {
  const uint8_t value = in.u8();
  if (value > 1) in.fail("a flag is neither 0 nor 1");
  return value == 1;
}

void read_expressions(Source& in, std::vector<IntExpr>& list) {
  read_list(in, list, 1, [&] { return in.expression(); });
}

void read_tensors(Source& in, std::vector<TensorInfo>& list) {
  read_list(in, list, 17, [&] {
    TensorInfo tensor;
    tensor.name = in.text();
    tensor.dtype = read_enum(in, DType::boolean, "an element type is out of range");
    read_expressions(in, tensor.shape);
    return tensor;
  });
}

BufferRef read_reference(Source& in) {
  BufferRef ref;
  ref.storage = read_enum(in, Storage::view, "a storage kind is out of range");
  ref.index = in.i32();
  return ref;
}

std::optional<BufferRef> read_optional(Source& in) {
  if (!read_flag(in)) return std::nullopt;
  return read_reference(in);
}

void read_control(Source& in, Program& program) {
  read_list(in, program.views, 12, [&] {
    View view;
    view.base = read_reference(in);
    view.loop = in.i32();
    view.first = in.expression();
    view.stride = in.expression();
    view.bytes = in.expression();
    return view;
  });
  read_list(in, program.loops, 8, [&] {
    Loop loop;
    if (read_flag(in)) loop.count = in.expression();
    loop.trip = read_optional(in);
    loop.condition = read_optional(in);
    loop.next = read_optional(in);
    loop.iteration = in.i32();
    loop.dim = in.i32();
    return loop;
  });
  read_list(in, program.messages, 8, [&] { return std::string(in.text()); });
  read_list(in, program.body, 20, [&] {
    Instruction instruction;
    instruction.kind = read_enum(in, InstructionKind::read, "an instruction kind is out of range");
    instruction.first = in.i32();
    instruction.count = in.i32();
    instruction.from = read_reference(in);
    instruction.to = read_reference(in);
    instruction.bytes = in.expression();
    return instruction;
  });
}

void read_stages(Source& in, std::vector<Stage>& list) {
  read_list(in, list, 34, [&] {
    Stage stage;
    stage.kernel = in.i32();
    read_list(in, stage.arguments, 5, [&] { return read_reference(in); });
    stage.tasks = in.expression();
    read_list(in, stage.after, 4, [&] { return in.i32(); });
    stage.wave = in.i32();
    stage.task_cost = in.f64();
    stage.library = read_flag(in);
    return stage;
  });
}

void read_buffers(Source& in, Program& program) {
  read_list(in, program.constants, 32, [&] {
    ConstantInfo constant;
    constant.digest = in.digest();
    constant.bytes = in.u64();
    const auto data = in.bytes();
    constant.inline_data.assign(data.begin(), data.end());
    return constant;
  });
  read_list(in, program.prepared, 1, [&] { return PreparedInfo{in.expression()}; });
  read_list(in, program.workspace, 14, [&] {
    WorkspaceSlot slot;
    slot.bytes = in.expression();
    slot.first = in.i32();
    slot.last = in.i32();
    slot.offset = in.expression();
    slot.region = in.i32();
    return slot;
  });
  program.workspace_bytes = in.expression();
}

void read_kernels(Source& in, Program& program) {
  read_list(in, program.kernels, 33, [&] {
    KernelInfo kernel;
    kernel.name = in.text();
    kernel.blob = in.i32();
    kernel.entry = in.u64();
    read_expressions(in, kernel.dims);
    kernel.scratch_bytes = in.expression();
    kernel.arguments = in.i32();
    return kernel;
  });
}

}  // namespace

void write(ByteWriter& out, const Program& program) {
  out.u32(kFormat);
  out.u8(program.flush_denormals ? 1 : 0);
  write_list(out, program.dims, [&](const DimInfo& dim) {
    out.text(dim.name);
    out.i64(dim.lower);
    out.u8(dim.upper ? 1 : 0);
    if (dim.upper) dim.upper->write(out);
    out.u8(dim.run ? 1 : 0);
  });
  write_tensors(out, program.inputs);
  write_tensors(out, program.outputs);
  write_list(out, program.assumptions,
             [&](const Assumption& assumption) { assumption.a.write(out), assumption.b.write(out); });
  write_list(out, program.constants,
             [&](const ConstantInfo& c) { out.digest(c.digest), out.u64(c.bytes), out.bytes(c.inline_data); });
  write_list(out, program.prepared, [&](const PreparedInfo& prepared) { prepared.bytes.write(out); });
  write_list(out, program.workspace, [&](const WorkspaceSlot& slot) {
    slot.bytes.write(out);
    out.i32(slot.first);
    out.i32(slot.last);
    slot.offset.write(out);
    out.i32(slot.region);
  });
  program.workspace_bytes.write(out);
  write_list(out, program.kernels, [&](const KernelInfo& kernel) {
    out.text(kernel.name);
    out.i32(kernel.blob);
    out.u64(kernel.entry);
    write_expressions(out, kernel.dims);
    kernel.scratch_bytes.write(out);
    out.i32(kernel.arguments);
  });
  write_stages(out, program.prepare);
  write_stages(out, program.stages);
  write_control(out, program);
  write_list(out, program.copies,
             [&](const Program::Copy& copy) { write_reference(out, copy.from), out.i32(copy.output); });
  write_list(out, program.defaults, [&](const InputDefault& given) {
    out.i32(given.input);
    out.i32(given.constant);
    write_list(out, given.shape, [&](int64_t extent) { out.i64(extent); });
  });
}

Result<Program> read(ByteReader& from) {
  Source in(from);
  if (const uint32_t format = in.u32(); in.ok() && format != kFormat)
    return make_error(Code::version_mismatch, "the program has format %u, this build reads %u", format, kFormat)
        .with_stage("program");
  Program program;
  program.flush_denormals = read_flag(in);
  read_list(in, program.dims, 18, [&] {
    DimInfo dim;
    dim.name = in.text();
    dim.lower = in.i64();
    if (read_flag(in)) dim.upper = in.expression();
    dim.run = read_flag(in);
    return dim;
  });
  read_tensors(in, program.inputs);
  read_tensors(in, program.outputs);
  read_list(in, program.assumptions, 2, [&] {
    Assumption assumption;
    assumption.a = in.expression();
    assumption.b = in.expression();
    return assumption;
  });
  read_buffers(in, program);
  read_kernels(in, program);
  read_stages(in, program.prepare);
  read_stages(in, program.stages);
  read_control(in, program);
  read_list(in, program.copies, 9, [&] {
    Program::Copy copy;
    copy.from = read_reference(in);
    copy.output = in.i32();
    return copy;
  });
  read_list(in, program.defaults, 16, [&] {
    InputDefault given;
    given.input = in.i32();
    given.constant = in.i32();
    read_list(in, given.shape, 8, [&] { return in.i64(); });
    return given;
  });
  from = in;
  if (!in.ok()) return in.status().with_stage("program");
  // Whatever is wrong with bytes that claim to be a program is corruption, but what is merely beyond this build stays
  // that.
  if (const Status status = verify(program); !status.ok()) {
    if (status.code() == Code::unsupported) return status;
    return Status(Code::corrupt, "not a legal program: " + status.message()).with_stage("program");
  }
  return program;
}

}  // namespace quartet::program
