// quartet run: compiles or loads, runs once.
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "common.h"
#include "session.h"

namespace cli {

namespace {

struct RunArguments {
  Common common;
  std::string model, out;
  std::vector<std::string> inputs, dims;
  uint64_t seed = 1;
};

std::string preview(const quartet::Tensor& tensor) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < tensor.elements() && i < kShown; ++i) {
    char number[32];
    std::snprintf(number, sizeof number, "%s%.6g", i ? " " : "", element(tensor, i));
    text += number;
  }
  if (tensor.elements() > kShown) text += " ...";
  return text;
}

// A file name for an output: its name where that is one, else its number.
std::string file_name(const std::string& name, size_t index) {
  const bool plain =
      !name.empty() && name.size() < 100 && name[0] != '.' &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == std::string::npos;
  return (plain ? name : "output_" + std::to_string(index)) + ".npy";
}

int run(const RunArguments& arguments) {
  const quartet::Context context = make_context(arguments.common);
  const Session session = open_session(context, arguments.common, arguments.model);
  const std::vector<quartet::Tensor> inputs =
      gather_inputs(session.program, arguments.inputs, parse_extents(arguments.dims), arguments.seed);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<quartet::Tensor> outputs = session.program.run(inputs).value();
  const std::chrono::duration<double, std::milli> run_ms = std::chrono::steady_clock::now() - begin;

  const std::vector<quartet::TensorType> types = session.program.outputs();
  Json described = Json::array();
  if (!arguments.out.empty() && ::mkdir(arguments.out.c_str(), 0777) != 0 && errno != EEXIST)
    throw std::runtime_error(arguments.out + ": the directory cannot be made");
  for (size_t i = 0; i < outputs.size(); ++i) {
    Json output = {
        {"name", types[i].name}, {"dtype", quartet::dtype_name(outputs[i].dtype())}, {"dims", outputs[i].dims()}};
    if (!arguments.out.empty()) {
      const std::string path = arguments.out + "/" + file_name(types[i].name, i);
      write_npy(path, outputs[i]);
      output["file"] = path;
    }
    described.push_back(std::move(output));
  }
  const quartet_program_info info = session.program.info();
  if (arguments.common.json) {
    print_json({{"origin", origin_name(info.origin)},
                {"ready_ms", session.ready_ms},
                {"compile_ms", milliseconds(info.compile_ns)},
                {"load_ms", milliseconds(info.load_ns)},
                {"run_ms", run_ms.count()},
                {"kernels", info.kernels},
                {"outputs", described}});
    return 0;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::printf("%s %s: %s\n", types[i].name.c_str(), type_text(outputs[i]).c_str(), preview(outputs[i]).c_str());
    if (!arguments.out.empty()) std::printf("  written to %s\n", described[i]["file"].get<std::string>().c_str());
  }
  const bool compiled = info.origin == QUARTET_ORIGIN_COMPILED;
  std::printf("%s in %.2f ms, ran in %.3f ms, %u kernels\n",
              compiled                             ? "compiled"
              : info.origin == QUARTET_ORIGIN_DISK ? "from the cache"
                                                   : "remembered",
              session.ready_ms, run_ms.count(), info.kernels);
  std::fflush(stdout);  // the result is out before its memory is given back
  return 0;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* verb = app.add_subcommand("run", "Compile or load a model and run it once");
  verb->add_option("model", arguments->model, "an .onnx or .qt file")->required();
  verb->add_option("--input", arguments->inputs, "an input as NAME=FILE.npy (repeatable); the others are random")
      ->take_all();
  verb->add_option("--out", arguments->out, "directory for the outputs as .npy files");
  verb->add_option("--dim", arguments->dims, "extent of a symbolic dim as SYMBOL=N (repeatable); 1 if not given")
      ->take_all();
  verb->add_option("--seed", arguments->seed, "of the random inputs")->capture_default_str();
  add_common(*verb, arguments->common);
  verb->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace cli
