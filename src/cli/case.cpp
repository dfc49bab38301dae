#include "case.h"

#include <sys/stat.h>

#include <cmath>
#include <stdexcept>

namespace cli {

namespace {

bool exists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

// The file of `stem` with either ending, or "".
std::string array_file(const std::string& stem) {
  for (const char* ending : {".npy", ".pb"})
    if (exists(stem + ending)) return stem + ending;
  return "";
}

bool is_float(int32_t dtype) { return dtype >= QUARTET_DTYPE_F64 && dtype <= QUARTET_DTYPE_BF16; }

void read_settings(const std::string& directory, Case& c) {
  const std::string path = directory + "/case.json";
  if (!exists(path)) return;
  const std::vector<uint8_t> text = read_file(path);
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw std::runtime_error(path + ": not a JSON object");
  if (json.contains("tolerance")) {
    c.tolerance.rtol = json["tolerance"].value("rtol", c.tolerance.rtol);
    c.tolerance.atol = json["tolerance"].value("atol", c.tolerance.atol);
  }
  if (json.contains("expect")) {
    if (json["expect"] != "error") throw std::runtime_error(path + ": expect must be \"error\"");
    c.expect_error = true;
  }
  if (!json.contains("outputs")) return;
  for (const Json& output : json["outputs"]) c.spreads.push_back(output.value("reference_spread", 0.0));
}

// Exact equality of elements of any type but floats.
bool same_bits(const quartet::Tensor& a, const quartet::Tensor& b, size_t i) {
  const size_t size = quartet_dtype_size(a.dtype());
  return std::memcmp(static_cast<const uint8_t*>(a.data()) + i * size, static_cast<const uint8_t*>(b.data()) + i * size,
                     size) == 0;
}

}  // namespace

Case read_case(const std::string& directory, const quartet::Program& program, const Tolerance& tolerance) {
  if (!exists(directory)) throw std::runtime_error(directory + ": no such case directory");
  Case c;
  c.tolerance = tolerance;
  read_settings(directory, c);
  const std::vector<quartet::TensorType> inputs = program.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string path = array_file(directory + "/input_" + std::to_string(i));
    if (!path.empty())
      c.inputs.push_back(read_array(path));
    else if (inputs[i].optional)
      c.inputs.emplace_back();
    else
      throw std::runtime_error(directory + ": no file input_" + std::to_string(i) + " for input '" + inputs[i].name +
                               "'");
  }
  const size_t outputs = program.outputs().size();
  for (size_t i = 0; i < outputs; ++i) {
    const std::string path = array_file(directory + "/output_" + std::to_string(i));
    if (path.empty()) break;
    c.outputs.push_back(read_array(path));
  }
  if (c.outputs.empty() && !c.expect_error) throw std::runtime_error(directory + ": no expected outputs");
  c.spreads.resize(outputs, 0.0);
  return c;
}

std::string difference(const quartet::Tensor& got, const quartet::Tensor& expected, const Tolerance& tolerance,
                       double spread) {
  if (got.dtype() != expected.dtype() || got.dims() != expected.dims())
    return "is " + type_text(got) + ", expected " + type_text(expected);
  const bool floats = is_float(got.dtype());
  double largest = 0;
  if (floats)
    for (size_t i = 0; i < expected.elements(); ++i)
      if (const double b = std::fabs(element(expected, i)); std::isfinite(b)) largest = std::fmax(largest, b);
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < got.elements(); ++i) {
    const double a = element(got, i), b = element(expected, i);
    bool near = !floats && same_bits(got, expected, i);
    if (floats) {
      const double bound =
          std::fmax(tolerance.rtol * std::fabs(b) + tolerance.atol + tolerance.scaled_atol * largest, 4 * spread);
      near = a == b || (std::isnan(a) && std::isnan(b)) || (std::isfinite(b) && std::fabs(a - b) <= bound);
    }
    if (!near && wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  char text[160];
  std::snprintf(text, sizeof text, "differs in %zu of %zu elements, first at %zu: %.9g, expected %.9g", wrong,
                got.elements(), first, element(got, first), element(expected, first));
  return text;
}

}  // namespace cli
