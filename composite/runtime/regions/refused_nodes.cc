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

constexpr size_t kMostRefusingFunctions = 4096;

struct RefusalMemory {
  ForkMutex mutex;
  absl::flat_hash_map<std::string, absl::flat_hash_set<std::string>> nodes ABSL_GUARDED_BY(mutex);
};

RefusalMemory& Refused() {
  static RefusalMemory* const memory =
      new RefusalMemory();  // never destroyed: threads may outlive main
  return *memory;
}

}  // namespace

void RefuseNode(absl::string_view function, absl::string_view node) {
  if (!absl::StartsWith(function, kRegionPrefix)) return;
  RefusalMemory& memory = Refused();
  absl::MutexLock lock(memory.mutex);
  if (memory.nodes.size() >= kMostRefusingFunctions && !memory.nodes.contains(function)) return;
  memory.nodes[function].emplace(node);
}

std::vector<std::string> RefusedNodes(absl::string_view function) {
  RefusalMemory& memory = Refused();
  absl::MutexLock lock(memory.mutex);
  auto it = memory.nodes.find(function);
  if (it == memory.nodes.end()) return {};
  return {it->second.begin(), it->second.end()};
}

std::vector<std::string> RegionsWithRefusedNodes() {
  std::vector<std::string> functions;
  RefusalMemory& memory = Refused();
  absl::MutexLock lock(memory.mutex);
  for (const auto& [function, nodes] : memory.nodes) functions.push_back(function);
  absl::c_sort(functions);
  return functions;
}

}  // namespace composite
