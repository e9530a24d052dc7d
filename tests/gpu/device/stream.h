// Streams of the test devices: each a thread that does what it is given, in order.
#ifndef TESTS_GPU_DEVICE_STREAM_H_
#define TESTS_GPU_DEVICE_STREAM_H_

#include <stdbool.h>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

typedef void (*Work)(void* argument);

SP_Stream NewStream(int device);
// When its work is done.
void DeleteStream(SP_Stream stream);
int DeviceOf(SP_Stream stream);
// Runs `work` after what the stream was given before. It owns the argument, and frees it.
void Enqueue(SP_Stream stream, Work work, void* argument);
// The same for a kernel, which waits while kernels are held.
void EnqueueKernel(SP_Stream stream, Work work, void* argument);
void WaitForStream(SP_Stream stream);
void WaitForAllStreams(int device);
// `dependent` goes on when `other` has done what it was given so far.
void MakeDependent(SP_Stream dependent, SP_Stream other);

SP_Event NewEvent(void);
void DeleteEvent(SP_Event event);
// The event is complete when the stream has done what it was given so far.
void RecordEvent(SP_Stream stream, SP_Event event);
void MakeWait(SP_Stream stream, SP_Event event);
void WaitForEvent(SP_Event event);
bool IsComplete(SP_Event event);

// For tests. While kernels are held no stream begins one.
void HoldKernels(bool held);

#endif  // TESTS_GPU_DEVICE_STREAM_H_
