// Tensors in files: NumPy's .npy and ONNX's TensorProto (.pb), and random ones.
#pragma once

#include <quartet.hpp>

#include <map>
#include <string>
#include <vector>

namespace cli {

// Throws std::runtime_error with the path and the reason.
quartet::Tensor read_array(const std::string& path);  // by the ending: .pb or .npy
quartet::Tensor read_npy(const std::string& path);
quartet::Tensor read_pb(const std::string& path);
void write_npy(const std::string& path, const quartet::Tensor& tensor);
std::vector<uint8_t> read_file(const std::string& path);

using Extents = std::map<std::string, int64_t>;

// Learns symbols' extents from the shape of a given tensor; throws when they contradict.
void learn_extents(const quartet::TensorType& type, const quartet::Tensor& tensor, Extents& extents);
// The extents of a type: numbers, and symbols as in `extents` (1 where nothing is said).
std::vector<int64_t> choose_dims(const quartet::TensorType& type, const Extents& extents);
// Floats in [-1, 1), integers in [0, 8), bools; the same for the same seed.
quartet::Tensor random_tensor(int32_t dtype, const std::vector<int64_t>& dims, uint64_t seed);

// The element as a number, whatever its type.
double element(const quartet::Tensor& tensor, size_t index);
// "f32[1, 10]"
std::string type_text(const quartet::Tensor& tensor);

}  // namespace cli
