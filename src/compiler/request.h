// A compile request: everything a compile may look at, and the key it makes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/options.h"
#include "device/device.h"
#include "graph/graph.h"

namespace quartet::compiler {

// Below `compile` nothing else is read: no environment, clock, file or global. So what is not in here cannot change the
// result, and what is in here is in the key.
struct Request {
  std::shared_ptr<const graph::Graph> graph;
  Options options;
  CpuModel target;
};

// One component of a key, named so that "why did it miss" can be answered by comparing components.
struct KeyPart {
  std::string name;  // "compiler", "artifact", "graph", "options", "target", "model"
  Bytes bytes;
};
std::vector<KeyPart> key_parts(const Request& request);

// The parts as (name, length, bytes): what the cache compares. Its XXH3-128 is the entry's index.
Bytes key_bytes(const Request& request);

// The target that `options.isa` and `options.threads` ask for on this host; unsupported when the host lacks the class
// and the program could not run here.
Result<CpuModel> resolve_target(const Options& options);

}  // namespace quartet::compiler
