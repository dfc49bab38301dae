// The builder handle.
#pragma once

#include <memory>
#include <vector>

#include "capi/context.h"
#include "capi/tensor_info.h"
#include "graph/builder.h"

struct quartet_builder : quartet::capi::Handle<quartet::capi::HandleKind::builder> {
  quartet::capi::ContextRef context;
  quartet::graph::Builder builder;
  std::vector<quartet::IntExpr> dims;  // number -2 - i in dims arrays is dims[i]
  quartet::capi::TensorInfo info;      // of the last value asked
  bool broken = false;                 // a call ran out of memory half-way
};

namespace quartet::capi {

// Ok for a live builder of this process that can go on.
Status check_builder(const quartet_builder* builder);
HostMemory* memory_of(const quartet_builder* builder);

// The frame of calls that change the builder: one that runs out of memory may leave it half changed, and spends it.
template <class Body>
int32_t build(quartet_builder* builder, quartet_error** error, Body&& body) noexcept {
  return guarded(memory_of(builder), error, [&]() -> Status {
    QUARTET_TRY(check_builder(builder));
    try {
      return body(builder->builder);
    } catch (const std::bad_alloc&) {
      builder->broken = true;
      throw;
    }
  });
}

// A dims array as a shape.
Result<graph::Shape> shape_argument(const quartet_builder& builder, const int64_t* dims, size_t count,
                                    const char* parameter);
Result<graph::TensorType> type_argument(const quartet_builder& builder, int32_t dtype, int32_t rank,
                                        const int64_t* dims);

// The attributes of an op, the regions and function among them.
struct OpArguments {
  graph::Attrs attrs;
  graph::OpExtras extras;
};
Result<OpArguments> attrs_argument(const quartet_builder& builder, const graph::OpInfo& op, const quartet_attr* attrs,
                                   uint32_t count);

}  // namespace quartet::capi
