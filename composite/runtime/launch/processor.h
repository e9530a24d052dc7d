// Which processors the threads of a launch run on. A caller and a worker on the same processor take
// turns. The scheduler may keep them there for seconds, since it does not like to move threads that
// have just run.
#ifndef COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_H_
#define COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_H_

#include <cstdint>
#include <thread>

namespace composite {

// The number of the processor that runs this thread; negative if it is unknown.
int CurrentProcessor();

// The system's ID of this thread.
int CurrentThread();

// How often the system has preempted this thread.
int64_t Preemptions();

// Moves this thread off `processor` if it is on it and may run on others. Its affinity is the same
// afterwards.
void MoveOff(int processor);

// The same for another thread of this process, which must still exist and is assumed to be on
// `processor`.
void MoveOff(int processor, int thread);

// The thread that creates this, the caller of a launch, and its processor.
class Caller {
 public:
  bool IsHere() const { return std::this_thread::get_id() == thread_; }

  // Moves this thread off the caller's processor. Does nothing on the caller's own thread, on which
  // a pool with a full queue runs the closures of workers.
  void LeaveProcessor() const {
    if (!IsHere()) MoveOff(processor_);
  }

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
  const int processor_ = CurrentProcessor();
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_H_
