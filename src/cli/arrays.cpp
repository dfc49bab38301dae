#include "arrays.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <new>
#include <stdexcept>

namespace cli {

namespace {

struct NpyType {
  const char* descr;
  int32_t dtype;
};
// bf16 has no NumPy type; it is stored as raw 16-bit words.
constexpr NpyType kNpyTypes[] = {{"<f8", QUARTET_DTYPE_F64}, {"<f4", QUARTET_DTYPE_F32}, {"<f2", QUARTET_DTYPE_F16},
                                 {"<i8", QUARTET_DTYPE_I64}, {"<i4", QUARTET_DTYPE_I32}, {"<i2", QUARTET_DTYPE_I16},
                                 {"|i1", QUARTET_DTYPE_I8},  {"<u8", QUARTET_DTYPE_U64}, {"<u4", QUARTET_DTYPE_U32},
                                 {"<u2", QUARTET_DTYPE_U16}, {"|u1", QUARTET_DTYPE_U8},  {"|b1", QUARTET_DTYPE_BOOL},
                                 {"|V2", QUARTET_DTYPE_BF16}};

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw std::runtime_error(path + ": " + reason);
}

// The text after `'key':` in a .npy header, or "".
std::string header_field(const std::string& header, const std::string& key) {
  const size_t at = header.find("'" + key + "'");
  const size_t colon = at == std::string::npos ? at : header.find(':', at);
  if (colon == std::string::npos) return "";
  const size_t begin = header.find_first_not_of(' ', colon + 1);
  if (begin == std::string::npos) return "";
  const char close = header[begin] == '(' ? ')' : header[begin] == '\'' ? '\'' : ',';
  const size_t end = header.find(close, begin + 1);
  if (end == std::string::npos) return "";
  return header.substr(begin, end - begin + (close == ',' ? 0 : 1));
}

quartet::Tensor tensor_from(const std::string& path, int32_t dtype, const std::vector<int64_t>& dims,
                            const uint8_t* data, size_t size) {
  if (dims.size() > QUARTET_MAX_RANK) refuse(path, "more than " + std::to_string(QUARTET_MAX_RANK) + " dims");
  uint64_t elements = 1;
  for (const int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(d), &elements) || elements > size_t{1} << 40)
      refuse(path, "impossible dims");
  if (elements * quartet_dtype_size(dtype) != size)
    refuse(path, std::to_string(size) + " bytes of data, its shape needs " +
                     std::to_string(elements * quartet_dtype_size(dtype)));
  quartet::Tensor tensor = quartet::Tensor::zeros(dtype, dims);
  if (size) std::memcpy(tensor.data(), data, size);
  return tensor;
}

// Protocol buffers' wire format, as far as TensorProto needs it.
class ProtoReader {
 public:
  ProtoReader(const std::string& path, const uint8_t* data, size_t size) : path_(path), at_(data), end_(data + size) {}
  bool done() const { return at_ == end_; }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) refuse(path_, "truncated");
      const uint8_t byte = *at_++;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return value;
    }
    refuse(path_, "a malformed number");
  }
  ProtoReader bytes() {
    const uint64_t size = varint();
    if (size > static_cast<uint64_t>(end_ - at_)) refuse(path_, "truncated");
    ProtoReader inner(path_, at_, static_cast<size_t>(size));
    at_ += size;
    return inner;
  }
  void take(void* out, size_t size) {
    if (size > static_cast<size_t>(end_ - at_)) refuse(path_, "truncated");
    std::memcpy(out, at_, size);
    at_ += size;
  }
  void skip(uint32_t wire) {
    uint64_t ignored;
    if (wire == 0)
      varint();
    else if (wire == 1)
      take(&ignored, 8);
    else if (wire == 2)
      bytes();
    else if (wire == 5)
      take(&ignored, 4);
    else
      refuse(path_, "a malformed field");
  }
  const uint8_t* data() const { return at_; }
  size_t size() const { return static_cast<size_t>(end_ - at_); }

 private:
  const std::string& path_;
  const uint8_t* at_;
  const uint8_t* end_;
};

