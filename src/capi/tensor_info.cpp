#include "capi/tensor_info.h"

namespace quartet::capi {

TensorInfo::TensorInfo(std::string name, DType dtype, const std::vector<IntExpr>& shape, const IntExpr::NameOf& name_of,
                       bool optional)
    : name_(std::move(name)), dtype_(dtype), optional_(optional) {
  texts_.reserve(shape.size());  // the pointers below stay good when the object moves
  for (const IntExpr& dim : shape) {
    dims_.push_back(dim.constant().value_or(QUARTET_DIM_UNKNOWN));
    texts_.push_back(dim.to_text(name_of));
  }
  for (const std::string& text : texts_) text_pointers_.push_back(text.c_str());
}

quartet_tensor_info TensorInfo::view() const {
  quartet_tensor_info info{};
  info.dtype = static_cast<int32_t>(dtype_);
  info.rank = static_cast<int32_t>(dims_.size());
  info.flags = optional_ ? QUARTET_TENSOR_OPTIONAL : 0;
  info.name = name_.c_str();
  info.name_size = name_.size();
  info.dims = dims_.data();
  info.dim_texts = text_pointers_.data();
  return info;
}

Status give_info(const std::vector<TensorInfo>& infos, uint32_t index, quartet_tensor_info* out) {
  if (index >= infos.size()) {
    return make_error(Code::invalid_argument, "index is %u, but there are %zu", index, infos.size());
  }
  write_struct(out, infos[index].view());
  return {};
}

}  // namespace quartet::capi
