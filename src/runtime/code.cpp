#include "runtime/code.h"

#include <algorithm>
#include <cstring>

namespace quartet::runtime {

Status check_features(std::span<const std::string> needed, const CpuModel& host) {
  std::string missing;
  for (const std::string& feature : needed)
    if (std::ranges::find(host.features, feature) == host.features.end())
      missing += (missing.empty() ? "" : ", ") + feature;
  if (missing.empty()) return {};
  return Status(Code::unsupported,
                "the code needs processor features that '" + host.name + "' does not have: " + missing)
      .with_stage("runtime");
}

Result<std::shared_ptr<const CodeImage>> CodeImage::map(std::span<const uint8_t> code, Os& os) {
  auto pages = os.map_pages(code.size());
  if (!pages.ok()) return pages.status().with_prefix("mapping code: ");
  std::shared_ptr<CodeImage> image(new CodeImage(pages.value(), code.size(), os));
  std::memcpy(pages.value(), code.data(), code.size());
  if (const Status status = os.protect_pages(pages.value(), code.size(), PageAccess::read_execute); !status.ok())
    return status.with_prefix("making code executable: ");
  return std::shared_ptr<const CodeImage>(std::move(image));
}

CodeImage::~CodeImage() { os_.unmap_pages(pages_, size_); }

}  // namespace quartet::runtime
