#include "device/device.h"

#include <cmath>

namespace quartet {
namespace {

constexpr int64_t kMaxCapacity = int64_t{1} << 50;

bool sane_rate(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::sse2:
      return "sse2";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "invalid";
}

const MemoryLevel* CpuModel::level(std::string_view wanted) const {
  for (const MemoryLevel& each : levels) {
    if (each.name == wanted) return &each;
  }
  return nullptr;
}

std::string CpuModel::target_text() const {
  std::string text = "x86_64 ";
  text += isa_name(isa);
  for (const std::string& feature : features) text += " " + feature;
  return text;
}

Digest CpuModel::digest() const {
  ByteWriter out;
  write(out, *this);
  return digest_of(out.data());
}

void write(ByteWriter& out, const CpuModel& model) {
  out.text(model.name);
  out.u8(static_cast<uint8_t>(model.isa));
  out.u64(model.features.size());
  for (const std::string& feature : model.features) out.text(feature);
  out.i32(model.vector_bytes);
  out.i32(model.vector_registers);
  out.u8(model.fma ? 1 : 0);
  out.i32(model.cores);
  out.f64(model.clock_hz);
  out.f64(model.fma_per_cycle);
  out.u64(model.levels.size());
  for (const MemoryLevel& level : model.levels) {
    out.text(level.name);
    out.i64(level.capacity);
    out.i32(level.line);
    out.f64(level.bandwidth);
    out.u8(level.shared ? 1 : 0);
  }
}

CpuModel read_cpu_model(ByteReader& in) {
  CpuModel model;
  model.name = in.text();
  const uint8_t isa = in.u8();
  if (isa > static_cast<uint8_t>(Isa::avx512)) in.fail("an instruction-set class out of range");
  model.isa = static_cast<Isa>(isa);
  const size_t features = in.count(8);
  for (size_t i = 0; i < features && in.ok(); ++i) model.features.emplace_back(in.text());
  model.vector_bytes = in.i32();
  model.vector_registers = in.i32();
  model.fma = in.u8() != 0;
  model.cores = in.i32();
  model.clock_hz = in.f64();
  model.fma_per_cycle = in.f64();
  const size_t levels = in.count(8 + 8 + 4 + 8 + 1);
  for (size_t i = 0; i < levels && in.ok(); ++i) {
    MemoryLevel level;
    level.name = in.text();
    level.capacity = in.i64();
    level.line = in.i32();
    level.bandwidth = in.f64();
    level.shared = in.u8() != 0;
    if (!in.ok()) break;
    if (level.capacity < 0 || level.capacity > kMaxCapacity || level.line <= 0 || level.line > 1 << 20 ||
        !sane_rate(level.bandwidth)) {
      in.fail("a memory level with impossible numbers");
    }
    model.levels.push_back(std::move(level));
  }
  if (!in.ok()) return {};
  const bool vector = model.vector_bytes == 16 || model.vector_bytes == 32 || model.vector_bytes == 64;
  if (!vector || model.vector_registers < 8 || model.vector_registers > 4096 || model.cores < 1 ||
      model.cores > 1 << 20 || !sane_rate(model.clock_hz) || !sane_rate(model.fma_per_cycle) || model.levels.empty()) {
    in.fail("a processor model with impossible numbers");
    return {};
  }
  return model;
}

}  // namespace quartet
