// quartet compile, quartet dump: a program as a file, and the text of any stage.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "common.h"
#include "session.h"

namespace cli {

namespace {

struct CompileArguments {
  Common common;
  std::string model, out;
};

struct DumpArguments {
  Common common;
  std::string model, stage;
};

int compile(const CompileArguments& arguments) {
  const quartet::Context context = make_context(arguments.common);
  const Session session = open_session(context, arguments.common, arguments.model);
  const std::vector<uint8_t> bytes = session.program.serialize().value();
  std::ofstream file(arguments.out, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error(arguments.out + ": cannot be written");
  const quartet_program_info info = session.program.info();
  if (arguments.common.json) {
    print_json({{"file", arguments.out},
                {"bytes", bytes.size()},
                {"origin", origin_name(info.origin)},
                {"compile_ms", milliseconds(info.compile_ns)},
                {"kernels", info.kernels},
                {"stages", info.stages},
                {"code_bytes", info.code_bytes},
                {"constant_bytes", info.constant_bytes},
                {"workspace_bytes", info.workspace_bytes}});
    return 0;
  }
  std::printf("%s: %zu bytes, %u kernels in %u stages, %.1f KiB of code, %.1f KiB of constants, workspace %.1f KiB\n",
              arguments.out.c_str(), bytes.size(), info.kernels, info.stages,
              static_cast<double>(info.code_bytes) / 1024, static_cast<double>(info.constant_bytes) / 1024,
              static_cast<double>(info.workspace_bytes) / 1024);
  return 0;
}

int dump(const DumpArguments& arguments) {
  const quartet::Context context = make_context(arguments.common);
  const Session session = open_session(context, arguments.common, arguments.model);
  const std::string text = session.program.dump(arguments.stage).value();
  if (arguments.common.json)
    print_json({{"stage", arguments.stage}, {"text", text}});
  else
    std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

void add_compile(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CompileArguments>();
  CLI::App* verb = app.add_subcommand("compile", "Compile a model ahead of time into a file for quartet_program_load");
  verb->add_option("model", arguments->model, "an .onnx or .qt file")->required();
  verb->add_option("-o,--output", arguments->out, "the program file")->required();
  add_common(*verb, arguments->common);
  verb->callback([arguments, &exit_code] { exit_code = compile(*arguments); });
}

void add_dump(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<DumpArguments>();
  CLI::App* verb = app.add_subcommand("dump", "Print the text of a stage of the compile");
  verb->add_option("model", arguments->model, "an .onnx or .qt file")->required();
  verb->add_option("--stage", arguments->stage,
                   "graph, simplified, ground, tiles, groups, program, kernel, llvm or asm")
      ->required();
  add_common(*verb, arguments->common);
  verb->callback([arguments, &exit_code] { exit_code = dump(*arguments); });
}

}  // namespace cli
