// quartet check: a model against expected outputs, or every value of it against the reference interpreter.

#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>

#include "case.h"
#include "common.h"
#include "reference.h"
#include "session.h"

namespace cli {

namespace {

struct CheckArguments {
  Common common;
  std::string model;
  std::vector<std::string> cases, dims;
  Tolerance tolerance;
  bool reference = false;
  uint64_t seed = 1;
  int rounds = 1;
};

struct Outcome {
  std::string name, problem;  // problem empty: passed
};

// Compares with the case's outputs.
std::string check_case(const quartet::Program& program, const Case& c) {
  auto outputs = program.run(c.inputs);
  if (c.expect_error) return outputs ? "ran, an error was expected" : "";
  if (!outputs) return outputs.error().message();
  const std::vector<quartet::TensorType> types = program.outputs();
  if (c.outputs.size() != outputs->size())
    return "has " + std::to_string(outputs->size()) + " outputs, the case " + std::to_string(c.outputs.size());
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    const std::string problem = difference((*outputs)[i], c.outputs[i], c.tolerance, c.spreads[i]);
    if (!problem.empty()) return "output '" + types[i].name + "' " + problem;
  }
  return "";
}

// Compares every value of the graph with the interpreter's, the program compiled with every value an output.
class ReferenceCheck {
 public:
  ReferenceCheck(const quartet::Context& context, const Common& common, const quartet::Graph& graph,
                 const Tolerance& tolerance)
      : exposed_(reference_.expose(context, graph)),
        program_(quartet::Program::compile(context, exposed_.graph, make_options(common), find_device(context, common))
                     .value()),
        tolerance_(tolerance) {}

  std::string check(const std::vector<quartet::Tensor>& inputs) const {
    const std::vector<quartet::Tensor> expected = reference_.run(exposed_.graph, inputs);
    const std::vector<quartet::Tensor> got = program_.run(inputs).value();
    if (got.size() != expected.size()) return "the interpreter gives another number of values";
    for (size_t i = 0; i < got.size(); ++i) {
      const std::string problem = difference(got[i], expected[i], tolerance_, 0);
      if (!problem.empty()) return "first difference at " + exposed_.values.at(i) + ": " + problem;
    }
    return "";
  }

 private:
  Reference reference_;
  Reference::Exposed exposed_;
  quartet::Program program_;
  Tolerance tolerance_;
};

std::string guarded(const std::function<std::string()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return error.what();
  }
}

int check(const CheckArguments& arguments) {
  if (arguments.cases.empty() && !arguments.reference)
    throw std::runtime_error("nothing to check against: give case directories or --reference");
  const quartet::Context context = make_context(arguments.common);
  const quartet::Options options = make_options(arguments.common);
  const quartet::Graph graph = load_graph(context, arguments.model, options);
  const quartet::Program program =
      quartet::Program::compile(context, graph, options, find_device(context, arguments.common)).value();
  std::unique_ptr<ReferenceCheck> reference;
  if (arguments.reference)
    reference = std::make_unique<ReferenceCheck>(context, arguments.common, graph, arguments.tolerance);

  std::vector<Outcome> outcomes;
  int failed = 0;
  const auto report = [&](const std::string& name, const std::string& problem) {
    outcomes.push_back({name, problem});
    failed += !problem.empty();
    if (arguments.common.json) return;
    if (problem.empty())
      std::printf("ok    %s\n", name.c_str());
    else
      std::printf("FAIL  %s: %s\n", name.c_str(), problem.c_str());
    std::fflush(stdout);
  };
  for (const std::string& directory : arguments.cases)
    report(directory, guarded([&] {
             const Case c = read_case(directory, program, arguments.tolerance);
             const std::string problem = check_case(program, c);
             return problem.empty() && reference && !c.expect_error ? reference->check(c.inputs) : problem;
           }));
  if (arguments.cases.empty())
    for (int round = 0; round < arguments.rounds; ++round) {
      const uint64_t seed = arguments.seed + 1000 * static_cast<uint64_t>(round);
      report("random inputs, seed " + std::to_string(seed), guarded([&] {
               return reference->check(gather_inputs(program, {}, parse_extents(arguments.dims), seed));
             }));
    }

  const int passed = static_cast<int>(outcomes.size()) - failed;
  if (arguments.common.json) {
    Json cases = Json::array();
    for (const Outcome& outcome : outcomes)
      cases.push_back({{"case", outcome.name}, {"passed", outcome.problem.empty()}, {"problem", outcome.problem}});
    print_json({{"model", arguments.model}, {"passed", passed}, {"failed", failed}, {"cases", cases}});
  } else {
    std::printf("%d passed, %d failed\n", passed, failed);
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CheckArguments>();
  CLI::App* verb = app.add_subcommand("check", "Compare a model's outputs with expected ones");
  verb->add_option("model", arguments->model, "an .onnx or .qt file")->required();
  verb->add_option("cases", arguments->cases, "directories with input_i and output_i as .npy or .pb");
  verb->add_option("--rtol", arguments->tolerance.rtol, "tolerance relative to each expected element")
      ->capture_default_str();
  verb->add_option("--atol", arguments->tolerance.atol, "absolute tolerance")->capture_default_str();
  verb->add_option("--scaled-atol", arguments->tolerance.scaled_atol, "tolerance relative to the largest element")
      ->capture_default_str();
  verb->add_flag("--reference", arguments->reference,
                 "compare every value with the reference interpreter (without cases: on random inputs)");
  verb->add_option("--dim", arguments->dims,
                   "extent of a symbolic dim for random inputs, SYMBOL=N (repeatable); 1 if not given")
      ->take_all();
  verb->add_option("--rounds", arguments->rounds, "sets of random inputs")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  verb->add_option("--seed", arguments->seed, "of the random inputs")->capture_default_str();
  add_common(*verb, arguments->common);
  verb->callback([arguments, &exit_code] { exit_code = check(*arguments); });
}

}  // namespace cli
