#include "compiler/pipeline.h"

#include <algorithm>
#include <chrono>

#include "artifact/artifact.h"
#include "base/compiler_id.h"
#include "compiler/assemble.h"
#include "grinder/grind.h"
#include "kernel/lower.h"
#include "program/program.h"
#include "rammer/waves.h"
#include "simplify/simplify.h"
#include "tile/expr.h"
#include "welder/group.h"

namespace quartet::compiler {

namespace {

// What the stages hand on; each fills its part.
struct State {
  const Request& request;
  CodeGenerator& generator;

  std::shared_ptr<const graph::Graph> simplified = nullptr;
  grinder::Placed placed = {};
  std::vector<Piece> pieces = {};  // by segment
  Assembly assembly = {};
  std::vector<Bytes> images = {};
  Bytes artifact = {};

  bool verifying() const { return request.options.verify_stages(); }
};

Status simplify_graph(State& s, const std::shared_ptr<const graph::Graph>& graph) {
  simplify::Options options;
  options.flush_denormals = s.request.options.flush_denormals();
  QUARTET_ASSIGN(s.simplified, simplify::simplify(graph, options));
  return s.verifying() ? graph::verify(*s.simplified) : Status();
}

Status simplify_stage(State& s) { return simplify_graph(s, s.request.graph); }

// What one round opens up (a branch whose condition an unrolled loop made constant) the next one takes.
Status grind_stage(State& s) {
  constexpr int kMaxRounds = 4;
  const auto& ops = s.simplified->main().body.ops;
  const bool controlled = std::any_of(ops.begin(), ops.end(), [](const graph::Op& op) {
    return graph::op_info(op.code).op_class == graph::OpClass::control;
  });
  bool changed = controlled;
  for (int round = 0; round < kMaxRounds && changed; ++round) {
    QUARTET_ASSIGN(const grinder::Ground ground, grinder::grind(s.simplified));
    QUARTET_TRY(simplify_graph(s, ground.graph));
    changed = ground.changed;
  }
  QUARTET_ASSIGN(s.placed, grinder::place(s.simplified));
  return {};
}

Status tile_stage(State& s) {
  for (const grinder::Segment& segment : s.placed.segments) {
    Piece& piece = s.pieces.emplace_back();
    QUARTET_ASSIGN(piece.tiles, tile::from_graph(*segment.graph));
    for (graph::DimSymbol& symbol : piece.tiles.symbols)
      if (symbol.hint == 0) symbol.hint = s.request.options.dim_hint();
    if (s.verifying()) QUARTET_TRY(tile::verify(piece.tiles));
  }
  return {};
}

Status weld_stage(State& s) {
  welder::Options options;
  options.fusion = s.request.options.fusion();
  for (Piece& piece : s.pieces) {
    QUARTET_ASSIGN(piece.groups, welder::weld(piece.tiles, s.request.target, options));
  }
  return {};
}

Status ram_stage(State& s) {
  for (Piece& piece : s.pieces) piece.schedule = rammer::schedule(piece.tiles, piece.groups, s.request.target);
  return {};
}

Status kernel_stage(State& s) {
  for (Piece& piece : s.pieces)
    for (const welder::Group& group : piece.groups) {
      QUARTET_ASSIGN(kernel::LoweredGroup lowered, kernel::lower(piece.tiles, group, s.request.target));
      if (s.verifying()) {
        QUARTET_TRY(kernel::verify(lowered.main.kernel));
        for (const kernel::Packing& packing : lowered.packings) QUARTET_TRY(kernel::verify(packing.lowered.kernel));
      }
      piece.lowered.push_back(std::move(lowered));
    }
  return {};
}

Status program_stage(State& s) {
  QUARTET_ASSIGN(s.assembly, assemble(s.placed, *s.request.graph, s.pieces));
  s.assembly.program.flush_denormals = s.request.options.flush_denormals();
  return {};
}

// Requests of about equal size, so that several can be generated at once. The split depends on the kernels alone, never
// on the number of threads: the same request gives the same bytes on any machine.
std::vector<codegen::Request> codegen_requests(const State& s, codegen::Product product) {
  constexpr size_t kBytesPerRequest = 24 * 1024;
  std::vector<codegen::Request> requests;
  size_t filled = 0;
  for (const kernel::Kernel& kernel : s.assembly.kernels) {
    Bytes bytes = kernel::serialize(kernel);
    if (requests.empty() || filled + bytes.size() > kBytesPerRequest) {
      requests.emplace_back();
      requests.back().compiler_id = compiler_id();
      requests.back().target = s.request.target;
      requests.back().product = product;
      filled = 0;
    }
    filled += bytes.size();
    requests.back().kernels.push_back(std::move(bytes));
  }
  return requests;
}

Result<std::vector<codegen::Response>> generate(State& s, codegen::Product product) {
  const auto requests = codegen_requests(s, product);
  std::vector<codegen::Response> responses;
  auto answers = s.generator.generate(requests);
  for (size_t i = 0; i < answers.size(); ++i) {
    QUARTET_ASSIGN(codegen::Response response, std::move(answers[i]));
    QUARTET_TRY(response.status);
    if (product == codegen::Product::blob && response.blob.entries.size() != requests[i].kernels.size())
      return make_error(Code::internal, "the code generator answered %zu kernels of %zu", response.blob.entries.size(),
                        requests[i].kernels.size());
    responses.push_back(std::move(response));
  }
  return responses;
}

Status codegen_stage(State& s) {
  QUARTET_ASSIGN(auto responses, generate(s, codegen::Product::blob));
  struct Place {
    int32_t blob;
    uint64_t entry;
  };
  std::vector<Place> places;
  for (codegen::Response& response : responses) {
    const auto blob = static_cast<int32_t>(s.images.size());
    for (const uint64_t entry : response.blob.entries) places.push_back({blob, entry});
    s.images.push_back(std::move(response.blob.image));
  }
  auto& kernels = s.assembly.program.kernels;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const Place& place = places[static_cast<size_t>(s.assembly.code[k])];
    kernels[k].blob = place.blob;
    kernels[k].entry = place.entry;
  }
  return {};
}

Status artifact_stage(State& s) {
  if (s.verifying()) QUARTET_TRY(program::verify(s.assembly.program));
  ByteWriter program;
  program::write(program, s.assembly.program);
  artifact::Content content;
  content.target = s.request.target.target_text();
  content.features = s.request.target.features;
  content.program = program.data();
  for (const Bytes& image : s.images) content.code.emplace_back(image);
  for (const graph::Constant* constant : s.assembly.carried)
    content.constants.push_back({constant->digest, {constant->data, constant->bytes}});
  content.metadata["compiler"] = compiler_id();
  s.artifact = artifact::write(content);
  return {};
}

// A kernel that the next step refuses is a fault of Quartet, not of the caller: the graph was verified when it was
// made.
Status own_fault(const Status& status) {
  if (status.code() != Code::invalid_argument) return status;
  Error error = *status.error();
  error.code = Code::internal;
  return Status(std::move(error));
}

Status checked_kernel_stage(State& s) { return own_fault(kernel_stage(s)); }
Status checked_codegen_stage(State& s) { return own_fault(codegen_stage(s)); }

struct Stage {
  const char* name;
  Status (*run)(State&);
};

constexpr Stage kStages[] = {
    {"simplify", simplify_stage}, {"grind", grind_stage},
    {"tile", tile_stage},         {"weld", weld_stage},
    {"ram", ram_stage},           {"kernel", checked_kernel_stage},
    {"program", program_stage},   {"codegen", checked_codegen_stage},
    {"artifact", artifact_stage},
};

// Runs the stages up to and including `last`.
Status run_stages(State& state, std::string_view last, const std::atomic<bool>* cancelled,
                  std::vector<StageTime>* times) {
  for (const Stage& stage : kStages) {
    if (cancelled && cancelled->load(std::memory_order_relaxed))
      return make_error(Code::cancelled, "the compile was cancelled before stage '%s'", stage.name);
    const auto begin = std::chrono::steady_clock::now();
    QUARTET_TRY(stage.run(state).with_stage(stage.name));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    if (times) times->push_back({stage.name, spent.count()});
    if (last == stage.name) break;
  }
  return {};
}

// What a stage made of each segment; the number of the segment stands before it if there are several.
template <class Print>
std::string segment_texts(const State& s, const Print& print) {
  std::string text;
  for (size_t i = 0; i < s.pieces.size(); ++i) {
    if (s.pieces.size() > 1) text += "segment " + std::to_string(i) + "\n";
    text += print(s.pieces[i]);
  }
  return text;
}

std::string kernel_texts(const State& s) {
  std::string text;
  for (const kernel::Kernel& kernel : s.assembly.kernels) text += kernel::print(kernel) + "\n";
  return text;
}

Result<std::string> generated_text(State& s, codegen::Product product) {
  QUARTET_ASSIGN(const auto responses, generate(s, product));
  std::string text;
  for (const codegen::Response& response : responses) text += response.text;
  return text;
}

}  // namespace

