// Where the threads of a launch run. A caller and a worker that are on one processor take turns
// there, and the scheduler may leave them so for seconds: both have run a moment ago, which it
// takes for a reason not to move either.
#ifndef COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_H_
#define COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_H_

namespace composite {

// The number of the processor that runs this thread; negative if the system does not tell.
int CurrentProcessor();

// Moves this thread to another processor if it is on this one and may run on others, all of which
// it may run on afterwards as before.
void MoveOff(int processor);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_H_
