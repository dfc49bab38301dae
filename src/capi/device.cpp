// Devices: the host's CPU.
#include <unistd.h>

#include "capi/blob.h"
#include "capi/context.h"

namespace quartet::capi {

Result<const quartet_device*> device_argument(const quartet_context& context, const quartet_device* device) {
  if (device == nullptr) return static_cast<const quartet_device*>(context.devices.front().get());
  QUARTET_TRY(check_handle(device, "device"));
  if (device->context != &context) return Status(Code::invalid_argument, "device belongs to another context");
  return device;
}

namespace {

uint64_t level_bytes(const CpuModel& model, std::string_view name) {
  const MemoryLevel* level = model.level(name);
  return level != nullptr && level->capacity > 0 ? static_cast<uint64_t>(level->capacity) : 0;
}

uint64_t memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
}

HostMemory* memory_of_device(const quartet_device* device) {
  device = valid_or_null(device);
  return device != nullptr ? device->context->memory : nullptr;
}

}  // namespace
}  // namespace quartet::capi

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

uint32_t quartet_device_count(const quartet_context* context) {
  context = valid_or_null(context);
  return context != nullptr ? static_cast<uint32_t>(context->devices.size()) : 0;
}

int32_t quartet_device_get(const quartet_context* context, uint32_t index, const quartet_device** out,
                           quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_handle(context, "context"));
    QUARTET_TRY(not_null(out, "out"));
    if (index >= context->devices.size()) {
      return make_error(Code::not_found, "index is %u, but there are %zu devices", index, context->devices.size());
    }
    *out = context->devices[index].get();
    return {};
  });
}

int32_t quartet_device_find(const quartet_context* context, const char* name, size_t name_size,
                            const quartet_device** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_handle(context, "context"));
    QUARTET_TRY(not_null(out, "out"));
    QUARTET_ASSIGN(const std::string_view wanted, name_argument(name, name_size, "name"));
    std::string known;
    for (const auto& device : context->devices) {
      if (wanted == device->name || (wanted == "cpu" && device->name == "cpu:host")) {
        *out = device.get();
        return {};
      }
      known += (known.empty() ? "" : ", ") + device->name;
    }
    return make_error(Code::not_found, "no device is called '%.*s'; there is %s",
                      static_cast<int>(std::min<size_t>(wanted.size(), 80)), wanted.data(), known.c_str());
  });
}

int32_t quartet_device_get_info(const quartet_device* device, quartet_device_info* out, quartet_error** error) {
  clear_struct(out);
  return guarded(memory_of_device(device), error, [&]() -> Status {
    QUARTET_TRY(check_handle(device, "device"));
    QUARTET_TRY(check_struct(out, "out"));
    const CpuModel& model = device->model;
    quartet_device_info info{};
    info.kind = QUARTET_DEVICE_CPU;
    info.name = device->name.c_str();
    info.description = model.name.c_str();
    info.isa = isa_name(model.isa);
    info.cores = model.cores;
    info.threads = model.cores;
    info.vector_bytes = model.vector_bytes;
    info.l1_bytes = level_bytes(model, "L1");
    info.l2_bytes = level_bytes(model, "L2");
    info.l3_bytes = level_bytes(model, "L3");
    info.memory_bytes = memory_bytes();
    write_struct(out, info);
    return {};
  });
}

int32_t quartet_device_target(const quartet_device* device, quartet_blob** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of_device(device), error, [&]() -> Status {
    QUARTET_TRY(check_handle(device, "device"));
    QUARTET_TRY(not_null(out, "out"));
    *out = make_blob(device->model.target_text());
    return {};
  });
}