int32_t dtype_of_onnx(uint64_t type) {
  switch (type) {
    case 1:
      return QUARTET_DTYPE_F32;
    case 2:
      return QUARTET_DTYPE_U8;
    case 3:
      return QUARTET_DTYPE_I8;
    case 4:
      return QUARTET_DTYPE_U16;
    case 5:
      return QUARTET_DTYPE_I16;
    case 6:
      return QUARTET_DTYPE_I32;
    case 7:
      return QUARTET_DTYPE_I64;
    case 9:
      return QUARTET_DTYPE_BOOL;
    case 10:
      return QUARTET_DTYPE_F16;
    case 11:
      return QUARTET_DTYPE_F64;
    case 12:
      return QUARTET_DTYPE_U32;
    case 13:
      return QUARTET_DTYPE_U64;
    case 16:
      return QUARTET_DTYPE_BF16;
    default:
      return QUARTET_DTYPE_INVALID;
  }
}

// Numbers of a typed field, packed or one by one, as bytes of the tensor's element size.
void append_numbers(ProtoReader& in, uint32_t wire, uint32_t field, size_t element_size, std::vector<uint8_t>& out) {
  const bool fixed4 = field == 4, fixed8 = field == 10;
  const auto one = [&](ProtoReader& from) {
    uint64_t bits = 0;
    if (fixed4)
      from.take(&bits, 4);
    else if (fixed8)
      from.take(&bits, 8);
    else
      bits = from.varint();
    const auto* raw = reinterpret_cast<const uint8_t*>(&bits);
    out.insert(out.end(), raw, raw + element_size);
  };
  if (wire == 2) {
    ProtoReader packed = in.bytes();
    while (!packed.done()) one(packed);
  } else {
    one(in);
  }
}

