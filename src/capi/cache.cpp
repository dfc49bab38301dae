// The cache as the host sees it.
#include "capi/blob.h"
#include "capi/context.h"
#include "capi/json.h"

namespace quartet::capi {

namespace {

// Long enough for any queue, short of a hang on a disk that does not answer.
constexpr uint64_t kFlushTimeoutMs = 60'000;

bool wants_disk(const quartet_context& context) {
  return context.cache != nullptr && context.cache_mode != QUARTET_CACHE_MEMORY;
}

quartet_cache_stats stats_of(const quartet_context& context) {
  quartet_cache_stats out{};
  out.mode = context.cache_mode;
  if (context.cache == nullptr) return out;
  const cache::Stats stats = context.cache->stats();
  if (wants_disk(context) && !stats.disk_on) out.mode = QUARTET_CACHE_MEMORY;
  out.lookups = stats.lookups;
  out.hits_memory = stats.hits_memory;
  out.hits_disk = stats.hits_disk;
  out.misses_corrupt = stats.misses_checksum;
  out.misses_key = stats.misses_key_differs;
  out.misses = stats.misses_absent + stats.misses_key_differs + stats.misses_checksum + stats.misses_marked_bad +
               stats.misses_error;
  out.puts = stats.puts;
  out.puts_dropped = stats.puts_dropped + stats.puts_refused + stats.puts_failed;
  out.evictions = stats.evictions;
  out.entries = stats.disk_entries;
  out.bytes = stats.disk_entry_bytes;
  out.saved_ns = stats.saved_us * 1000;
  return out;
}

std::string list_json(const std::vector<cache::EntryInfo>& entries) {
  JsonWriter json;
  json.begin_list();
  for (const cache::EntryInfo& entry : entries) {
    json.begin_object();
    json.member("key", entry.key.hex());
    json.member("kind", cache::kind_name(entry.kind));
    json.member("bytes", entry.size);
    json.member("compile_us", entry.cost_us);
    json.member("hits", entry.hits);
    json.member("created_day", entry.created_day);
    json.member("used_hour", entry.used_hour);
    json.member("target", entry.env);
    json.end_object();
  }
  json.end_list();
  return json.take();
}

std::string report_json(const cache::VerifyReport& report) {
  JsonWriter json;
  json.begin_object();
  json.member("checked", report.checked);
  json.member("damaged", report.damaged);
  json.member("removed", report.removed);
  json.member("file_sound", report.file_sound);
  json.member("file_problem", report.file_problem);
  json.end_object();
  return json.take();
}

}  // namespace
}  // namespace quartet::capi

using namespace quartet;        // NOLINT: the functions below are outside of any namespace
using namespace quartet::capi;  // NOLINT

int32_t quartet_cache_get_stats(quartet_context* context, quartet_cache_stats* out, quartet_error** error) {
  clear_struct(out);
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(check_struct(out, "out"));
    write_struct(out, stats_of(*context));
    return {};
  });
}

int32_t quartet_cache_flush(quartet_context* context, quartet_error** error) {
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    if (context->cache == nullptr || context->cache->flush(kFlushTimeoutMs)) return {};
    return {Code::timeout, "the cache did not reach the disk within a minute"};
  });
}

int32_t quartet_cache_trim(quartet_context* context, uint64_t bytes, quartet_error** error) {
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    return wants_disk(*context) ? context->cache->prune(bytes).status() : Status();
  });
}

int32_t quartet_cache_clear(quartet_context* context, quartet_error** error) {
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    return context->cache != nullptr ? context->cache->clear() : Status();
  });
}

int32_t quartet_cache_verify(quartet_context* context, quartet_blob** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out, "out"));
    cache::VerifyReport report;
    if (wants_disk(*context)) {
      QUARTET_ASSIGN(report, context->cache->verify());
    }
    *out = make_blob(report_json(report));
    return {};
  });
}

int32_t quartet_cache_list(quartet_context* context, quartet_blob** out, quartet_error** error) {
  if (out != nullptr) *out = nullptr;
  return guarded(memory_of(context), error, [&]() -> Status {
    QUARTET_TRY(check_context(context));
    QUARTET_TRY(not_null(out, "out"));
    std::vector<cache::EntryInfo> entries;
    if (wants_disk(*context)) {
      QUARTET_ASSIGN(entries, context->cache->list());
    }
    *out = make_blob(list_json(entries));
    return {};
  });
}
