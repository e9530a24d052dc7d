// The memory of the test devices: one file, mapped twice.
//
// A device address lies in the first mapping, which nobody may read or write: code of the host that
// does is killed. The work of a stream goes through the second.
#ifndef TESTS_GPU_DEVICE_MEMORY_H_
#define TESTS_GPU_DEVICE_MEMORY_H_

#include <stddef.h>

enum { kDevices = 2 };
#define DEVICE_BYTES ((size_t)1 << 30)

// Zero, or -1 with errno. Must come before anything else.
int MapMemory(void);

// A device address that was never given out before; null when the device has no more. Nothing is
// ever taken back: TensorFlow's allocator keeps its regions.
void* TakeMemory(int device, size_t bytes);

size_t FreeMemory(int device);

// Where the data of a device address lies. Ends the process for any other address, as a device does
// when a kernel is given a pointer of the host.
void* DataOf(const void* address, size_t bytes);

#endif  // TESTS_GPU_DEVICE_MEMORY_H_
