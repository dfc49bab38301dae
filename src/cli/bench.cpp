// quartet bench: times of compile, load and repeated runs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "case.h"
#include "common.h"
#include "session.h"

namespace cli {

namespace {

struct BenchArguments {
  Common common;
  std::string model, case_dir;
  std::vector<std::string> inputs, dims;
  int runs = 100;
  uint64_t seed = 1;
};

double timed_run(quartet::Binding& binding) {
  const auto begin = std::chrono::steady_clock::now();
  binding.run().value();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

int bench(const BenchArguments& arguments) {
  const quartet::Context context = make_context(arguments.common);
  const Session session = open_session(context, arguments.common, arguments.model);
  const std::vector<quartet::Tensor> inputs =
      arguments.case_dir.empty()
          ? gather_inputs(session.program, arguments.inputs, parse_extents(arguments.dims), arguments.seed)
          : read_case(arguments.case_dir, session.program).inputs;

  quartet::Binding binding = quartet::Binding::create(session.program).value();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].data() || inputs[i].dense_bytes() == 0)
      binding.set_input(static_cast<uint32_t>(i), inputs[i]).value();
  binding.prepare().value();
  const double first = timed_run(binding);
  std::vector<double> times;
  for (int i = 0; i < arguments.runs; ++i) times.push_back(timed_run(binding));
  std::sort(times.begin(), times.end());
  const auto quantile = [&](double q) {
    return times[std::min(times.size() - 1, static_cast<size_t>(q * static_cast<double>(times.size())))];
  };

  const quartet_program_info info = session.program.info();
  const uint64_t peak = context.memory_usage().value().peak_bytes;
  if (arguments.common.json) {
    print_json({{"model", arguments.model},
                {"compile_ms", milliseconds(info.compile_ns)},
                {"load_ms", milliseconds(info.load_ns)},
                {"import_ms", session.import_ms},
                {"ready_ms", session.ready_ms},
                {"first_ms", first},
                {"median_ms", quantile(0.5)},
                {"min_ms", times.front()},
                {"p95_ms", quantile(0.95)},
                {"runs", arguments.runs},
                {"origin", origin_name(info.origin)},
                {"kernels", info.kernels},
                {"stages", info.stages},
                {"library_share", info.library_share},
                {"workspace_bytes", info.workspace_bytes},
                {"peak_bytes", peak}});
    return 0;
  }
  std::printf("%s\n", arguments.model.c_str());
  std::printf("  %-10s %10.3f ms  (%s)\n", "ready", session.ready_ms, origin_name(info.origin));
  std::printf("  %-10s %10.3f ms\n", "first run", first);
  std::printf("  %-10s %10.4f ms  of %d runs\n", "median", quantile(0.5), arguments.runs);
  std::printf("  %-10s %10.4f ms\n", "min", times.front());
  std::printf("  %-10s %10.4f ms\n", "95 %", quantile(0.95));
  std::printf("  %u kernels in %u stages, workspace %.1f KiB, peak memory %.1f MiB\n", info.kernels, info.stages,
              static_cast<double>(info.workspace_bytes) / 1024, static_cast<double>(peak) / (1024 * 1024));
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* verb = app.add_subcommand("bench", "Time compile, load and repeated runs of a model");
  verb->add_option("model", arguments->model, "an .onnx or .qt file")->required();
  verb->add_option("--case", arguments->case_dir, "take the inputs of this case directory");
  verb->add_option("--input", arguments->inputs, "an input as NAME=FILE.npy (repeatable); the others are random")
      ->take_all();
  verb->add_option("--dim", arguments->dims, "extent of a symbolic dim as SYMBOL=N (repeatable); 1 if not given")
      ->take_all();
  verb->add_option("--runs", arguments->runs, "timed runs after the first")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000000));
  verb->add_option("--seed", arguments->seed, "of the random inputs")->capture_default_str();
  add_common(*verb, arguments->common);
  verb->callback([arguments, &exit_code] { exit_code = bench(*arguments); });
}

}  // namespace cli
