// ONNX tensors as constants of a graph.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/os.h"
#include "graph/graph.h"
#include "import/onnx/proto.h"

namespace quartet::import::onnx {

// Nothing for types Quartet has not: strings, complex numbers, undefined.
std::optional<DType> dtype_of(int32_t element_type);
// For messages: "string", "complex64", "type 17".
std::string type_name(int32_t element_type);

// Where external data may be read from, and what has been read.
struct ExternalFiles {
  Os* os = nullptr;                                              // null: external data is refused
  std::string folder;                                            // ends in '/', or empty for the current folder
  std::map<std::string, std::shared_ptr<const Blob>> read = {};  // by real path
};

// Copies the data unless `owner` keeps the model's bytes alive and they are aligned for their type.
Result<graph::Constant> constant_of(const Tensor& tensor, ExternalFiles& files,
                                    const std::shared_ptr<const void>& owner);

}  // namespace quartet::import::onnx
