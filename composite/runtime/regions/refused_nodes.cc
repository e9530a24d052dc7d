#include "composite/runtime/regions/refused_nodes.h"

#include "absl/algorithm/container.h"
#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/program/node_attrs.h"

namespace composite {
namespace {

constexpr size_t kMostFunctions = 4096;

struct Memory {
  ForkMutex mutex;
  absl::flat_hash_map<std::string, absl::flat_hash_set<std::string>> nodes ABSL_GUARDED_BY(mutex);
};

Memory& Refused() {
  static Memory* const memory = new Memory();  // never destroyed: threads may outlive main
  return *memory;
}

}  // namespace

void RefuseNode(absl::string_view function, absl::string_view node) {
  if (!absl::StartsWith(function, kRegionPrefix)) return;
  Memory& memory = Refused();
  absl::MutexLock lock(&memory.mutex);
  if (memory.nodes.size() >= kMostFunctions && !memory.nodes.contains(function)) return;
  memory.nodes[function].emplace(node);
}

std::vector<std::string> RefusedNodes(absl::string_view function) {
  Memory& memory = Refused();
  absl::MutexLock lock(&memory.mutex);
  auto it = memory.nodes.find(function);
  if (it == memory.nodes.end()) return {};
  return {it->second.begin(), it->second.end()};
}

std::vector<std::string> RegionsWithRefusedNodes() {
  std::vector<std::string> functions;
  Memory& memory = Refused();
  absl::MutexLock lock(&memory.mutex);
  for (const auto& [function, nodes] : memory.nodes) functions.push_back(function);
  absl::c_sort(functions);
  return functions;
}

}  // namespace composite
