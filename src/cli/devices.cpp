// quartet devices, quartet version: the machine and the build.
#include <cstdio>
#include <memory>

#include "common.h"

namespace cli {

namespace {

Json describe(const quartet_device_info& info) {
  return {{"name", info.name},         {"description", info.description},
          {"isa", info.isa},           {"cores", info.cores},
          {"threads", info.threads},   {"vector_bytes", info.vector_bytes},
          {"l1_bytes", info.l1_bytes}, {"l2_bytes", info.l2_bytes},
          {"l3_bytes", info.l3_bytes}, {"memory_bytes", info.memory_bytes}};
}

int devices(Common common) {
  common.cache = "off";
  const quartet::Context context = make_context(common);
  Json all = Json::array();
  for (uint32_t i = 0; i < context.device_count(); ++i) {
    auto info = quartet::detail::sized<quartet_device_info>();
    quartet_error* error = nullptr;
    const int32_t status = quartet_device_get_info(context.device(i).value(), &info, &error);
    if (status != QUARTET_OK) quartet::fail(quartet::Error(status, error));
    all.push_back(describe(info));
    if (common.json) continue;
    std::printf("%s  %s\n", info.name, info.description);
    std::printf("  %s, %d-byte vectors, %d cores, L1 %llu KiB, L2 %llu KiB, L3 %llu KiB, memory %.1f GiB\n", info.isa,
                info.vector_bytes, info.cores, static_cast<unsigned long long>(info.l1_bytes >> 10),
                static_cast<unsigned long long>(info.l2_bytes >> 10),
                static_cast<unsigned long long>(info.l3_bytes >> 10),
                static_cast<double>(info.memory_bytes) / (1024.0 * 1024 * 1024));
  }
  if (common.json) print_json({{"devices", all}});
  return 0;
}

int version(const Common& common) {
  quartet_blob* blob = nullptr;
  quartet_error* error = nullptr;
  const int32_t status = quartet_build_info(&blob, &error);
  if (status != QUARTET_OK) quartet::fail(quartet::Error(status, error));
  const Json build = Json::parse(quartet::detail::take_text(blob));
  const uint32_t abi = quartet_abi_version();
  if (common.json) {
    print_json({{"version", quartet_version_string(nullptr)},
                {"abi", std::to_string(abi >> 16) + "." + std::to_string(abi & 0xffff)},
                {"build", build}});
    return 0;
  }
  std::printf("quartet %s, ABI %u.%u\n", quartet_version_string(nullptr), abi >> 16, abi & 0xffff);
  for (const auto& [name, value] : build.items())
    std::printf("  %s: %s\n", name.c_str(),
                value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
  return 0;
}

}  // namespace

void add_devices(CLI::App& app, int& exit_code) {
  auto common = std::make_shared<Common>();
  CLI::App* verb = app.add_subcommand("devices", "The devices of this machine");
  verb->add_flag("--json", common->json, "one JSON object on standard output");
  verb->callback([common, &exit_code] { exit_code = devices(*common); });
}

void add_version(CLI::App& app, int& exit_code) {
  auto common = std::make_shared<Common>();
  CLI::App* verb = app.add_subcommand("version", "Version and build of the library");
  verb->add_flag("--json", common->json, "one JSON object on standard output");
  verb->callback([common, &exit_code] { exit_code = version(*common); });
}

}  // namespace cli
