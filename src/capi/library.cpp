// Library-wide questions: versions, names, features.
#include <cstring>

#include "base/compiler_id.h"
#include "base/dtype.h"
#include "capi/blob.h"
#include "capi/call.h"
#include "capi/json.h"
#include "capi/version.h"

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

namespace {

const char* fixed_text(const char* text, size_t* size) {
  if (size != nullptr) *size = std::strlen(text);
  return text;
}

}  // namespace

uint32_t quartet_abi_version() { return (QUARTET_ABI_MAJOR << 16) | QUARTET_ABI_MINOR; }

const char* quartet_version_string(size_t* size) { return fixed_text(kVersion, size); }

int32_t quartet_build_info(quartet_blob** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(nullptr, error, [&]() -> Status {
    QUARTET_TRY(not_null(out, "out"));
    JsonWriter json;
    json.begin_object();
    json.member("version", kVersion);
    json.member("abi", std::to_string(QUARTET_ABI_MAJOR) + "." + std::to_string(QUARTET_ABI_MINOR));
    json.member("compiler_id", compiler_id());
    json.key("features");
    json.begin_list();
    constexpr std::pair<int32_t, const char*> features[] = {{QUARTET_FEATURE_CPU_COMPILER, "cpu_compiler"},
                                                            {QUARTET_FEATURE_DISK_CACHE, "disk_cache"},
                                                            {QUARTET_FEATURE_ONNX, "onnx"}};
    for (const auto& [id, name] : features) {
      if (quartet_has_feature(id) != 0) json.value(name);
    }
    json.end_list();
    json.end_object();
    *out = make_blob(json.take());
    return {};
  });
}

int32_t quartet_has_feature(int32_t feature) {
  switch (feature) {
    case QUARTET_FEATURE_CPU_COMPILER:
      return kHasCpuCompiler ? 1 : 0;
    case QUARTET_FEATURE_DISK_CACHE:
    case QUARTET_FEATURE_ONNX:
      return 1;
    default:
      return 0;
  }
}

const char* quartet_status_name(int32_t status, size_t* size) {
  return fixed_text(code_name(static_cast<Code>(status)), size);
}

const char* quartet_dtype_name(int32_t dtype, size_t* size) {
  const bool known = dtype > 0 && dtype < kDTypeCount;
  return fixed_text(dtype_name(known ? static_cast<DType>(dtype) : DType::invalid), size);
}

int32_t quartet_dtype_find(const char* name, size_t name_size) {
  int32_t found = QUARTET_DTYPE_INVALID;
  quiet(nullptr, [&] {
    const auto text = text_argument(name, name_size, "name");
    if (!text.ok()) return;
    if (const auto type = dtype_from_name(*text)) found = static_cast<int32_t>(*type);
  });
  return found;
}

size_t quartet_dtype_size(int32_t dtype) {
  return dtype > 0 && dtype < kDTypeCount ? size_of(static_cast<DType>(dtype)) : 0;
}
