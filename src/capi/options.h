#pragma once

#include "base/options.h"
#include "capi/handle.h"
#include "quartet_c.h"

struct quartet_options : quartet::capi::Handle<quartet::capi::HandleKind::options> {
  quartet::Options values;
};

namespace quartet::capi {

// A copy of the values; defaults for NULL.
Result<Options> options_argument(const quartet_options* options);

}  // namespace quartet::capi
