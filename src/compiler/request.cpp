#include "compiler/request.h"

#include "artifact/artifact.h"
#include "base/compiler_id.h"

namespace quartet::compiler {

std::vector<KeyPart> key_parts(const Request& request) {
  std::vector<KeyPart> parts;
  const auto add_text = [&](const char* name, std::string_view text) {
    parts.push_back({name, Bytes(text.begin(), text.end())});
  };
  add_text("compiler", compiler_id());
  add_text("artifact", std::to_string(artifact::kVersion));
  parts.push_back({"graph", graph::canonical_bytes(*request.graph)});
  ByteWriter options;
  request.options.write_code_options(options);
  parts.push_back({"options", options.take()});
  add_text("target", request.target.target_text());
  ByteWriter model;
  model.digest(request.target.digest());
  parts.push_back({"model", model.take()});
  return parts;
}

Bytes key_bytes(const Request& request) {
  ByteWriter out;
  for (const KeyPart& part : key_parts(request)) {
    out.text(part.name);
    out.bytes(part.bytes);
  }
  return out.take();
}

Result<CpuModel> resolve_target(const Options& options) {
  const std::string_view isa = options.isa();
  if (isa == "host") return host_cpu();
  const Isa wanted = isa == "sse2" ? Isa::sse2 : isa == "avx2" ? Isa::avx2 : Isa::avx512;
  CpuModel model = host_cpu(wanted);
  if (model.isa != wanted)
    return make_error(Code::unsupported, "option isa: this processor has %s at most, %.*s was asked for",
                      isa_name(model.isa), static_cast<int>(isa.size()), isa.data());
  return model;
}

}  // namespace quartet::compiler
