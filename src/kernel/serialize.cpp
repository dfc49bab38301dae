// Kernel IR as bytes: a tag and version, the header, the value types, the body. Each statement writes only the fields
// its operation uses.
#include "kernel/ops.h"

namespace quartet::kernel {
namespace {

constexpr uint32_t kMagic = 0x52494b51;  // "QKIR"
constexpr uint32_t kVersion = 1;
constexpr int kMaxDepth = 32;

void write_ids(ByteWriter& out, const std::vector<ValueId>& ids) {
  out.u64(ids.size());
  for (const ValueId id : ids) out.i32(id);
}

std::vector<ValueId> read_ids(ByteReader& in) {
  std::vector<ValueId> ids(in.count(sizeof(ValueId)));
  for (ValueId& id : ids) id = in.i32();
  return ids;
}

void write_region(ByteWriter& out, const Region& region);

void write_statement(ByteWriter& out, const Statement& s) {
  out.u8(static_cast<uint8_t>(s.op));
  out.u8(static_cast<uint8_t>(s.dtype));
  write_ids(out, s.operands);
  write_ids(out, s.results);
  switch (s.op) {
    case Op::constant:
    case Op::dim:
      out.i64(s.immediate);
      break;
    case Op::load:
    case Op::store:
      out.i32(s.buffer);
      break;
    case Op::loop:
      out.u8(static_cast<uint8_t>(s.loop));
      break;
    case Op::reduce:
      out.u8(static_cast<uint8_t>(s.reduce));
      out.i32(s.interleave);
      out.i64(s.chunk);
      break;
    case Op::contract:
      out.i32(s.buffer);
      out.i32(s.buffer_b);
      out.i32(s.rows);
      out.i32(s.columns);
      out.i32(s.unroll);
      break;
    default:
      break;
  }
  if (!has_regions(s.op)) return;
  out.u8(static_cast<uint8_t>(s.regions.size()));
  for (const Region& region : s.regions) write_region(out, region);
}

void write_region(ByteWriter& out, const Region& region) {
  write_ids(out, region.arguments);
  out.u64(region.body.size());
  for (const Statement& s : region.body) write_statement(out, s);
}

Region read_region(ByteReader& in, int depth);

Statement read_statement(ByteReader& in, int depth) {
  Statement s{};
  const uint8_t op = in.u8();
  if (op >= kOpCount) {
    in.fail("an unknown operation");
    return s;
  }
  s.op = static_cast<Op>(op);
  const uint8_t dtype = in.u8();
  if (!is_valid(static_cast<DType>(dtype))) in.fail("an unknown type");
  s.dtype = static_cast<DType>(dtype);
  s.operands = read_ids(in);
  s.results = read_ids(in);
  switch (s.op) {
    case Op::constant:
    case Op::dim:
      s.immediate = in.i64();
      break;
    case Op::load:
    case Op::store:
      s.buffer = in.i32();
      break;
    case Op::loop:
      s.loop = static_cast<LoopKind>(in.u8());
      break;
    case Op::reduce:
      s.reduce = static_cast<ReduceOp>(in.u8());
      s.interleave = in.i32();
      s.chunk = in.i64();
      break;
    case Op::contract:
      s.buffer = in.i32();
      s.buffer_b = in.i32();
      s.rows = in.i32();
      s.columns = in.i32();
      s.unroll = in.i32();
      break;
    default:
      break;
  }
  if (!has_regions(s.op)) return s;
  const uint8_t regions = in.u8();
  if (regions > 2) in.fail("too many regions");
  for (uint8_t r = 0; r < regions && in.ok(); ++r) s.regions.push_back(read_region(in, depth + 1));
  return s;
}

Region read_region(ByteReader& in, int depth) {
  Region region;
  if (depth > kMaxDepth) {
    in.fail("regions nest too deep");
    return region;
  }
  region.arguments = read_ids(in);
  const size_t statements = in.count(18);  // the least a statement takes
  for (size_t i = 0; i < statements && in.ok(); ++i) region.body.push_back(read_statement(in, depth));
  return region;
}

void read_header(ByteReader& in, Kernel& kernel) {
  if (in.u32() != kMagic) in.fail("not kernel IR");
  if (in.u32() != kVersion) in.fail("kernel IR of another version");
  kernel.name = in.text();
  kernel.dims = in.i32();
  const size_t bounds = in.count(1);
  for (size_t i = 0; i < bounds && in.ok(); ++i) kernel.dim_bounds.push_back(IntExpr::read(in));
  const size_t buffers = in.count(15);
  for (size_t i = 0; i < buffers && in.ok(); ++i) {
    Buffer buffer;
    buffer.name = in.text();
    buffer.dtype = static_cast<DType>(in.u8());
    buffer.scope = static_cast<Scope>(in.u8());
    buffer.alignment = in.i32();
    buffer.elements = IntExpr::read(in);
    kernel.buffers.push_back(std::move(buffer));
  }
  for (const uint8_t type : in.bytes()) kernel.value_types.push_back(static_cast<DType>(type));
  kernel.tasks = IntExpr::read(in);
}

}  // namespace

Bytes serialize(const Kernel& kernel) {
  ByteWriter out;
  out.u32(kMagic);
  out.u32(kVersion);
  out.text(kernel.name);
  out.i32(kernel.dims);
  out.u64(kernel.dim_bounds.size());
  for (const IntExpr& bound : kernel.dim_bounds) bound.write(out);
  out.u64(kernel.buffers.size());
  for (const Buffer& buffer : kernel.buffers) {
    out.text(buffer.name);
    out.u8(static_cast<uint8_t>(buffer.dtype));
    out.u8(static_cast<uint8_t>(buffer.scope));
    out.i32(buffer.alignment);
    buffer.elements.write(out);
  }
  out.u64(kernel.value_types.size());
  for (const DType type : kernel.value_types) out.u8(static_cast<uint8_t>(type));
  kernel.tasks.write(out);
  write_region(out, kernel.body);
  return out.take();
}

Result<Kernel> deserialize(std::span<const uint8_t> bytes) {
  ByteReader in(bytes, "kernel IR");
  Kernel kernel;
  read_header(in, kernel);
  if (in.ok()) kernel.body = read_region(in, 0);
  QUARTET_TRY(in.finish());
  QUARTET_TRY(verify(kernel));
  return kernel;
}

}  // namespace quartet::kernel