Result<Compiled> compile(const Request& request, CodeGenerator& generator, const std::atomic<bool>* cancelled) {
  State state{request, generator};
  Compiled compiled;
  QUARTET_TRY(run_stages(state, "artifact", cancelled, &compiled.times));
  compiled.artifact = std::move(state.artifact);
  return compiled;
}

std::vector<std::string> dump_stages() {
  return {"graph", "simplified", "ground", "tiles", "groups", "program", "kernel", "llvm", "asm"};
}

Result<std::string> dump(const Request& request, std::string_view stage, CodeGenerator& generator) {
  State state{request, generator};
  const auto after = [&](std::string_view last) { return run_stages(state, last, nullptr, nullptr); };
  if (stage == "graph") return graph::print(*request.graph);
  if (stage == "simplified") {
    QUARTET_TRY(after("simplify"));
    return graph::print(*state.simplified);
  }
  if (stage == "ground") {
    QUARTET_TRY(after("grind"));
    return graph::print(*state.simplified);
  }
  if (stage == "tiles") {
    QUARTET_TRY(after("tile"));
    return segment_texts(state, [](const Piece& piece) { return tile::print(piece.tiles); });
  }
  if (stage == "groups") {
    QUARTET_TRY(after("weld"));
    return segment_texts(state, [](const Piece& piece) { return welder::print(piece.tiles, piece.groups); });
  }
  if (stage == "program" || stage == "kernel" || stage == "llvm" || stage == "asm") {
    QUARTET_TRY(after("program"));
    if (stage == "program") return program::print(state.assembly.program);
    if (stage == "kernel") return kernel_texts(state);
    return generated_text(state, stage == "llvm" ? codegen::Product::llvm_text : codegen::Product::assembly);
  }
  std::string names;
  for (const std::string& name : dump_stages()) names += (names.empty() ? "" : ", ") + name;
  return make_error(Code::not_found, "no stage is called '%.*s'; there are %s", static_cast<int>(stage.size()),
                    stage.data(), names.c_str());
}

}  // namespace quartet::compiler
