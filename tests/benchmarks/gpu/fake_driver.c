/* A stand-in for NVIDIA's driver: memory is the host's, and "machine code" is the path of a library
   that has kernels compiled for threads of the host (tests/gpu/shim). Launches end before they
   return. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef const char* (*Kernel)(void** arguments, unsigned grid, unsigned threads, unsigned dynamic,
                              _Bool resident, _Bool reverse);
enum { kCount = 2 };  /* of multiprocessors */
enum { kMultiprocessors = 16, kMajor = 75, kMinor = 76, kFailed = 700 };

static const char* message = "no error";

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGet(int* device, int number) { return *device = number; }
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &message;
  return device;
}
int cuCtxSetCurrent(void* context) { return context == &message ? 0 : kFailed; }
int cuCtxSynchronize(void) { return 0; }
int cuDeviceGetName(char* name, int size, int device) {
  snprintf(name, (size_t)size, "threads of the host");
  return device;
}
int cuDriverGetVersion(int* version) { return *version = 12090, 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == kMultiprocessors ? kCount
           : attribute == kMajor         ? 8
           : attribute == kMinor         ? 0
                                         : -1;
  return device;
}
int cuGetErrorString(int status, const char** text) { return *text = message, status == 0; }

int cuModuleLoadData(void** module, const void* image) {
  *module = dlopen(image, RTLD_NOW | RTLD_LOCAL);
  return *module == NULL ? kFailed : 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  char symbol[256];
  snprintf(symbol, sizeof symbol, "launch_%s", name);
  *function = dlsym(module, symbol);
  return *function == NULL ? kFailed : 0;
}
/* One stream. What is recorded runs at once, and not again when the graph is launched. */
static char stream_of_all, graph_of_all;
int cuStreamCreate(void** stream, unsigned flags) { return *stream = &stream_of_all, (int)flags; }
int cuStreamBeginCapture_v2(void* stream, int mode) { return stream != &stream_of_all || mode != 2; }
int cuStreamEndCapture(void* stream, void** graph) {
  *graph = &graph_of_all;
  return stream != &stream_of_all;
}
int cuGraphInstantiateWithFlags(void** whole, void* graph, uint64_t flags) {
  *whole = graph;
  return (int)flags;
}
int cuGraphLaunch(void* graph, void* stream) {
  return graph != &graph_of_all || stream != &stream_of_all;
}
int cuGraphDestroy(void* graph) { return graph != &graph_of_all; }
int cuGraphExecDestroy(void* graph) { return graph != &graph_of_all; }

static int Launch(void* function, const unsigned* sizes, unsigned shared, _Bool meets, void* stream,
                  void** arguments) {
  if (sizes[1] * sizes[2] * sizes[4] * sizes[5] != 1 || stream != &stream_of_all) return kFailed;
  if (meets && sizes[0] > kCount) return kFailed;
  const char* wrong = ((Kernel)function)(arguments, sizes[0], sizes[3], shared, meets, 0);
  if (wrong != NULL) message = wrong;
  return wrong == NULL ? 0 : kFailed;
}
int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads,
                   unsigned ty, unsigned tz, unsigned shared, void* stream, void** arguments,
                   void** extra) {
  const unsigned sizes[] = {x, y, z, threads, ty, tz};
  return extra != NULL ? kFailed : Launch(function, sizes, shared, 0, stream, arguments);
}
int cuLaunchCooperativeKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads,
                              unsigned ty, unsigned tz, unsigned shared, void* stream,
                              void** arguments) {
  const unsigned sizes[] = {x, y, z, threads, ty, tz};
  return Launch(function, sizes, shared, 1, stream, arguments);
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  return function == NULL || attribute != 8 || value < 0;
}

int cuMemAlloc_v2(uint64_t* address, size_t size) {
  *address = (uintptr_t)aligned_alloc(256, (size + 255) / 256 * 256);
  return 0;
}
int cuMemFree_v2(uint64_t address) { return free((void*)(uintptr_t)address), 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t size) {
  return memcpy((void*)(uintptr_t)to, from, size), 0;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t size) {
  return memcpy(to, (const void*)(uintptr_t)from, size), 0;
}
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t size) {
  return memset((void*)(uintptr_t)to, value, size), 0;
}

int cuEventCreate(void** event, unsigned flags) {
  *event = calloc(1, sizeof(struct timespec));
  return (int)flags;
}
int cuEventRecord(void* event, void* stream) {
  clock_gettime(CLOCK_MONOTONIC, event);
  return stream != &stream_of_all;
}
int cuEventSynchronize(void* event) { return event == NULL; }
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  const struct timespec *a = begin, *b = end;
  *milliseconds = (float)(b->tv_sec - a->tv_sec) * 1e3f + (float)(b->tv_nsec - a->tv_nsec) * 1e-6f;
  return 0;
}
int cuEventDestroy_v2(void* event) { return free(event), 0; }
