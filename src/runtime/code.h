// Machine code in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/os.h"
#include "base/status.h"
#include "device/device.h"

namespace quartet::runtime {

// Unsupported, naming what is missing, unless every needed feature is among the host's.
Status check_features(std::span<const std::string> needed, const CpuModel& host);

// A private copy of position-independent code, mapped readable and executable. No page of it is ever writable and
// executable at once. Unmapped when the last pointer goes.
class CodeImage {
 public:
  static Result<std::shared_ptr<const CodeImage>> map(std::span<const uint8_t> code, Os& os);
  ~CodeImage();
  CodeImage(const CodeImage&) = delete;
  CodeImage& operator=(const CodeImage&) = delete;

  const uint8_t* data() const { return static_cast<const uint8_t*>(pages_); }
  size_t size() const { return size_; }

 private:
  CodeImage(void* pages, size_t size, Os& os) : pages_(pages), size_(size), os_(os) {}
  void* pages_;
  size_t size_;
  Os& os_;
};

}  // namespace quartet::runtime
