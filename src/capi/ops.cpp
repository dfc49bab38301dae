// The ops a graph can be built from.
#include "graph/ops.h"
#include "capi/call.h"

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

uint32_t quartet_op_count() { return static_cast<uint32_t>(graph::all_ops().size()); }

int32_t quartet_op_describe(uint32_t index, quartet_op_info* out, quartet_error** error) {
  clear_struct(out);
  return guarded(nullptr, error, [&]() -> Status {
    QUARTET_TRY(check_struct(out, "out"));
    const auto ops = graph::all_ops();
    if (index >= ops.size()) {
      return make_error(Code::invalid_argument, "index is %u, but there are %zu ops", index, ops.size());
    }
    const graph::OpInfo& row = ops[index];
    quartet_op_info info{};
    info.id = static_cast<int32_t>(row.code);
    info.min_inputs = row.min_operands;
    info.max_inputs = row.max_operands;
    info.outputs = row.results;
    info.regions = row.regions;
    info.name = row.name;
    info.doc = row.doc;
    write_struct(out, info);
    return {};
  });
}

int32_t quartet_op_find(const char* name, size_t name_size) {
  int32_t found = -1;
  quiet(nullptr, [&] {
    const auto text = text_argument(name, name_size, "name");
    if (!text.ok()) return;
    if (const auto code = graph::op_from_name(*text)) found = static_cast<int32_t>(*code);
  });
  return found;
}
