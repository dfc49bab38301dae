#include "artifact/artifact.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace quartet::artifact {
namespace {

constexpr char kMagic[8] = {'Q', 'u', 'a', 'r', 't', 'e', 't', '\x01'};

// In file order. Each kind stands exactly once.
enum class Kind : uint32_t {
  target = 1,
  program = 2,
  constants = 3,
  constant_data = 4,
  metadata = 5,
  blobs = 6,
  code = 7
};
constexpr uint32_t kKinds = 7;

constexpr size_t kEntrySize = 4 + 4 + 8 + 8 + 16;
// Magic, version, number of sections, total size, table, checksum of all before it.
constexpr size_t kTableOffset = 8 + 4 + 4 + 8;
constexpr size_t kHeaderSize = kTableOffset + kKinds * kEntrySize + 16;

size_t alignment_of(Kind kind) {
  if (kind == Kind::code) return kPage;
  return kind == Kind::constant_data ? kAlignment : 8;
}

struct Section {
  uint64_t offset = 0;
  std::span<const uint8_t> data;
};

Bytes target_section(const Content& content) {
  ByteWriter out;
  out.text(content.target);
  out.u64(content.features.size());
  for (const std::string& feature : content.features) out.text(feature);
  return out.take();
}

Bytes metadata_section(const Metadata& metadata) {
  ByteWriter out;
  out.u64(metadata.size());
  for (const auto& [key, value] : metadata) out.text(key), out.text(value);
  return out.take();
}

// The parts end to end, each on an aligned boundary, with their offsets and sizes written to `index`.
Bytes gather(const std::vector<std::span<const uint8_t>>& parts, ByteWriter& index) {
  ByteWriter out;
  for (const auto part : parts) {
    out.align(kAlignment);
    index.u64(out.size());
    index.u64(part.size());
    out.raw(part.data(), part.size());
  }
  return out.take();
}

Status corrupt(const std::string& what) { return Status(Code::corrupt, "artifact: " + what).with_stage("artifact"); }

bool all_zero(std::span<const uint8_t> bytes) {
  return std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; });
}

// Checks header, order, alignment, padding and checksums.
Status read_sections(std::span<const uint8_t> bytes, Section (&sections)[kKinds]) {
  if (bytes.size() < kHeaderSize) return corrupt(std::to_string(bytes.size()) + " bytes are too few for a header");
  if (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) return corrupt("the magic bytes are wrong");
  ByteReader in(bytes.subspan(sizeof kMagic), "artifact header");
  const uint32_t version = in.u32();
  if (version != kVersion)
    return make_error(Code::version_mismatch, "the artifact has version %u, this build reads %u", version, kVersion)
        .with_stage("artifact");
  if (in.u32() != kKinds) return corrupt("the number of sections is wrong");
  if (in.u64() != bytes.size()) return corrupt("its stated size is not the size of the bytes given");
  uint64_t end = kHeaderSize;
  Digest checksums[kKinds];
  for (uint32_t k = 0; k < kKinds; ++k) {
    const uint32_t kind = in.u32(), reserved = in.u32();
    const uint64_t offset = in.u64(), size = in.u64();
    checksums[k] = in.digest();
    if (kind != k + 1 || reserved != 0) return corrupt("the section table is out of order");
    const auto expected = checked_round_up(end, alignment_of(static_cast<Kind>(kind)));
    if (!expected || offset != *expected || offset > bytes.size() || size > bytes.size() - offset)
      return corrupt("section " + std::to_string(kind) + " is misplaced");
    if (!all_zero(bytes.subspan(end, offset - end))) return corrupt("padding is not zero");
    sections[k] = {offset, bytes.subspan(offset, size)};
    end = offset + size;
  }
  if (end != bytes.size()) return corrupt("there are bytes behind the last section");
  if (in.digest() != digest_of(bytes.first(kHeaderSize - 16))) return corrupt("the header's checksum is wrong");
  for (uint32_t k = 0; k < kKinds; ++k)
    if (digest_of(sections[k].data) != checksums[k])
      return corrupt("the checksum of section " + std::to_string(k + 1) + " is wrong");
  return {};
}

// Offsets and sizes of aligned parts that fill `data`, read from `in`.
struct Part {
  uint64_t offset = 0, size = 0;
};
Part read_part(ByteReader& in, std::span<const uint8_t> data, uint64_t& end) {
  Part part;
  part.offset = in.u64();
  part.size = in.u64();
  const auto expected = checked_round_up(end, kAlignment);
  if (!expected || part.offset != *expected || part.offset > data.size() || part.size > data.size() - part.offset) {
    in.fail("a part is misplaced");
    return {};
  }
  end = part.offset + part.size;
  return part;
}

