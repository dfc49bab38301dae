// Names and types of inputs, outputs and values as the host sees them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/int_expr.h"
#include "capi/call.h"
#include "quartet_c.h"

namespace quartet::capi {

// What a quartet_tensor_info points into.
class TensorInfo {
 public:
  TensorInfo() = default;
  TensorInfo(std::string name, DType dtype, const std::vector<IntExpr>& shape, const IntExpr::NameOf& name_of,
             bool optional = false);
  TensorInfo(TensorInfo&&) = default;
  TensorInfo& operator=(TensorInfo&&) = default;

  quartet_tensor_info view() const;

 private:
  std::string name_;
  DType dtype_ = DType::invalid;
  bool optional_ = false;
  std::vector<int64_t> dims_;
  std::vector<std::string> texts_;
  std::vector<const char*> text_pointers_;
};

// Fills `out` with the info at `index`.
Status give_info(const std::vector<TensorInfo>& infos, uint32_t index, quartet_tensor_info* out);

}  // namespace quartet::capi
