// The artifact: a compiled program as bytes, position independent, ready to be mapped and run. What a cache keeps and
// what travels in a bundle.
//
// Layout: a header with a table of sections, then the sections in ascending order of kind and offset, each with its
// XXH3-128 checksum; the header has one too, and padding is zero, so that no byte can change unnoticed. Code starts on
// a page boundary and each code blob on a 64-byte boundary inside it; constants stand on 64-byte boundaries. Same
// content, same bytes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/status.h"

namespace quartet::artifact {

inline constexpr uint32_t kVersion = 3;  // a change of any meaning below, or of base/kernel_abi.h, needs a new one
inline constexpr size_t kPage = 4096;
inline constexpr size_t kAlignment = 64;

using Metadata = std::map<std::string, std::string, std::less<>>;

struct InlineConstant {
  Digest digest;
  std::span<const uint8_t> data;
};

// What goes in; spans must outlive `write`.
struct Content {
  std::string target;                          // CpuModel::target_text()
  std::vector<std::string> features;           // that the code needs
  std::span<const uint8_t> program;            // program::write
  std::vector<std::span<const uint8_t>> code;  // blobs' images; KernelInfo::blob is an index
  std::vector<InlineConstant> constants;       // each digest once
  Metadata metadata;                           // compile times, predicted times, dumps
};
Bytes write(const Content& content);

// What comes out: views into the bytes given to `read`.
struct View {
  std::string target;
  std::vector<std::string> features;
  std::span<const uint8_t> program;
  std::span<const uint8_t> code;  // all blobs, page-aligned relative to the artifact's start
  struct CodeBlob {
    uint64_t offset = 0, size = 0;  // in `code`
  };
  std::vector<CodeBlob> blobs;
  std::vector<InlineConstant> constants;
  Metadata metadata;
};
// Trusts nothing: every size, order, alignment and checksum is checked. Failures: corrupt, version_mismatch.
Result<View> read(std::span<const uint8_t> bytes);

}  // namespace quartet::artifact
