#include "codegen/cpu/backend.h"

#include <algorithm>
#include <map>

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Pass.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Scalar.h>

#include "base/compiler_id.h"
#include "codegen/cpu/emitter.h"
#include "codegen/cpu/link.h"
#include "codegen/cpu/llvm_session.h"
#include "kernel/expand.h"

namespace quartet::codegen {
namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";
constexpr const char* kProcessor = "x86-64";  // the rest is features

// LLVM's words of failure, which otherwise go to stderr.
class Diagnostics : public llvm::DiagnosticHandler {
 public:
  explicit Diagnostics(Status& status) : status_(status) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() != llvm::DS_Error || !status_.ok()) return true;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    status_ = Status(Code::compiler, "LLVM: " + text);
    return true;
  }

 private:
  Status& status_;
};

// Features LLVM does not know would make it talk.
Status check_features(const llvm::TargetMachine& machine, const CpuModel& model) {
  const auto known = machine.getMCSubtargetInfo()->getAllProcessorFeatures();
  for (const std::string& feature : model.features) {
    const bool found = std::any_of(known.begin(), known.end(), [&](const llvm::SubtargetFeatureKV& row) {
      return feature.compare(1, std::string::npos, row.Key) == 0;
    });
    if (!found) return make_error(Code::unsupported, "the code generator knows no feature %s", feature.c_str());
  }
  return {};
}

Result<std::unique_ptr<llvm::TargetMachine>> make_machine(const Target& target, const CpuModel& model) {
  std::string reason;
  const llvm::Target* const found = llvm::TargetRegistry::lookupTarget(kTriple, reason);
  if (!found) return Status(Code::internal, reason);
  const auto create = [&](const std::string& features) {
    return std::unique_ptr<llvm::TargetMachine>(
        found->createTargetMachine(kTriple, kProcessor, features, llvm::TargetOptions(), llvm::Reloc::PIC_,
                                   llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, true));
  };
  auto machine = create("");
  if (!machine) return Status(Code::internal, "LLVM has no machine for x86-64");
  QUARTET_TRY(check_features(*machine, model));
  return create(target.features);
}

// The kernels of a request, those that are byte for byte the same only once.
struct Batch {
  std::vector<kernel::Kernel> kernels;
  std::vector<std::string> symbols, names;  // by kernel
  std::vector<size_t> of_request;           // which kernel each of the request is
};

Result<Batch> read_kernels(const Request& request, Isa isa) {
  Batch batch;
  std::map<Bytes, size_t> known;
  for (size_t i = 0; i < request.kernels.size(); ++i) {
    const auto [place, fresh] = known.emplace(request.kernels[i], batch.kernels.size());
    batch.of_request.push_back(place->second);
    if (!fresh) continue;
    auto kernel = kernel::deserialize(request.kernels[i]);
    if (!kernel.ok()) return kernel.status().with_prefix("kernel number " + std::to_string(i) + ": ");
    const std::string name = kernel->name;
    auto expanded = kernel::expand(*kernel, isa);
    if (!expanded.ok()) return expanded.status().with_prefix("kernel '" + name + "': ");
    batch.symbols.push_back("kernel_" + std::to_string(batch.kernels.size()));
    batch.names.push_back(name);
    batch.kernels.push_back(expanded.take());
  }
  return batch;
}

Status emit_module(llvm::Module& module, const Target& target, const Batch& batch) {
  for (size_t i = 0; i < batch.kernels.size(); ++i)
    QUARTET_TRY(Emitter(module, target, batch.kernels[i]).emit(batch.symbols[i]));
  std::string reason;
  llvm::raw_string_ostream stream(reason);
  if (llvm::verifyModule(module, &stream)) return Status(Code::internal, "the emitted code is malformed: " + reason);
  return {};
}

Status generate(llvm::TargetMachine& machine, llvm::Module& module, llvm::CodeGenFileType type,
                llvm::SmallVectorImpl<char>& out) {
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  // First, or EarlyCSE brings one that knows no processor.
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  passes.add(llvm::createEarlyCSEPass());
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type, true))
    return Status(Code::internal, "LLVM cannot write this kind of file");
  passes.run(module);
  return {};
}

Status run(const Request& request, Response& response) {
  QUARTET_ASSIGN(const Target target, make_target(request.target));
  QUARTET_ASSIGN(const auto machine, make_machine(target, request.target));
  QUARTET_ASSIGN(const Batch batch, read_kernels(request, target.isa));
  if (batch.kernels.empty() && request.product == Product::blob) return {};
  Status diagnosed;
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<Diagnostics>(diagnosed));
  llvm::Module module("quartet", context);
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine->createDataLayout());
  QUARTET_TRY(emit_module(module, target, batch));
  if (request.product == Product::llvm_text) {
    llvm::raw_string_ostream stream(response.text);
    module.print(stream, nullptr);
    return diagnosed;
  }
  const bool assembly = request.product == Product::assembly;
  llvm::SmallVector<char, 0> bytes;
  QUARTET_TRY(generate(*machine, module,
                       assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile, bytes));
  QUARTET_TRY(diagnosed);
  if (assembly) {
    response.text.assign(bytes.begin(), bytes.end());
    return {};
  }
  const llvm::SmallVectorMemoryBuffer object(std::move(bytes), "kernels", false);
  QUARTET_ASSIGN(Blob blob, link_closed(object.getMemBufferRef(), batch.symbols, batch.names));
  for (const size_t kernel : batch.of_request) response.blob.entries.push_back(blob.entries[kernel]);
  response.blob.image = std::move(blob.image);
  return {};
}

}  // namespace

Result<Response> compile(const Request& request) {
  if (request.compiler_id != compiler_id())
    return make_error(Code::version_mismatch, "the request is from compiler %.64s, this is %s",
                      request.compiler_id.c_str(), compiler_id());
  Response response;
  QUARTET_TRY(with_llvm([&] { return run(request, response); }));
  return response;
}

}  // namespace quartet::codegen