Status read_target(std::span<const uint8_t> bytes, View& view) {
  ByteReader in(bytes, "artifact target");
  view.target = in.text();
  const size_t count = in.count(8);
  for (size_t i = 0; i < count && in.ok(); ++i) view.features.emplace_back(in.text());
  return in.finish();
}

Status read_metadata(std::span<const uint8_t> bytes, View& view) {
  ByteReader in(bytes, "artifact metadata");
  const size_t count = in.count(16);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    std::string key(in.text());
    if (!view.metadata.empty() && key <= view.metadata.rbegin()->first) in.fail("keys are out of order");
    view.metadata.emplace_hint(view.metadata.end(), std::move(key), in.text());
  }
  return in.finish();
}

Status read_constants(const Section& index, const Section& data, View& view) {
  ByteReader in(index.data, "artifact constants");
  const size_t count = in.count(32);
  std::vector<Digest> digests;
  for (size_t i = 0; i < count && in.ok(); ++i) digests.push_back(in.digest());
  uint64_t end = 0;
  for (size_t i = 0; i < count && in.ok(); ++i) {
    const Part part = read_part(in, data.data, end);
    view.constants.push_back({digests[i], data.data.subspan(part.offset, part.size)});
  }
  if (end != data.data.size()) in.fail("there are bytes behind the last constant");
  return in.finish();
}

Status read_blobs(const Section& index, const Section& code, View& view) {
  ByteReader in(index.data, "artifact code table");
  const size_t count = in.count(16);
  uint64_t end = 0;
  for (size_t i = 0; i < count && in.ok(); ++i) {
    const Part part = read_part(in, code.data, end);
    view.blobs.push_back({part.offset, part.size});
  }
  if (end != code.data.size()) in.fail("there are bytes behind the last blob");
  view.code = code.data;
  return in.finish();
}

}  // namespace

Bytes write(const Content& content) {
  ByteWriter constant_index, blob_index;
  std::vector<std::span<const uint8_t>> constants;
  constant_index.u64(content.constants.size());
  for (const InlineConstant& constant : content.constants) {
    constant_index.digest(constant.digest);
    constants.push_back(constant.data);
  }
  blob_index.u64(content.code.size());
  const Bytes constant_data = gather(constants, constant_index), code = gather(content.code, blob_index);
  const Bytes target = target_section(content), metadata = metadata_section(content.metadata);
  const std::span<const uint8_t> sections[kKinds] = {
      target, content.program, constant_index.data(), constant_data, metadata, blob_index.data(), code};
  ByteWriter header, body;
  uint64_t offsets[kKinds];
  uint64_t end = kHeaderSize;
  for (uint32_t k = 0; k < kKinds; ++k) {
    const size_t alignment = alignment_of(static_cast<Kind>(k + 1));
    offsets[k] = (end + alignment - 1) / alignment * alignment;
    end = offsets[k] + sections[k].size();
  }
  header.raw(kMagic, sizeof kMagic);
  header.u32(kVersion);
  header.u32(kKinds);
  header.u64(end);
  for (uint32_t k = 0; k < kKinds; ++k) {
    header.u32(k + 1);
    header.u32(0);
    header.u64(offsets[k]);
    header.u64(sections[k].size());
    header.digest(digest_of(sections[k]));
  }
  header.digest(digest_of(header.data()));
  Bytes out = header.take();
  out.resize(end);
  for (uint32_t k = 0; k < kKinds; ++k)
    std::ranges::copy(sections[k], out.begin() + static_cast<Bytes::difference_type>(offsets[k]));
  return out;
}

Result<View> read(std::span<const uint8_t> bytes) {
  Section sections[kKinds];
  QUARTET_TRY(read_sections(bytes, sections));
  const auto section = [&](Kind kind) -> const Section& { return sections[static_cast<uint32_t>(kind) - 1]; };
  View view;
  view.program = section(Kind::program).data;
  QUARTET_TRY(read_target(section(Kind::target).data, view).with_stage("artifact"));
  QUARTET_TRY(read_metadata(section(Kind::metadata).data, view).with_stage("artifact"));
  QUARTET_TRY(read_constants(section(Kind::constants), section(Kind::constant_data), view).with_stage("artifact"));
  QUARTET_TRY(read_blobs(section(Kind::blobs), section(Kind::code), view).with_stage("artifact"));
  return view;
}

}  // namespace quartet::artifact
