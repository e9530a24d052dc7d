// The VMs of an open module that run no call.
#ifndef COMPOSITE_RUNTIME_HYBRID_IDLE_MACHINES_H_
#define COMPOSITE_RUNTIME_HYBRID_IDLE_MACHINES_H_

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "composite/runtime/foreign/tvm_ffi.h"

namespace composite {

// Thread-safe. A thread takes the VM that it gave back last, unless others took that: what a VM
// writes in each call stays in the cache of one processor, and the threads meet in no lock.
class IdleMachines {
 public:
  // The function `main` of a VM, which keeps the VM.
  using Main = std::unique_ptr<tvm_ffi::Value>;

  IdleMachines() = default;
  ~IdleMachines();
  IdleMachines(const IdleMachines&) = delete;
  IdleMachines& operator=(const IdleMachines&) = delete;

  // Null if there is none.
  Main Take();
  void Give(Main main);

 private:
  static constexpr int kSeats = 64;

  // On a cache line of its own. Threads whose numbers differ by kSeats share one.
  struct alignas(64) Seat {
    std::atomic<tvm_ffi::Value*> main{nullptr};
  };
  Seat& OwnSeat();

  std::array<Seat, kSeats> seats_;
  absl::Mutex mu_;
  std::vector<Main> others_ ABSL_GUARDED_BY(mu_);  // whose seats were taken
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_HYBRID_IDLE_MACHINES_H_
