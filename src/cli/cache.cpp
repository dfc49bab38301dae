// quartet cache: what is remembered, and whether it is sound.
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "common.h"

namespace cli {

namespace {

quartet::Context cache_context(const Common& common) {
  if (cache_directory(common).empty()) throw std::runtime_error("there is no cache directory; give one by --cache");
  quartet::Context context = make_context(common);
  if (context.cache_stats().value().mode == QUARTET_CACHE_MEMORY)
    throw std::runtime_error("the cache in " + cache_directory(common) + " cannot be used");
  return context;
}

int stats(const Common& common) {
  const quartet_cache_stats s = cache_context(common).cache_stats().value();
  if (common.json) {
    print_json({{"path", cache_directory(common)}, {"entries", s.entries}, {"bytes", s.bytes}});
  } else {
    std::printf("%s: %llu entries, %.1f KiB\n", cache_directory(common).c_str(),
                static_cast<unsigned long long>(s.entries), static_cast<double>(s.bytes) / 1024);
  }
  return 0;
}

int list(const Common& common) {
  const std::string text = cache_context(common).cache_list().value();
  const Json entries = Json::parse(text);
  if (common.json) {
    print_json({{"path", cache_directory(common)}, {"entries", entries}});
    return 0;
  }
  std::printf("%-32s  %-10s %12s %12s %6s\n", "key", "kind", "bytes", "compile ms", "hits");
  for (const Json& entry : entries)
    std::printf("%-32s  %-10s %12lld %12.2f %6lld\n", entry.value("key", "").c_str(), entry.value("kind", "").c_str(),
                entry.value("bytes", 0LL), entry.value("compile_us", 0.0) / 1000, entry.value("hits", 0LL));
  return 0;
}

int verify(const Common& common) {
  const Json report = Json::parse(cache_context(common).cache_verify().value());
  const auto damaged = report.at("damaged").get<int64_t>(), removed = report.at("removed").get<int64_t>();
  const bool file_sound = report.at("file_sound").get<bool>();
  if (common.json) {
    print_json(report);
  } else {
    std::printf("%lld entries checked, %lld damaged, %lld dropped\n", report.at("checked").get<long long>(),
                static_cast<long long>(damaged), static_cast<long long>(removed));
    if (!file_sound) std::printf("the file is damaged: %s\n", report.at("file_problem").get<std::string>().c_str());
  }
  return damaged == 0 && file_sound ? 0 : 1;
}

int prune(const Common& common, uint64_t bytes) {
  const quartet::Context context = cache_context(common);
  const uint64_t before = context.cache_stats().value().bytes;
  context.cache_trim(bytes).value();
  const uint64_t after = context.cache_stats().value().bytes;
  if (common.json)
    print_json({{"bytes_before", before}, {"bytes_after", after}});
  else
    std::printf("%.1f KiB before, %.1f KiB after\n", static_cast<double>(before) / 1024,
                static_cast<double>(after) / 1024);
  return 0;
}

}  // namespace

void add_cache(CLI::App& app, int& exit_code) {
  CLI::App* group = app.add_subcommand("cache", "Look after the cache");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* doc, int (*action)(const Common&)) {
    auto common = std::make_shared<Common>();
    CLI::App* verb = group->add_subcommand(name, doc);
    add_common(*verb, *common);
    verb->callback([common, action, &exit_code] { exit_code = action(*common); });
  };
  add("stats", "How much is remembered", stats);
  add("list", "Every entry", list);
  add("verify", "Check every entry and drop damaged ones (exit code 1 if anything is damaged)", verify);
  auto common = std::make_shared<Common>();
  auto bytes = std::make_shared<uint64_t>(0);
  CLI::App* verb = group->add_subcommand("prune", "Evict the least useful entries");
  verb->add_option("--to", *bytes, "bytes to keep at most; 0 empties the cache")->required();
  add_common(*verb, *common);
  verb->callback([common, bytes, &exit_code] { exit_code = prune(*common, *bytes); });
}

}  // namespace cli
