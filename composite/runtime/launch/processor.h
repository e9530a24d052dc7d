// Where the threads of a launch run. A caller and a worker that are on one processor take turns
// there, and the scheduler may leave them so for seconds: both have run a moment ago, which it
// takes for a reason not to move either.
#ifndef COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_H_
#define COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_H_

#include <cstdint>
#include <thread>

namespace composite {

// The number of the processor that runs this thread; negative if the system does not tell.
int CurrentProcessor();

// The number by which the system knows this thread.
int CurrentThread();

// How often the system has preempted this thread.
int64_t Preemptions();

// Moves this thread to another processor if it is on this one and may run on others, all of which
// it may run on afterwards as before.
void MoveOff(int processor);

// As much for another thread of this process, which has to be there still; it is taken to be on
// `processor`.
void MoveOff(int processor, int thread);

// The thread that makes this, and the processor that it is on: a launch's, for its workers.
class Caller {
 public:
  bool IsHere() const { return std::this_thread::get_id() == thread_; }

  // Moves this thread off the caller's processor. A pool whose queue is full runs workers' closures
  // on the caller itself, which stays.
  void LeaveProcessor() const {
    if (!IsHere()) MoveOff(processor_);
  }

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
  const int processor_ = CurrentProcessor();
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_H_
