// Blobs: bytes handed to the host, always followed by a NUL.
#pragma once

#include <span>
#include <string>

#include "capi/handle.h"
#include "quartet_c.h"

struct quartet_blob : quartet::capi::Handle<quartet::capi::HandleKind::blob> {
  std::string bytes;
};

namespace quartet::capi {

// Owned by the caller; throws bad_alloc.
quartet_blob* make_blob(std::string bytes);
quartet_blob* make_blob(std::span<const uint8_t> bytes);

}  // namespace quartet::capi
