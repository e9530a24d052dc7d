// Counters of this process, read by composite.stats(). They count events that tests and users ask
// about; nothing in the runtime decides by them.
#ifndef COMPOSITE_RUNTIME_BASE_STATS_H_
#define COMPOSITE_RUNTIME_BASE_STATS_H_

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace composite {

using Counter = std::atomic<int64_t>;

struct Stats {
  Counter expansions{0};           // evaluations of a program that no cache answered
  Counter instantiations{0};       // expansions made ready to run inside a node
  Counter optimized{0};            // of these, expansions that TensorFlow's optimizers rewrote
  Counter expansion_runs{0};       // calls that a node answered by running its expansion
  Counter gpu_expansion_runs{0};   // of these, calls on GPUs
  Counter kernel_launches{0};      // calls that a node answered by its kernel
  Counter gpu_kernel_launches{0};  // of these, calls on GPUs
  Counter xla_kernel_launches{0};  // of these, calls by code that XLA compiled
  Counter kernel_errors{0};        // calls in which a kernel raised
  Counter parallel_launches{0};    // parallel loops that kernels launched
  Counter team_launches{0};        // of these, loops for which a team was gathered
  Counter short_teams{0};          // of these, loops that ran on fewer threads than the pool has
  Counter requests{0};             // kernels that were asked of the just-in-time worker
  Counter answered{0};             // requests that the worker answered with a kernel
  Counter compiles{0};             // kernels that were compiled: none that a cache had
  Counter installed{0};            // kernel records taken in
  Counter rejected{0};             // kernel records refused: damaged, missing, of another machine
  Counter evicted{0};           // groups of kernels let go: no node had their attributes any more
  Counter evicted_classes{0};   // classes of shapes that made room for others, with their kernels
  Counter replaced{0};          // nodes of TensorFlow's own ops that became a composition's
  Counter regions{0};           // nodes that parts of graphs without an op of their own became
  Counter invalid_graphs{0};    // graphs and functions that stay, since a change was invalid
  Counter xla_nodes{0};         // nodes that XLA compiled, at each compilation
  Counter xla_kernel_nodes{0};  // of these, nodes that are calls of kernels
  Counter xla_kernels{0};       // kernels that such nodes have called
  Counter in_place_updates{0};  // variables and tensors that were updated where they lie
  Counter copies{0};  // inputs that were copied: packed constants, unaligned ones, to a GPU
  Counter packed_constants{0};  // constants that were packed for a kernel
  Counter packed_bytes{0};      // what they take at present
};

Stats& GlobalStats();

inline void Count(Counter& counter, int64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

// Every counter by its name, in a fixed order.
std::vector<std::pair<const char*, Counter*>> AllCounters();

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_BASE_STATS_H_
