#include "import/onnx/tensors.h"

#include <cstring>

#include "base/checked.h"
#include "graph/constant.h"

namespace quartet::import::onnx {

namespace {

constexpr uint64_t kMaxExternalBytes = uint64_t{1} << 40;

std::string quoted(std::string_view name) { return "'" + std::string(name.substr(0, 200)) + "'"; }

template <class To, class From>
Bytes converted(const std::vector<From>& numbers) {
  Bytes bytes(numbers.size() * sizeof(To));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const To value = static_cast<To>(numbers[i]);
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

// The bytes of the typed field that an element type uses. 16-bit floats are stored as their bits.
Bytes typed_bytes(const Tensor& tensor, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return converted<float>(tensor.floats);
    case DType::f64:
      return converted<double>(tensor.doubles);
    case DType::i64:
      return converted<int64_t>(tensor.ints64);
    case DType::u64:
      return converted<uint64_t>(tensor.uints64);
    case DType::u32:
      return converted<uint32_t>(tensor.uints64);
    case DType::i32:
      return converted<int32_t>(tensor.ints32);
    case DType::i16:
      return converted<int16_t>(tensor.ints32);
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return converted<uint16_t>(tensor.ints32);
    case DType::i8:
      return converted<int8_t>(tensor.ints32);
    case DType::u8:
      return converted<uint8_t>(tensor.ints32);
    case DType::boolean: {
      Bytes bytes;
      for (const int32_t number : tensor.ints32) bytes.push_back(number != 0);
      return bytes;
    }
    case DType::invalid:
      break;
  }
  return {};
}

// A file inside the folder, or a failure.
Result<std::string> external_path(const Tensor& tensor, const ExternalFiles& files) {
  const std::string name = quoted(tensor.name);
  if (!files.os)
    return make_error(Code::unsupported,
                      "tensor %s is in an external file, which only a model read from a file may have", name.c_str());
  const std::string location(tensor.location);
  const bool leaves = location.empty() || location[0] == '/' || location.find('\0') != std::string::npos ||
                      ("/" + location + "/").find("/../") != std::string::npos;
  if (leaves)
    return make_error(Code::invalid_argument, "tensor %s: external file '%s' is not inside the model's folder",
                      name.c_str(), location.c_str());
  QUARTET_ASSIGN(const std::string folder, files.os->real_path(files.folder.empty() ? "." : files.folder));
  auto real = files.os->real_path(files.folder + location);
  if (!real.ok()) return real.status().with_prefix("tensor " + name + ": ");
  const std::string path = real.take();
  if (path.compare(0, folder.size(), folder) != 0 || (folder != "/" && path[folder.size()] != '/'))
    return make_error(Code::invalid_argument, "tensor %s: external file '%s' leads outside the model's folder",
                      name.c_str(), location.c_str());
  return path;
}

Result<graph::Constant> external_constant(const Tensor& tensor, const graph::TensorType& type, size_t bytes,
                                          ExternalFiles& files) {
  QUARTET_ASSIGN(const std::string path, external_path(tensor, files));
  std::shared_ptr<const Blob>& file = files.read[path];
  if (!file) {
    QUARTET_ASSIGN(Blob contents, files.os->read_file(path, kMaxExternalBytes));
    file = std::make_shared<const Blob>(std::move(contents));
  }
  const std::span<const uint8_t> all = file->span();
  const auto offset = static_cast<uint64_t>(tensor.offset.value_or(0));
  const uint64_t length = tensor.length ? static_cast<uint64_t>(*tensor.length) : bytes;
  if (length != bytes || offset > all.size() || bytes > all.size() - offset)
    return make_error(Code::corrupt, "tensor %s: %zu bytes at %llu are not in its external file of %zu bytes",
                      quoted(tensor.name).c_str(), bytes, static_cast<unsigned long long>(offset), all.size());
  const auto data = all.subspan(static_cast<size_t>(offset), bytes);
  if (reinterpret_cast<uintptr_t>(data.data()) % size_of(type.dtype) == 0)
    return graph::make_constant(type, data, file);
  return graph::copy_constant(type, data);
}

}  // namespace

std::optional<DType> dtype_of(int32_t element_type) {
  switch (static_cast<ElementType>(element_type)) {
    case ElementType::f32:
      return DType::f32;
    case ElementType::u8:
      return DType::u8;
    case ElementType::i8:
      return DType::i8;
    case ElementType::u16:
      return DType::u16;
    case ElementType::i16:
      return DType::i16;
    case ElementType::i32:
      return DType::i32;
    case ElementType::i64:
      return DType::i64;
    case ElementType::boolean:
      return DType::boolean;
    case ElementType::f16:
      return DType::f16;
    case ElementType::f64:
      return DType::f64;
    case ElementType::u32:
      return DType::u32;
    case ElementType::u64:
      return DType::u64;
    case ElementType::bf16:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

std::string type_name(int32_t element_type) {
  if (const auto dtype = dtype_of(element_type)) return dtype_name(*dtype);
  switch (static_cast<ElementType>(element_type)) {
    case ElementType::undefined:
      return "undefined";
    case ElementType::string:
      return "string";
    case ElementType::complex64:
      return "complex64";
    case ElementType::complex128:
      return "complex128";
    default:
      return "type " + std::to_string(element_type);
  }
}

Result<graph::Constant> constant_of(const Tensor& tensor, ExternalFiles& files,
                                    const std::shared_ptr<const void>& owner) {
  const std::string name = quoted(tensor.name);
  const auto dtype = dtype_of(tensor.element_type);
  if (!dtype)
    return make_error(Code::unsupported, "tensor %s has element type %s", name.c_str(),
                      type_name(tensor.element_type).c_str());
  graph::TensorType type{*dtype, {}};
  for (const int64_t d : tensor.dims) {
    if (d < 0) return make_error(Code::corrupt, "tensor %s has a negative dim", name.c_str());
    type.shape.emplace_back(d);
  }
  if (type.rank() > graph::kMaxRank)
    return make_error(Code::unsupported, "tensor %s has rank %zu, at most %zu", name.c_str(), type.rank(),
                      graph::kMaxRank);
  const auto bytes = type.bytes();
  if (!bytes) return make_error(Code::corrupt, "tensor %s has an impossible size", name.c_str());
  if (tensor.external) return external_constant(tensor, type, *bytes, files);
  if (!tensor.raw) {
    const Bytes data = typed_bytes(tensor, *dtype);
    if (data.size() != *bytes)
      return make_error(Code::corrupt, "tensor %s has %zu bytes of data, its shape needs %zu", name.c_str(),
                        data.size(), *bytes);
    return graph::copy_constant(type, data);
  }
  const std::span<const uint8_t> raw(reinterpret_cast<const uint8_t*>(tensor.raw->data()), tensor.raw->size());
  if (raw.size() != *bytes)
    return make_error(Code::corrupt, "tensor %s has %zu bytes of data, its shape needs %zu", name.c_str(), raw.size(),
                      *bytes);
  if (owner && reinterpret_cast<uintptr_t>(raw.data()) % size_of(*dtype) == 0)
    return graph::make_constant(type, raw, owner);
  return graph::copy_constant(type, raw);
}

}  // namespace quartet::import::onnx
