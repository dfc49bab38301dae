// quartet.hpp: Quartet for C++17 and later, over quartet_c.h and nothing else. Header only.
//
//   quartet::Context context = quartet::Context::create().value();
//   quartet::Graph graph = quartet::Graph::from_onnx_file(context, "model.onnx").value();
//   quartet::Program program = quartet::Program::compile(context, graph).value();
//   std::vector<quartet::Tensor> outputs = program.run({quartet::Tensor::of(data, {1, 64})}).value();
//   quartet::Span<const float> result = outputs[0].as<float>();
//
// Every fallible call gives a Result: test it, then take `*result`, or call `value()`, which throws quartet::Exception
// where exceptions are on and otherwise ends the process with the message. No other call throws. Objects own their
// handle, move, and share by copy where the C object is shared. Names, units and rules are those of quartet_c.h.
#pragma once

#include <quartet_c.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#include <stdexcept>
#define QUARTET_HPP_EXCEPTIONS 1
#endif

namespace quartet {

// A view of consecutive elements.
template <class T>
class Span {
 public:
  Span() = default;
  Span(T* data, size_t size) : data_(data), size_(size) {}
  template <class Container, class = decltype(std::declval<Container&>().data())>
  Span(Container& c) : data_(c.data()), size_(c.size()) {}
  T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// Why a call failed: a QUARTET_E_* code and a message for a person. Copies are cheap.
class Error {
 public:
  Error() = default;
  Error(int32_t code, std::string message) : code_(code), message_(std::move(message)) {}
  // Takes over an owned error of the C interface; `status` is what the call returned.
  Error(int32_t status, quartet_error* error) : code_(status) {
    if (!error) return;
    handle_ = std::shared_ptr<quartet_error>(error, quartet_error_release);
    size_t size = 0;
    const char* text = quartet_error_message(error, &size);
    message_.assign(text, size);
  }

  int32_t code() const { return code_; }
  const std::string& message() const { return message_; }
  // The stage of the compile that failed, or "".
  std::string stage() const { return handle_ ? std::string(quartet_error_stage(handle_.get(), nullptr)) : ""; }
  // The op of the graph the error is about, or -1.
  int64_t node() const { return handle_ ? quartet_error_node(handle_.get()) : -1; }
  // Name and text of each attached log.
  std::vector<std::pair<std::string, std::string>> attachments() const {
    std::vector<std::pair<std::string, std::string>> all;
    const uint32_t count = handle_ ? quartet_error_attachment_count(handle_.get()) : 0;
    for (uint32_t i = 0; i < count; ++i)
      all.emplace_back(quartet_error_attachment_name(handle_.get(), i, nullptr),
                       quartet_error_attachment_text(handle_.get(), i, nullptr));
    return all;
  }

 private:
  int32_t code_ = QUARTET_OK;
  std::string message_;
  std::shared_ptr<quartet_error> handle_;
};

#ifdef QUARTET_HPP_EXCEPTIONS
class Exception : public std::runtime_error {
 public:
  explicit Exception(Error error) : std::runtime_error(error.message()), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};
#endif

[[noreturn]] inline void fail(const Error& error) {
#ifdef QUARTET_HPP_EXCEPTIONS
  throw Exception(error);
#else
  std::fprintf(stderr, "quartet: %s\n", error.message().c_str());
  std::abort();
#endif
}

// A value or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return value_.has_value(); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  const Error& error() const { return error_; }
  // The value, or `fail`.
  T& value() & { return check(), *value_; }
  const T& value() const& { return check(), *value_; }
  T value() && { return check(), std::move(*value_); }

 private:
  void check() const {
    if (!value_) fail(error_);
  }
  std::optional<T> value_;
  Error error_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  explicit operator bool() const { return error_.code() == QUARTET_OK; }
  const Error& error() const { return error_; }
  void value() const {
    if (error_.code() != QUARTET_OK) fail(error_);
  }

