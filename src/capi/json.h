// Flat JSON for blobs: objects of texts, numbers and flags, and lists of them. A library's tree would do, but trees
// free themselves with the help of more memory, and end the process when there is none.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace quartet::capi {

class JsonWriter {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_list() { open('['); }
  void end_list() { close(']'); }
  void key(std::string_view name) {
    separate();
    quote(name);
    out_ += ':';
    first_ = true;
  }
  void value(std::string_view text) {
    separate();
    quote(text);
  }
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool flag) {
    separate();
    out_ += flag ? "true" : "false";
  }
  template <std::integral T>
  void value(T number) {
    separate();
    out_ += std::to_string(number);
  }
  template <class T>
  void member(std::string_view name, const T& content) {
    key(name);
    value(content);
  }
  std::string take() { return std::move(out_); }

 private:
  void separate() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  void open(char bracket) {
    separate();
    out_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    out_ += bracket;
    first_ = false;
  }
  void quote(std::string_view text);

  std::string out_;
  bool first_ = true;
};

}  // namespace quartet::capi
