#include "codegen/cpu/link.h"

#include <algorithm>

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/JITLink/x86_64.h>

namespace quartet::codegen {
namespace {

namespace jl = llvm::jitlink;

constexpr uint64_t kAlignment = 64;               // of the image, and of every segment in it
constexpr uint64_t kAnyBase = uint64_t{1} << 20;  // addresses while linking; nothing may depend on them
constexpr uint64_t kMaxImage = uint64_t{1} << 30;

// All segments one after the other in one buffer.
class ImageMemory : public jl::JITLinkMemoryManager {
 public:
  void allocate(const jl::JITLinkDylib* /*dylib*/, jl::LinkGraph& graph, OnAllocatedFunction on_allocated) override {
    jl::BasicLayout layout(graph);
    uint64_t size = 0;
    for (auto& [group, segment] : layout.segments()) {
      if (segment.Alignment.value() > kAlignment)
        return on_allocated(refusal("a section asks for an alignment beyond 64"));
      size = (size + kAlignment - 1) / kAlignment * kAlignment;
      size += segment.ContentSize + segment.ZeroFillSize;
      if (size > kMaxImage) return on_allocated(refusal("its code is larger than 1 GiB"));
    }
    image_.assign(size, 0);
    uint64_t offset = 0;
    for (auto& [group, segment] : layout.segments()) {
      offset = (offset + kAlignment - 1) / kAlignment * kAlignment;
      segment.WorkingMem = reinterpret_cast<char*>(image_.data() + offset);
      segment.Addr = llvm::orc::ExecutorAddr(kAnyBase + offset);
      offset += segment.ContentSize + segment.ZeroFillSize;
    }
    if (llvm::Error error = layout.apply()) return on_allocated(std::move(error));
    on_allocated(std::make_unique<Flight>());
  }

  void deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction on_deallocated) override {
    for (FinalizedAlloc& allocation : allocations) allocation.release();
    on_deallocated(llvm::Error::success());
  }

  Bytes take() { return std::move(image_); }
  static llvm::Error refusal(const char* reason) {
    return llvm::make_error<llvm::StringError>(reason, llvm::inconvertibleErrorCode());
  }

 private:
  class Flight : public InFlightAlloc {
   public:
    void finalize(OnFinalizedFunction on_finalized) override {
      on_finalized(FinalizedAlloc(llvm::orc::ExecutorAddr(kAnyBase)));
    }
    void abandon(OnAbandonedFunction on_abandoned) override { on_abandoned(llvm::Error::success()); }
  };

  Bytes image_;
};

// What one link leaves behind.
struct Outcome {
  ImageMemory memory;
  std::vector<uint64_t> entries;
  Status status;
};

class Context : public jl::JITLinkContext {
 public:
  Context(Outcome& outcome, const std::vector<std::string>& symbols, const std::vector<std::string>& names)
      : JITLinkContext(nullptr), outcome_(outcome), symbols_(symbols), names_(names) {}

  jl::JITLinkMemoryManager& getMemoryManager() override { return outcome_.memory; }
  bool shouldAddDefaultTargetPasses(const llvm::Triple& /*triple*/) const override { return false; }

  llvm::Error modifyPassConfig(jl::LinkGraph& /*graph*/, jl::PassConfiguration& passes) override {
    passes.PrePrunePasses.emplace_back(jl::markAllSymbolsLive);
    passes.PrePrunePasses.emplace_back([this](jl::LinkGraph& graph) { return check_closed(graph); });
    return llvm::Error::success();
  }

  void notifyFailed(llvm::Error error) override {
    const std::string reason = llvm::toString(std::move(error));
    if (outcome_.status.ok()) outcome_.status = Status(Code::compiler, reason);
  }

  void lookup(const LookupMap& /*wanted*/, std::unique_ptr<jl::JITLinkAsyncLookupContinuation> continuation) override {
    continuation->run(ImageMemory::refusal("a symbol is missing"));
  }

