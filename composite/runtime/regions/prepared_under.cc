#include "composite/runtime/regions/prepared_under.h"

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "composite/runtime/base/fork_mutex.h"

namespace composite {
namespace {

constexpr size_t kMostFunctions = 1 << 16;

struct Choices {
  RegionsOption regions = RegionsOption::kUnset;
  Options options;

  bool operator==(const Choices& other) const {
    return regions == other.regions && options == other.options;
  }
  Choices Or(const Choices& other) const {
    return {regions == RegionsOption::kUnset ? other.regions : regions, options.Or(other.options)};
  }
};

struct Memory {
  ForkMutex mutex;
  // By name: those of traces are numbered, and none is given twice.
  absl::flat_hash_map<std::string, Choices> choices ABSL_GUARDED_BY(mutex);
};

Memory& Remembered() {
  static Memory* const memory = new Memory();  // never destroyed: threads may outlive main
  return *memory;
}

// What is chosen for a function: by its thread, or else by one that it was prepared on before.
Choices Chosen(const std::string& function, const Choices& by_thread) {
  Memory& memory = Remembered();
  absl::MutexLock lock(memory.mutex);
  auto before = memory.choices.find(function);
  if (before != memory.choices.end()) return before->second = by_thread.Or(before->second);
  if (!(by_thread == Choices()) && memory.choices.size() < kMostFunctions) {
    memory.choices.emplace(function, by_thread);
  }
  return by_thread;
}

}  // namespace

PreparedUnder::PreparedUnder(const tensorflow::FunctionDef* function)
    : own_regions_(ThreadRegions()), own_options_(ThreadOptions()) {
  if (function == nullptr) return;
  const Choices chosen = Chosen(function->signature().name(), {own_regions_, own_options_});
  ThreadRegions() = chosen.regions;
  ThreadOptions() = chosen.options;
}

PreparedUnder::~PreparedUnder() {
  ThreadRegions() = own_regions_;
  ThreadOptions() = own_options_;
}

}  // namespace composite