uint64_t next_random(uint64_t& state) {  // splitmix64
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

float half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa ? std::nanf("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

float bfloat_value(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

// Multiples of 1/128 in [-1, 1) are exact in every float type.
uint16_t small_half(int numerator, bool bfloat) {
  if (numerator == 0) return 0;
  const auto value = static_cast<float>(numerator) / 128;
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (bfloat) return static_cast<uint16_t>(bits >> 16);
  const uint32_t exponent = ((bits >> 23) & 255) - 112;
  return static_cast<uint16_t>(((bits >> 16) & 0x8000u) | (exponent << 10) | ((bits >> 13) & 1023u));
}

template <class T>
double at(const quartet::Tensor& tensor, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const uint8_t*>(tensor.data()) + index * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

}  // namespace

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, "cannot be opened");
  constexpr size_t kPiece = size_t{1} << 16;
  std::vector<uint8_t> bytes;
  for (size_t size = 0; file; bytes.resize(size)) {
    bytes.resize(size + kPiece);
    file.read(reinterpret_cast<char*>(bytes.data() + size), static_cast<std::streamsize>(kPiece));
    size += static_cast<size_t>(file.gcount());
  }
  if (file.bad()) refuse(path, "cannot be read");
  return bytes;
}

quartet::Tensor read_npy(const std::string& path) {
  const std::vector<uint8_t> bytes = read_file(path);
  if (bytes.size() < 12 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0) refuse(path, "not a .npy file");
  const bool wide = bytes[6] >= 2;
  size_t header_size = bytes[8] | static_cast<size_t>(bytes[9]) << 8;
  if (wide) header_size |= static_cast<size_t>(bytes[10]) << 16 | static_cast<size_t>(bytes[11]) << 24;
  const size_t header_at = wide ? 12 : 10;
  if (header_size > bytes.size() - header_at) refuse(path, "truncated header");
  const std::string header(bytes.begin() + static_cast<std::ptrdiff_t>(header_at),
                           bytes.begin() + static_cast<std::ptrdiff_t>(header_at + header_size));

  if (header_field(header, "fortran_order") != "False") refuse(path, "Fortran order is not understood");
  std::string descr = header_field(header, "descr");
  descr = descr.size() > 2 ? descr.substr(1, descr.size() - 2) : descr;
  int32_t dtype = QUARTET_DTYPE_INVALID;
  for (const NpyType& type : kNpyTypes)
    if (descr == type.descr) dtype = type.dtype;
  if (dtype == QUARTET_DTYPE_INVALID) refuse(path, "element type '" + descr + "' is not understood");

  std::vector<int64_t> dims;
  const std::string shape = header_field(header, "shape");
  for (size_t i = 0; i < shape.size();) {
    if (shape[i] < '0' || shape[i] > '9') {
      ++i;
      continue;
    }
    size_t used = 0;
    dims.push_back(std::stoll(shape.substr(i, 18), &used));
    i += used;
  }
  const size_t data_at = header_at + header_size;
  return tensor_from(path, dtype, dims, bytes.data() + data_at, bytes.size() - data_at);
}

quartet::Tensor read_pb(const std::string& path) {
  const std::vector<uint8_t> bytes = read_file(path);
  ProtoReader in(path, bytes.data(), bytes.size());
  std::vector<int64_t> dims;
  std::vector<uint8_t> data;
  int32_t dtype = QUARTET_DTYPE_INVALID;
  struct Typed {
    ProtoReader in;
    uint32_t wire, field;
  };
  std::vector<Typed> typed;  // read once the type is known
  while (!in.done()) {
    const uint64_t tag = in.varint();
    const auto field = static_cast<uint32_t>(tag >> 3), wire = static_cast<uint32_t>(tag & 7);
    if (field == 1 && wire == 2) {
      ProtoReader packed = in.bytes();
      while (!packed.done()) dims.push_back(static_cast<int64_t>(packed.varint()));
    } else if (field == 1 && wire == 0) {
      dims.push_back(static_cast<int64_t>(in.varint()));
    } else if (field == 2 && wire == 0) {
      dtype = dtype_of_onnx(in.varint());
    } else if (field == 9 && wire == 2) {
      const ProtoReader raw = in.bytes();
      data.assign(raw.data(), raw.data() + raw.size());
    } else if (field == 4 || field == 5 || field == 7 || field == 10 || field == 11) {
      typed.push_back({in, wire, field});
      in.skip(wire);
    } else {
      in.skip(wire);
    }
  }
  if (dtype == QUARTET_DTYPE_INVALID) refuse(path, "not a tensor of an element type that is understood");
  for (Typed& numbers : typed) append_numbers(numbers.in, numbers.wire, numbers.field, quartet_dtype_size(dtype), data);
  return tensor_from(path, dtype, dims, data.data(), data.size());
}

quartet::Tensor read_array(const std::string& path) {
  const bool pb = path.size() > 3 && path.compare(path.size() - 3, 3, ".pb") == 0;
  return pb ? read_pb(path) : read_npy(path);
}

void write_npy(const std::string& path, const quartet::Tensor& tensor) {
  std::string descr;
  for (const NpyType& type : kNpyTypes)
    if (type.dtype == tensor.dtype()) descr = type.descr;
  std::string shape;
  for (const int64_t d : tensor.dims()) shape += std::to_string(d) + ", ";
  if (tensor.dims().size() > 1) shape.resize(shape.size() - 2);
  if (tensor.dims().size() == 1) shape.resize(shape.size() - 1);
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write("\x93NUMPY\x01\x00", 8);
  const char size[2] = {static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  file.write(size, 2);
  file << header;
  file.write(static_cast<const char*>(tensor.data()), static_cast<std::streamsize>(tensor.dense_bytes()));
  file.close();
  if (!file) refuse(path, "cannot be written");
}

void learn_extents(const quartet::TensorType& type, const quartet::Tensor& tensor, Extents& extents) {
  const std::vector<int64_t> dims = tensor.dims();
  for (size_t i = 0; i < dims.size() && i < type.dims.size(); ++i) {
    if (type.dims[i] != QUARTET_DIM_UNKNOWN) continue;
    const auto [at, added] = extents.try_emplace(type.dim_texts[i], dims[i]);
    if (!added && at->second != dims[i])
      throw std::runtime_error("input '" + type.name + "' makes " + type.dim_texts[i] + " " + std::to_string(dims[i]) +
                               ", elsewhere it is " + std::to_string(at->second));
  }
}

std::vector<int64_t> choose_dims(const quartet::TensorType& type, const Extents& extents) {
  std::vector<int64_t> dims = type.dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != QUARTET_DIM_UNKNOWN) continue;
    const auto known = extents.find(type.dim_texts[i]);
    dims[i] = known != extents.end() ? known->second : 1;
  }
  return dims;
}

