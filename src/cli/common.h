// What every verb shares: the common options, the context and model they lead to, and how results are printed.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <quartet.hpp>

#include <string>
#include <vector>

#include "arrays.h"

namespace cli {

using Json = nlohmann::ordered_json;

struct Common {
  std::string device;                // empty: the first
  int threads = -1;                  // -1: the option's default
  std::string cache;                 // a directory, "off", or empty: the user's cache directory
  std::vector<std::string> options;  // NAME=VALUE
  int tune = -1;
  bool json = false;
  bool verbose = false;
};
void add_common(CLI::App& verb, Common& common);

// "NAME=VALUE" apart; throws without a '='. The name may hold '=' only if the value does not: the last one counts.
std::pair<std::string, std::string> split_assignment(const std::string& text);
Extents parse_extents(const std::vector<std::string>& assignments);

quartet::Context make_context(const Common& common);
quartet::Options make_options(const Common& common);
const quartet_device* find_device(const quartet::Context& context, const Common& common);
// The directory of the cache that `common` means; empty for none. XDG_CACHE_HOME, else HOME.
std::string cache_directory(const Common& common);

// By the ending: .onnx or .qt. Throws with what is wrong.
quartet::Graph load_graph(const quartet::Context& context, const std::string& path, const quartet::Options& options);

const char* origin_name(int32_t origin);
double milliseconds(uint64_t ns);
// One JSON object on stdout, for --json.
void print_json(const Json& json);

// The verbs add themselves to the command line; the callback runs the verb and returns the exit code.
void add_run(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_compile(CLI::App& app, int& exit_code);
void add_dump(CLI::App& app, int& exit_code);
void add_cache(CLI::App& app, int& exit_code);
void add_devices(CLI::App& app, int& exit_code);
void add_version(CLI::App& app, int& exit_code);

}  // namespace cli
