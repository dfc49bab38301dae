#include "capi/handle.h"

namespace quartet::capi {

const char* handle_kind_name(uint32_t word) {
  switch (static_cast<HandleKind>(word)) {
    case HandleKind::error:
      return "quartet_error";
    case HandleKind::blob:
      return "quartet_blob";
    case HandleKind::options:
      return "quartet_options";
    case HandleKind::context:
      return "quartet_context";
    case HandleKind::device:
      return "quartet_device";
    case HandleKind::builder:
      return "quartet_builder";
    case HandleKind::graph:
      return "quartet_graph";
    case HandleKind::program:
      return "quartet_program";
    case HandleKind::buffer:
      return "quartet_buffer";
    case HandleKind::binding:
      return "quartet_binding";
    case HandleKind::future:
      return "quartet_future";
  }
  return nullptr;
}

Status check_word(const void* handle, HandleKind kind, const char* parameter) {
  if (handle == nullptr) return make_error(Code::invalid_argument, "%s is NULL", parameter);
  const char* wanted = handle_kind_name(static_cast<uint32_t>(kind));
  if ((reinterpret_cast<uintptr_t>(handle) & 7) != 0) {
    return make_error(Code::invalid_argument, "%s is not a %s", parameter, wanted);
  }
  const uint32_t word = static_cast<const std::atomic<uint32_t>*>(handle)->load(std::memory_order_relaxed);
  if (word == static_cast<uint32_t>(kind)) return {};
  if (word == kDeadHandle) return make_error(Code::invalid_argument, "%s was released before", parameter);
  const char* found = handle_kind_name(word);
  return make_error(Code::invalid_argument, "%s is a %s where a %s is expected", parameter,
                    found != nullptr ? found : "thing unknown", wanted);
}

}  // namespace quartet::capi