 private:
  Error error_;
};

namespace detail {

struct Destroy {
  void operator()(quartet_options* p) const { quartet_options_destroy(p); }
  void operator()(quartet_builder* p) const { quartet_builder_destroy(p); }
  void operator()(quartet_binding* p) const { quartet_binding_destroy(p); }
  void operator()(quartet_blob* p) const { quartet_blob_release(p); }
  void operator()(quartet_context* p) const { quartet_context_release(p); }
  void operator()(quartet_graph* p) const { quartet_graph_release(p); }
  void operator()(quartet_program* p) const { quartet_program_release(p); }
  void operator()(quartet_buffer* p) const { quartet_buffer_release(p); }
  void operator()(quartet_future* p) const { quartet_future_release(p); }
};
template <class T>
using Unique = std::unique_ptr<T, Destroy>;
template <class T>
using Shared = std::shared_ptr<T>;
template <class T>
Shared<T> share(T* handle) {
  return Shared<T>(handle, Destroy{});
}

template <class T>
T sized() {
  T value;
  std::memset(&value, 0, sizeof value);
  value.struct_size = static_cast<uint32_t>(sizeof value);
  return value;
}

inline std::string take_text(quartet_blob* blob) {
  const Unique<quartet_blob> owner(blob);
  size_t size = 0;
  const void* data = quartet_blob_data(blob, &size);
  return std::string(static_cast<const char*>(data), size);
}

inline std::vector<uint8_t> take_bytes(quartet_blob* blob) {
  const Unique<quartet_blob> owner(blob);
  size_t size = 0;
  const auto* data = static_cast<const uint8_t*>(quartet_blob_data(blob, &size));
  return std::vector<uint8_t>(data, data + size);
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr int32_t value = QUARTET_DTYPE_F64;
};
template <>
struct DTypeOf<float> {
  static constexpr int32_t value = QUARTET_DTYPE_F32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr int32_t value = QUARTET_DTYPE_I64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr int32_t value = QUARTET_DTYPE_I32;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr int32_t value = QUARTET_DTYPE_I16;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr int32_t value = QUARTET_DTYPE_I8;
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr int32_t value = QUARTET_DTYPE_U64;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr int32_t value = QUARTET_DTYPE_U32;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr int32_t value = QUARTET_DTYPE_U16;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr int32_t value = QUARTET_DTYPE_U8;
};
template <>
struct DTypeOf<bool> {
  static constexpr int32_t value = QUARTET_DTYPE_BOOL;
};

}  // namespace detail

// "f32", "bool" ...
inline std::string_view dtype_name(int32_t dtype) {
  size_t size = 0;
  const char* text = quartet_dtype_name(dtype, &size);
  return {text, size};
}

// ---- Options, context, devices
// ------------------------------------------------------------------------------------------

class Options {
 public:
  // Never fails but for memory; a null handle then means defaults.
  Options() {
    quartet_options* handle = nullptr;
    if (quartet_options_create(&handle, nullptr) == QUARTET_OK) handle_.reset(handle);
  }
  Result<void> set(std::string_view name, std::string_view value) {
    quartet_error* error = nullptr;
    const int32_t status =
        quartet_options_set_named(handle_.get(), name.data(), name.size(), value.data(), value.size(), &error);
    if (status != QUARTET_OK) return Error(status, error);
    return {};
  }
  Result<void> set(int32_t id, int64_t value) {
    quartet_error* error = nullptr;
    const int32_t status = quartet_options_set_i64(handle_.get(), id, value, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return {};
  }
  const quartet_options* get() const { return handle_.get(); }

 private:
  detail::Unique<quartet_options> handle_;
};

struct ContextSettings {
  int32_t cache_mode = QUARTET_CACHE_MEMORY;
  std::string cache_path;     // with a disk mode
  uint64_t cache_bytes = 0;   // 0: the default
  uint64_t budget_bytes = 0;  // 0: no limit
  std::string compiler_path;  // of libquartet_llvm.so; empty: beside the library
  // The host's own, copied; null pointers for defaults.
  const quartet_allocator* allocator = nullptr;
  const quartet_logger* logger = nullptr;
  const quartet_executor* executor = nullptr;
};

class Context {
 public:
  static Result<Context> create(const ContextSettings& settings = {}) {
    auto cache = detail::sized<quartet_cache_desc>();
    cache.mode = settings.cache_mode;
    if (!settings.cache_path.empty()) {
      cache.path = settings.cache_path.c_str();
      cache.path_size = settings.cache_path.size();
    }
    cache.max_bytes = settings.cache_bytes;
    auto desc = detail::sized<quartet_context_desc>();
    desc.allocator = settings.allocator;
    desc.logger = settings.logger;
    desc.executor = settings.executor;
    desc.cache = &cache;
    desc.budget_bytes = settings.budget_bytes;
    if (!settings.compiler_path.empty()) {
      desc.compiler_path = settings.compiler_path.c_str();
      desc.compiler_path_size = settings.compiler_path.size();
    }
    quartet_context* handle = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = quartet_context_create(&desc, &handle, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return Context(handle);
  }

  quartet_context* get() const { return handle_.get(); }
  uint32_t device_count() const { return quartet_device_count(get()); }
  // Borrowed from the context.
  Result<const quartet_device*> device(uint32_t index) const {
    const quartet_device* device = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = quartet_device_get(get(), index, &device, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return device;
  }
  Result<const quartet_device*> find_device(std::string_view name) const {
    const quartet_device* device = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = quartet_device_find(get(), name.data(), name.size(), &device, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return device;
  }
  // Runs due callbacks; returns how many.
  uint32_t poll(int64_t budget_ns = 0) const {
    uint32_t ran = 0;
    quartet_context_poll(get(), budget_ns, &ran, nullptr);
    return ran;
  }

  Result<quartet_memory_usage> memory_usage() const {
    auto usage = detail::sized<quartet_memory_usage>();
    quartet_error* error = nullptr;
    const int32_t status = quartet_context_memory_usage(get(), &usage, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return usage;
  }
  Result<quartet_cache_stats> cache_stats() const {
    auto stats = detail::sized<quartet_cache_stats>();
    quartet_error* error = nullptr;
    const int32_t status = quartet_cache_get_stats(get(), &stats, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return stats;
  }
  Result<void> cache_flush() const {
    return call([&](quartet_error** e) { return quartet_cache_flush(get(), e); });
  }
  Result<void> cache_trim(uint64_t bytes) const {
    return call([&](quartet_error** e) { return quartet_cache_trim(get(), bytes, e); });
  }
  Result<void> cache_clear() const {
    return call([&](quartet_error** e) { return quartet_cache_clear(get(), e); });
  }
  // JSON texts.
  Result<std::string> cache_verify() const {
    return text([&](quartet_blob** b, quartet_error** e) { return quartet_cache_verify(get(), b, e); });
  }
  Result<std::string> cache_list() const {
    return text([&](quartet_blob** b, quartet_error** e) { return quartet_cache_list(get(), b, e); });
  }

 private:
  explicit Context(quartet_context* handle) : handle_(detail::share(handle)) {}
  template <class Function>
  static Result<void> call(Function function) {
    quartet_error* error = nullptr;
    const int32_t status = function(&error);
    if (status != QUARTET_OK) return Error(status, error);
    return {};
  }
  template <class Function>
  static Result<std::string> text(Function function) {
    quartet_blob* blob = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = function(&blob, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return detail::take_text(blob);
  }

  detail::Shared<quartet_context> handle_;
};

// ---- Tensors
// ----------------------------------------------------------------------------------------------------------

// A dense tensor in host memory, its own or lent.
class Tensor {
 public:
  Tensor() : raw_(detail::sized<quartet_tensor>()) {}

  // Memory of its own, zeroed.
  static Tensor zeros(int32_t dtype, const std::vector<int64_t>& dims) {
    Tensor tensor;
    tensor.describe(dtype, dims);
    tensor.storage_ = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(tensor.raw_.bytes));
    tensor.raw_.data = tensor.storage_->data();
    return tensor;
  }
  // A copy of `values`.
  template <class T>
  static Tensor of(const std::vector<T>& values, const std::vector<int64_t>& dims) {
    Tensor tensor = zeros(detail::DTypeOf<T>::value, dims);
    const size_t bytes = values.size() * sizeof(T);
    if (bytes < tensor.raw_.bytes) tensor.raw_.bytes = bytes;
    if (tensor.raw_.bytes) std::memcpy(tensor.raw_.data, values.data(), static_cast<size_t>(tensor.raw_.bytes));
    return tensor;
  }
  // The caller's memory, which must outlive the uses of the tensor.
  static Tensor view(int32_t dtype, const std::vector<int64_t>& dims, void* data, size_t bytes) {
    Tensor tensor;
    tensor.describe(dtype, dims);
    tensor.raw_.data = data;
    tensor.raw_.bytes = bytes;
    return tensor;
  }
  // Takes over what the C interface filled in; a buffer in it is owned.
  static Tensor adopt(const quartet_tensor& raw) {
    Tensor tensor;
    tensor.raw_ = raw;
    if (raw.buffer) {
      tensor.buffer_ = detail::share(raw.buffer);
      auto info = detail::sized<quartet_buffer_info>();
      if (quartet_buffer_get_info(raw.buffer, &info, nullptr) == QUARTET_OK)
        tensor.raw_.data = static_cast<uint8_t*>(info.host) + raw.offset;
      tensor.raw_.buffer = nullptr;
      tensor.raw_.offset = 0;
      tensor.raw_.bytes = tensor.dense_bytes();
    }
    return tensor;
  }

  int32_t dtype() const { return raw_.dtype; }
  std::vector<int64_t> dims() const { return {raw_.dims, raw_.dims + raw_.rank}; }
  size_t elements() const {
    size_t count = 1;
    for (int32_t i = 0; i < raw_.rank; ++i) count *= static_cast<size_t>(raw_.dims[i]);
    return count;
  }
  size_t dense_bytes() const { return elements() * quartet_dtype_size(raw_.dtype); }
  void* data() const { return raw_.data; }
  // The elements; empty if T is not the tensor's type.
  template <class T>
  Span<T> as() const {
    if (detail::DTypeOf<std::remove_const_t<T>>::value != raw_.dtype) return {};
    return {static_cast<T*>(raw_.data), elements()};
  }
  const quartet_tensor& raw() const { return raw_; }

 private:
  void describe(int32_t dtype, const std::vector<int64_t>& dims) {
    raw_.dtype = dtype;
    raw_.rank = static_cast<int32_t>(dims.size());
    for (size_t i = 0; i < dims.size() && i < QUARTET_MAX_RANK; ++i) raw_.dims[i] = dims[i];
    raw_.bytes = dims.size() <= QUARTET_MAX_RANK ? dense_bytes() : 0;
  }

  quartet_tensor raw_;
  std::shared_ptr<std::vector<uint8_t>> storage_;
  detail::Shared<quartet_buffer> buffer_;
};

// The type of an input or output.
struct TensorType {
  std::string name;
  int32_t dtype = QUARTET_DTYPE_INVALID;
  std::vector<int64_t> dims;           // QUARTET_DIM_UNKNOWN where not a number
  std::vector<std::string> dim_texts;  // "64", "batch", "n*2 + 1"
  bool optional = false;

  static TensorType from(const quartet_tensor_info& info) {
    TensorType type;
    type.name.assign(info.name, info.name_size);
    type.dtype = info.dtype;
    type.dims.assign(info.dims, info.dims + info.rank);
    for (int32_t i = 0; i < info.rank; ++i) type.dim_texts.emplace_back(info.dim_texts[i]);
    type.optional = (info.flags & QUARTET_TENSOR_OPTIONAL) != 0;
    return type;
  }
};

// ---- Graphs
// -------------------------------------------------------------------------------------------------------------

class Graph {
 public:
  explicit Graph(quartet_graph* owned) : handle_(detail::share(owned)) {}
  quartet_graph* get() const { return handle_.get(); }

  static Result<Graph> from_onnx_file(const Context& context, std::string_view path, const Options& options = {}) {
    return make([&](quartet_graph** out, quartet_error** error) {
      return quartet_graph_import_onnx_file(context.get(), path.data(), path.size(), options.get(), out, error);
    });
  }
  static Result<Graph> from_onnx(const Context& context, Span<const uint8_t> bytes, const Options& options = {}) {
    return make([&](quartet_graph** out, quartet_error** error) {
      return quartet_graph_import_onnx(context.get(), bytes.data(), bytes.size(), options.get(), out, error);
    });
  }
  static Result<Graph> parse(const Context& context, std::string_view text) {
    return make([&](quartet_graph** out, quartet_error** error) {
      return quartet_graph_parse(context.get(), text.data(), text.size(), out, error);
    });
  }
  static Result<Graph> deserialize(const Context& context, Span<const uint8_t> bytes) {
    return make([&](quartet_graph** out, quartet_error** error) {
      return quartet_graph_deserialize(context.get(), bytes.data(), bytes.size(), out, error);
    });
  }

  std::vector<TensorType> inputs() const { return types(quartet_graph_input_count(get()), quartet_graph_input_info); }
  std::vector<TensorType> outputs() const {
    return types(quartet_graph_output_count(get()), quartet_graph_output_info);
  }
  Result<std::string> print() const {
    quartet_blob* blob = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = quartet_graph_print(get(), &blob, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return detail::take_text(blob);
  }
  Result<std::vector<uint8_t>> serialize() const {
    quartet_blob* blob = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = quartet_graph_serialize(get(), &blob, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return detail::take_bytes(blob);
  }

 private:
  template <class Function>
  static Result<Graph> make(Function function) {
    quartet_graph* handle = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = function(&handle, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return Graph(handle);
  }
  template <class Function>
  std::vector<TensorType> types(uint32_t count, Function describe) const {
    std::vector<TensorType> all;
    for (uint32_t i = 0; i < count; ++i) {
      auto info = detail::sized<quartet_tensor_info>();
      if (describe(get(), i, &info, nullptr) == QUARTET_OK) all.push_back(TensorType::from(info));
    }
    return all;
  }

  detail::Shared<quartet_graph> handle_;
};

// An attribute of an op, for Builder::op.
class Attr {
 public:
  Attr(std::string name, int64_t value) : name_(std::move(name)), kind_(QUARTET_ATTR_I64), ints_{value} {}
  Attr(std::string name, int value) : Attr(std::move(name), static_cast<int64_t>(value)) {}
  Attr(std::string name, double value) : name_(std::move(name)), kind_(QUARTET_ATTR_F64), floats_{value} {}
  Attr(std::string name, std::vector<int64_t> values)
      : name_(std::move(name)), kind_(QUARTET_ATTR_I64S), ints_(std::move(values)) {}
  // Extents or symbols, for shape attributes.
  static Attr dims(std::string name, std::vector<int64_t> values) {
    Attr attr(std::move(name), std::move(values));
    attr.kind_ = QUARTET_ATTR_DIMS;
    return attr;
  }
  static Attr dtype(std::string name, int32_t dtype) {
    Attr attr(std::move(name), int64_t{0});
    attr.kind_ = QUARTET_ATTR_DTYPE;
    attr.small_ = dtype;
    return attr;
  }
  // Valid while the Attr lives.
  quartet_attr raw() const {
    auto raw = detail::sized<quartet_attr>();
    raw.kind = kind_;
    raw.name = name_.c_str();
    raw.name_size = name_.size();
    if (kind_ == QUARTET_ATTR_DTYPE) {
      raw.data = &small_;
      raw.count = 1;
    } else if (kind_ == QUARTET_ATTR_F64) {
      raw.data = floats_.data();
      raw.count = floats_.size();
    } else {
      raw.data = ints_.data();
      raw.count = ints_.size();
    }
    return raw;
  }

 private:
  std::string name_;
  int32_t kind_;
  std::vector<int64_t> ints_;
  std::vector<double> floats_;
  int32_t small_ = 0;
};

// Builds a graph by calls. Values are plain numbers.
class Builder {
 public:
  static Result<Builder> create(const Context& context) {
    quartet_builder* handle = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = quartet_builder_create(context.get(), &handle, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return Builder(handle);
  }

  // A symbol to use as an extent in dims.
  Result<int64_t> dim_symbol(std::string_view name) {
    int64_t symbol = 0;
    quartet_error* error = nullptr;
    const int32_t status = quartet_builder_dim_symbol(get(), name.data(), name.size(), &symbol, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return symbol;
  }
  // An extent computed from symbols, such as "2*N + 1".
  Result<int64_t> dim_text(std::string_view text) {
    int64_t dim = 0;
    quartet_error* error = nullptr;
    const int32_t status = quartet_builder_dim_text(get(), text.data(), text.size(), &dim, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return dim;
  }
  Result<int32_t> input(std::string_view name, int32_t dtype, const std::vector<int64_t>& dims) {
    return value([&](int32_t* out, quartet_error** error) {
      return quartet_builder_input(get(), name.data(), name.size(), dtype, static_cast<int32_t>(dims.size()),
                                   dims.data(), out, error);
    });
  }
  // A copy of `tensor` as a constant.
  Result<int32_t> constant(const Tensor& tensor) {
    const quartet_tensor& raw = tensor.raw();
    return value([&](int32_t* out, quartet_error** error) {
      return quartet_builder_constant(get(), raw.dtype, raw.rank, raw.dims, raw.data, raw.bytes, QUARTET_CONSTANT_COPY,
                                      nullptr, nullptr, out, error);
    });
  }
  // An op with one result.
  Result<int32_t> op(std::string_view name, const std::vector<int32_t>& inputs, const std::vector<Attr>& attrs = {}) {
    std::vector<quartet_attr> raw;
    for (const Attr& attr : attrs) raw.push_back(attr.raw());
    return value([&](int32_t* out, quartet_error** error) {
      return quartet_builder_op(get(), name.data(), name.size(), inputs.data(), static_cast<uint32_t>(inputs.size()),
                                raw.data(), static_cast<uint32_t>(raw.size()), out, 1, error);
    });
  }
  Result<void> output(int32_t value, std::string_view name) {
    quartet_error* error = nullptr;
    const int32_t status = quartet_builder_output(get(), value, name.data(), name.size(), &error);
    if (status != QUARTET_OK) return Error(status, error);
    return {};
  }
  // Spends the builder.
  Result<Graph> finish() {
    quartet_graph* graph = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = quartet_builder_finish(get(), &graph, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return Graph(graph);
  }
  quartet_builder* get() const { return handle_.get(); }

 private:
  explicit Builder(quartet_builder* handle) : handle_(handle) {}
  template <class Function>
  Result<int32_t> value(Function function) {
    int32_t out = QUARTET_NO_VALUE;
    quartet_error* error = nullptr;
    const int32_t status = function(&out, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return out;
  }

  detail::Unique<quartet_builder> handle_;
};

// ---- Programs
// -----------------------------------------------------------------------------------------------------------

class Future;

class Program {
 public:
  explicit Program(quartet_program* owned) : handle_(detail::share(owned)) {}
  quartet_program* get() const { return handle_.get(); }

  static Result<Program> compile(const Context& context, const Graph& graph, const Options& options = {},
                                 const quartet_device* device = nullptr) {
    quartet_program* handle = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = quartet_compile(context.get(), graph.get(), device, options.get(), &handle, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return Program(handle);
  }
  static Result<Future> compile_async(const Context& context, const Graph& graph, const Options& options = {},
                                      const quartet_device* device = nullptr);
  // The bytes contain machine code: load only what you trust.
  static Result<Program> load_trusted(const Context& context, Span<const uint8_t> bytes, const Options& options = {}) {
    quartet_program* handle = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = quartet_program_load(context.get(), bytes.data(), bytes.size(), nullptr, options.get(),
                                                QUARTET_LOAD_TRUSTED, &handle, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return Program(handle);
  }

  std::vector<TensorType> inputs() const {
    return types(quartet_program_input_count(get()), quartet_program_input_info);
  }
  std::vector<TensorType> outputs() const {
    return types(quartet_program_output_count(get()), quartet_program_output_info);
  }
  quartet_program_info info() const {
    auto info = detail::sized<quartet_program_info>();
    quartet_program_get_info(get(), &info, nullptr);
    return info;
  }

  // Runs once; the outputs are new.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) const {
    std::vector<quartet_tensor> in, out;
    for (const Tensor& tensor : inputs) in.push_back(tensor.raw());
    out.resize(quartet_program_output_count(get()), detail::sized<quartet_tensor>());
    quartet_error* error = nullptr;
    const int32_t status = quartet_run_sync(get(), in.data(), static_cast<uint32_t>(in.size()), out.data(),
                                            static_cast<uint32_t>(out.size()), &error);
    if (status != QUARTET_OK) return Error(status, error);
    std::vector<Tensor> outputs;
    for (const quartet_tensor& raw : out) outputs.push_back(Tensor::adopt(raw));
    return outputs;
  }

  Result<std::string> dump(std::string_view stage) const {
    quartet_blob* blob = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = quartet_program_dump(get(), stage.data(), stage.size(), &blob, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return detail::take_text(blob);
  }
  Result<std::vector<uint8_t>> serialize() const {
    quartet_blob* blob = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = quartet_program_serialize(get(), &blob, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return detail::take_bytes(blob);
  }

 private:
  template <class Function>
  std::vector<TensorType> types(uint32_t count, Function describe) const {
    std::vector<TensorType> all;
    for (uint32_t i = 0; i < count; ++i) {
      auto info = detail::sized<quartet_tensor_info>();
      if (describe(get(), i, &info, nullptr) == QUARTET_OK) all.push_back(TensorType::from(info));
    }
    return all;
  }

  detail::Shared<quartet_program> handle_;
};

// A compile under way. The last copy to go does not cancel it; `cancel` does.
class Future {
 public:
  explicit Future(quartet_future* owned) : handle_(detail::share(owned)) {}
  quartet_future* get() const { return handle_.get(); }
  bool ready() const { return quartet_future_poll(get()) != 0; }
  // False when `timeout_ns` (negative: none) passes first.
  bool wait(int64_t timeout_ns = -1) const { return quartet_future_wait(get(), timeout_ns, nullptr) == QUARTET_OK; }
  void cancel() const { quartet_future_cancel(get()); }
  Result<Program> take() const {
    quartet_program* program = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = quartet_future_take_program(get(), &program, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return Program(program);
  }

 private:
  detail::Shared<quartet_future> handle_;
};

inline Result<Future> Program::compile_async(const Context& context, const Graph& graph, const Options& options,
                                             const quartet_device* device) {
  quartet_future* handle = nullptr;
  quartet_error* error = nullptr;
  const int32_t status = quartet_compile_async(context.get(), graph.get(), device, options.get(), &handle, &error);
  if (status != QUARTET_OK) return Error(status, error);
  return Future(handle);
}

// A program with its tensors bound: repeated runs allocate nothing. One thread at a time.
class Binding {
 public:
  static Result<Binding> create(const Program& program) {
    quartet_binding* handle = nullptr;
    quartet_error* error = nullptr;
    const int32_t status = quartet_binding_create(program.get(), &handle, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return Binding(handle);
  }
  // The tensor's memory must stay until it is replaced or the binding goes.
  Result<void> set_input(uint32_t index, const Tensor& tensor) {
    return call([&](quartet_error** e) { return quartet_binding_set_input(get(), index, &tensor.raw(), e); });
  }
  Result<void> set_output(uint32_t index, const Tensor& tensor) {
    return call([&](quartet_error** e) { return quartet_binding_set_output(get(), index, &tensor.raw(), e); });
  }
  Result<void> prepare() {
    return call([&](quartet_error** e) { return quartet_binding_prepare(get(), e); });
  }
  Result<void> run() {
    return call([&](quartet_error** e) { return quartet_binding_run(get(), e); });
  }
  Result<uint64_t> workspace_bytes() {
    uint64_t bytes = 0;
    quartet_error* error = nullptr;
    const int32_t status = quartet_binding_workspace_size(get(), &bytes, &error);
    if (status != QUARTET_OK) return Error(status, error);
    return bytes;
  }
  // Borrowed: valid until the output is bound anew or the binding goes.
  Result<Tensor> output(uint32_t index) {
    auto raw = detail::sized<quartet_tensor>();
    quartet_error* error = nullptr;
    const int32_t status = quartet_binding_get_output(get(), index, &raw, &error);
    if (status != QUARTET_OK) return Error(status, error);
    if (raw.buffer) quartet_buffer_retain(raw.buffer);
    return Tensor::adopt(raw);
  }
  quartet_binding* get() const { return handle_.get(); }

 private:
  explicit Binding(quartet_binding* handle) : handle_(handle) {}
  template <class Function>
  static Result<void> call(Function function) {
    quartet_error* error = nullptr;
    const int32_t status = function(&error);
    if (status != QUARTET_OK) return Error(status, error);
    return {};
  }

  detail::Unique<quartet_binding> handle_;
};

}  // namespace quartet