  llvm::Error notifyResolved(jl::LinkGraph& graph) override {
    outcome_.entries.assign(symbols_.size(), ~uint64_t{0});
    for (const jl::Symbol* const symbol : graph.defined_symbols()) {
      if (!symbol->hasName()) continue;
      const auto found = std::find(symbols_.begin(), symbols_.end(), symbol->getName());
      if (found == symbols_.end()) continue;
      outcome_.entries[static_cast<size_t>(found - symbols_.begin())] = symbol->getAddress().getValue() - kAnyBase;
    }
    return llvm::Error::success();
  }

  void notifyFinalized(jl::JITLinkMemoryManager::FinalizedAlloc allocation) override { allocation.release(); }

 private:
  llvm::Error check_closed(jl::LinkGraph& graph) {
    for (const jl::Section& section : graph.sections()) {
      if (section.getMemLifetime() != llvm::orc::MemLifetime::NoAlloc && !section.blocks().empty() &&
          is_writable(section))
        return llvm::make_error<llvm::StringError>("its code has writable data in " + section.getName(),
                                                   llvm::inconvertibleErrorCode());
    }
    for (jl::Block* const block : graph.blocks()) {
      for (const jl::Edge& edge : block->edges()) {
        if (!edge.isRelocation()) continue;
        if (edge.getTarget().isExternal() || edge.getTarget().isAbsolute())
          return refuse(
              graph, *block, edge,
              "calls " + (edge.getTarget().hasName() ? edge.getTarget().getName().str() : std::string("an address")));
        if (!is_relative(edge.getKind()))
          return refuse(graph, *block, edge,
                        std::string("needs a fixup of kind ") + jl::x86_64::getEdgeKindName(edge.getKind()));
      }
    }
    return llvm::Error::success();
  }

  static bool is_writable(const jl::Section& section) {
    return (static_cast<unsigned>(section.getMemProt()) & static_cast<unsigned>(llvm::orc::MemProt::Write)) != 0;
  }

  static bool is_relative(jl::Edge::Kind kind) {
    switch (kind) {
      case jl::x86_64::Delta64:
      case jl::x86_64::Delta32:
      case jl::x86_64::Delta8:
      case jl::x86_64::NegDelta64:
      case jl::x86_64::NegDelta32:
      case jl::x86_64::BranchPCRel32:
      case jl::x86_64::PCRel32:
        return true;
      default:
        return false;
    }
  }

  llvm::Error refuse(jl::LinkGraph& graph, const jl::Block& block, const jl::Edge& edge, const std::string& what) {
    std::string who = "a kernel";
    for (const jl::Symbol* const symbol : graph.defined_symbols()) {
      if (&symbol->getBlock() != &block || !symbol->hasName()) continue;
      if (edge.getOffset() < symbol->getOffset() || edge.getOffset() >= symbol->getOffset() + symbol->getSize())
        continue;
      const auto found = std::find(symbols_.begin(), symbols_.end(), symbol->getName());
      if (found != symbols_.end()) who = "kernel '" + names_[static_cast<size_t>(found - symbols_.begin())] + "'";
    }
    outcome_.status = Status(Code::internal, who + " is not closed: it " + what);
    return ImageMemory::refusal("not closed");
  }

  Outcome& outcome_;
  const std::vector<std::string>& symbols_;
  const std::vector<std::string>& names_;
};

}  // namespace

Result<Blob> link_closed(llvm::MemoryBufferRef object, const std::vector<std::string>& symbols,
                         const std::vector<std::string>& names) {
  auto graph = jl::createLinkGraphFromObject(object);
  if (!graph) return Status(Code::compiler, llvm::toString(graph.takeError()));
  Outcome outcome;
  jl::link(std::move(*graph),
           std::make_unique<Context>(outcome, symbols, names));  // returns when all is done: nothing waits
  QUARTET_TRY(outcome.status);
  Blob blob;
  blob.image = outcome.memory.take();
  blob.entries = std::move(outcome.entries);
  if (blob.entries.size() != symbols.size()) return Status(Code::internal, "the linker did not finish");
  for (size_t i = 0; i < symbols.size(); ++i)
    if (blob.entries[i] >= blob.image.size())
      return Status(Code::internal, "kernel '" + names[i] + "' is missing from its object");
  return blob;
}

}  // namespace quartet::codegen
