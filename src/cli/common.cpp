#include "common.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>

namespace cli {

namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

void log_to_stderr(void*, int32_t level, const char* component, size_t, const char* message, size_t) {
  constexpr const char* kNames[] = {"off", "error", "warning", "info", "debug"};
  std::fprintf(stderr, "%s: %s: %s\n", kNames[level >= 0 && level <= 4 ? level : 0], component, message);
}

}  // namespace

void add_common(CLI::App& verb, Common& common) {
  std::string names;
  for (uint32_t i = 0; i < quartet_option_count(); ++i) {
    auto info = quartet::detail::sized<quartet_option_info>();
    if (quartet_option_describe(i, &info, nullptr) == QUARTET_OK)
      names += (names.empty() ? "" : ", ") + std::string(info.name);
  }
  verb.add_option("--device", common.device, "device to compile for and run on, see `quartet devices`");
  verb.add_option("--threads", common.threads, "threads that run the program, this one included")
      ->check(CLI::Range(1, 1024));
  verb.add_option("--cache", common.cache,
                  "directory of the cache, or `off`; else quartet/ in XDG_CACHE_HOME or ~/.cache");
  verb.add_option("--option", common.options, "compile option as NAME=VALUE (repeatable): " + names)->take_all();
  verb.add_option("--tune", common.tune, "measure this many tile plans a group; in this version 0 alone")
      ->check(CLI::Range(0, 32));
  verb.add_flag("--json", common.json, "one JSON object on standard output");
  verb.add_flag("--verbose", common.verbose, "the library's messages on standard error");
}

std::pair<std::string, std::string> split_assignment(const std::string& text) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) throw std::runtime_error("'" + text + "' is not NAME=VALUE");
  return {text.substr(0, at), text.substr(at + 1)};
}

Extents parse_extents(const std::vector<std::string>& assignments) {
  Extents extents;
  for (const std::string& text : assignments) {
    const auto [name, value] = split_assignment(text);
    char* end = nullptr;
    const long long number = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end || number < 0)
      throw std::runtime_error("--dim " + text + ": the extent is not a non-negative number");
    extents[name] = number;
  }
  return extents;
}

std::string cache_directory(const Common& common) {
  if (common.cache == "off") return "";
  if (!common.cache.empty()) return common.cache;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg == '/') return std::string(xdg) + "/quartet";
  if (const char* home = std::getenv("HOME"); home && *home == '/') return std::string(home) + "/.cache/quartet";
  return "";
}

quartet::Context make_context(const Common& common) {
  quartet::ContextSettings settings;
  settings.cache_path = cache_directory(common);
  if (common.cache == "off")
    settings.cache_mode = QUARTET_CACHE_OFF;
  else if (!settings.cache_path.empty())
    settings.cache_mode = QUARTET_CACHE_DISK;
  auto logger = quartet::detail::sized<quartet_logger>();
  logger.level = common.verbose ? QUARTET_LOG_DEBUG : QUARTET_LOG_WARNING;
  logger.log = log_to_stderr;
  settings.logger = &logger;
  return quartet::Context::create(settings).value();
}

quartet::Options make_options(const Common& common) {
  quartet::Options options;
  for (const std::string& text : common.options) {
    const auto [name, value] = split_assignment(text);
    options.set(name, value).value();
  }
  if (common.threads >= 0) options.set(QUARTET_OPTION_THREADS, common.threads).value();
  if (common.tune >= 0) options.set(QUARTET_OPTION_TUNE, common.tune).value();
  return options;
}

const quartet_device* find_device(const quartet::Context& context, const Common& common) {
  return common.device.empty() ? nullptr : context.find_device(common.device).value();
}

quartet::Graph load_graph(const quartet::Context& context, const std::string& path, const quartet::Options& options) {
  if (ends_with(path, ".onnx")) return quartet::Graph::from_onnx_file(context, path, options).value();
  if (!ends_with(path, ".qt")) throw std::runtime_error(path + ": a model's name ends in .onnx or .qt");
  const std::vector<uint8_t> text = read_file(path);
  auto graph = quartet::Graph::parse(context, {reinterpret_cast<const char*>(text.data()), text.size()});
  if (!graph) throw std::runtime_error(path + ": " + graph.error().message());
  return *graph;
}

const char* origin_name(int32_t origin) {
  switch (origin) {
    case QUARTET_ORIGIN_COMPILED:
      return "compiled";
    case QUARTET_ORIGIN_MEMORY:
      return "memory";
    case QUARTET_ORIGIN_DISK:
      return "disk";
    case QUARTET_ORIGIN_BYTES:
      return "bytes";
    default:
      return "unknown";
  }
}

double milliseconds(uint64_t ns) { return static_cast<double>(ns) * 1e-6; }

void print_json(const Json& json) { std::cout << json.dump() << '\n'; }

}  // namespace cli