quartet::Tensor random_tensor(int32_t dtype, const std::vector<int64_t>& dims, uint64_t seed) {
  const size_t size = quartet_dtype_size(dtype);
  // No machine has more; and the product of the dims stays a number.
  size_t room = size_t{1} << 47;
  for (const int64_t dim : dims) {
    if (dim > 0 && static_cast<size_t>(dim) > room / size) throw std::bad_alloc();
    if (dim > 0) room /= static_cast<size_t>(dim);
  }
  quartet::Tensor tensor = quartet::Tensor::zeros(dtype, dims);
  auto* data = static_cast<uint8_t*>(tensor.data());
  for (size_t i = 0; i < tensor.elements(); ++i) {
    const uint64_t bits = next_random(seed);
    if (dtype == QUARTET_DTYPE_F32) {
      const float value = static_cast<float>(bits >> 40) * 0x1p-23f - 1.0f;
      std::memcpy(data + i * size, &value, size);
    } else if (dtype == QUARTET_DTYPE_F64) {
      const double value = static_cast<double>(bits >> 11) * 0x1p-52 - 1.0;
      std::memcpy(data + i * size, &value, size);
    } else if (dtype == QUARTET_DTYPE_F16 || dtype == QUARTET_DTYPE_BF16) {
      const uint16_t value = small_half(static_cast<int>(bits >> 56) - 128, dtype == QUARTET_DTYPE_BF16);
      std::memcpy(data + i * size, &value, size);
    } else {
      data[i * size] = static_cast<uint8_t>(dtype == QUARTET_DTYPE_BOOL ? bits >> 63 : bits >> 61);
    }
  }
  return tensor;
}

double element(const quartet::Tensor& tensor, size_t index) {
  switch (tensor.dtype()) {
    case QUARTET_DTYPE_F64:
      return at<double>(tensor, index);
    case QUARTET_DTYPE_F32:
      return at<float>(tensor, index);
    case QUARTET_DTYPE_F16:
      return half_value(static_cast<uint16_t>(at<uint16_t>(tensor, index)));
    case QUARTET_DTYPE_BF16:
      return bfloat_value(static_cast<uint16_t>(at<uint16_t>(tensor, index)));
    case QUARTET_DTYPE_I64:
      return at<int64_t>(tensor, index);
    case QUARTET_DTYPE_I32:
      return at<int32_t>(tensor, index);
    case QUARTET_DTYPE_I16:
      return at<int16_t>(tensor, index);
    case QUARTET_DTYPE_I8:
      return at<int8_t>(tensor, index);
    case QUARTET_DTYPE_U64:
      return at<uint64_t>(tensor, index);
    case QUARTET_DTYPE_U32:
      return at<uint32_t>(tensor, index);
    case QUARTET_DTYPE_U16:
      return at<uint16_t>(tensor, index);
    default:
      return at<uint8_t>(tensor, index);
  }
}

std::string type_text(const quartet::Tensor& tensor) {
  std::string text(quartet::dtype_name(tensor.dtype()));
  text += '[';
  const std::vector<int64_t> dims = tensor.dims();
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + ']';
}

}  // namespace cli
