// What stands for libcuda.so.1: the driver's functions that the runtime calls, on the memory and
// the streams of the test devices. A module is a library that g++ made of a kernel's CUDA source,
// see
// ../nvrtc.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"
#include "stream.h"

// Of cuda.h.
enum {
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNotFound = 500,
  kLaunchFailed = 719,
  kTooLarge = 720
};
enum { kMultiprocessors = 16, kMajor = 75, kMinor = 76 };

enum { kMostDynamicShared = 8 };  // CUfunction_attribute

enum { kMostContexts = 8, kMostArguments = 64, kMostThreads = 1024, kSharedOfAny = 48 << 10 };

static const char kPtx[] = "//PTX ";

struct Context {
  int device;
  SP_Stream stream;  // the one without a name
};

static struct Context contexts[kDevices] = {{0, NULL}, {1, NULL}};
static __thread struct Context* current[kMostContexts];
static __thread int depth;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;  // kernels run one at a time
static long launches[kDevices];
static bool refuses;
static unsigned most_blocks = 2;  // that a device runs at a time

// ---- for tests ----------------------------------------------------------------------------------

long CountDriverLaunches(int device) {
  return __atomic_load_n(&launches[device], __ATOMIC_RELAXED);
}

void RefuseLaunches(bool refused) { __atomic_store_n(&refuses, refused, __ATOMIC_RELAXED); }

void AllowBlocks(unsigned most) { __atomic_store_n(&most_blocks, most, __ATOMIC_RELAXED); }

// ---- the device and its contexts ----------------------------------------------------------------

int cuInit(unsigned flags) { return flags == 0 ? 0 : kInvalidValue; }

int cuGetErrorName(int error, const char** name) {
  *name = error == kOutOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == kInvalidImage   ? "CUDA_ERROR_INVALID_IMAGE"
          : error == kInvalidContext ? "CUDA_ERROR_INVALID_CONTEXT"
          : error == kNotFound       ? "CUDA_ERROR_NOT_FOUND"
          : error == kLaunchFailed   ? "CUDA_ERROR_LAUNCH_FAILED"
          : error == kTooLarge       ? "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
                                     : "CUDA_ERROR_INVALID_VALUE";
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = kDevices;
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < kDevices ? 0 : kInvalidValue;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device >= kDevices) return kInvalidValue;
  const char* major = getenv("TEST_GPU_MAJOR");
  *value = attribute == kMajor ? (major != NULL ? atoi(major) : 8) : attribute == kMinor ? 0 : 2;
  return attribute == kMajor || attribute == kMinor || attribute == kMultiprocessors
             ? 0
             : kInvalidValue;
}

int cuDevicePrimaryCtxRetain(struct Context** context, int device) {
  *context = &contexts[device];
  return 0;
}

int cuStreamGetCtx(SP_Stream stream, struct Context** context) {
  *context = &contexts[DeviceOf(stream)];
  return 0;
}

int cuCtxPushCurrent_v2(struct Context* context) {
  if (depth == kMostContexts) return kInvalidContext;
  current[depth++] = context;
  return 0;
}

int cuCtxPopCurrent_v2(struct Context** context) {
  if (depth == 0) return kInvalidContext;
  *context = current[--depth];
  return 0;
}

static struct Context* Current(void) { return depth == 0 ? NULL : current[depth - 1]; }

int cuCtxGetDevice(int* device) {
  if (Current() == NULL) return kInvalidContext;
  *device = Current()->device;
  return 0;
}

static SP_Stream StreamOf(SP_Stream stream) {
  struct Context* context = Current();
  if (stream != NULL) return stream;
  pthread_mutex_lock(&mu);
  if (context->stream == NULL) context->stream = NewStream(context->device);
  stream = context->stream;
  pthread_mutex_unlock(&mu);
  return stream;
}

int cuStreamSynchronize(SP_Stream stream) {
  if (Current() == NULL) return kInvalidContext;
  WaitForStream(StreamOf(stream));
  return 0;
}

// ---- memory -------------------------------------------------------------------------------------

int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  if (Current() == NULL) return kInvalidContext;
  *address = (uintptr_t)TakeMemory(Current()->device, bytes);
  return *address == 0 ? kOutOfMemory : 0;
}

int cuMemFree_v2(unsigned long long address) { return address != 0 ? 0 : kInvalidValue; }

int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
  if (bytes > 0) memcpy(DataOf((void*)(uintptr_t)to, bytes), from, bytes);
  return 0;
}

int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
  if (bytes > 0) memcpy(to, DataOf((void*)(uintptr_t)from, bytes), bytes);
  return 0;
}

// ---- modules ------------------------------------------------------------------------------------

struct Function {
  const char* (*run)(void** arguments, const unsigned* blocks, const unsigned* threads,
                     unsigned dynamic, bool resident);
  const char* kinds;  // a letter each argument: 'p' an address, 's' a number
  unsigned most_shared;
};

// A library ends with its table of sections.
static size_t SizeOf(const Elf64_Ehdr* image) {
  return image->e_shoff + (size_t)image->e_shnum * image->e_shentsize;
}

// The library that a text of ../nvrtc stands for; NULL for any other.
static void* OfText(const char* text) {
  const char* digits = text + strlen(kPtx);
  if (strncmp(text, kPtx, strlen(kPtx)) != 0) return NULL;
  const size_t size = strlen(digits) / 2;
  unsigned char* bytes = malloc(size);
  for (size_t i = 0; i < size; ++i) sscanf(digits + 2 * i, "%2hhx", &bytes[i]);
  return bytes;
}

int cuModuleLoadData(void** module, const void* image) {
  if (Current() == NULL) return kInvalidContext;
  void* compiled = OfText(image);
  if (compiled != NULL) {
    const int status = cuModuleLoadData(module, compiled);
    free(compiled);
    return status;
  }
  if (memcmp(image, ELFMAG, SELFMAG) != 0) return kInvalidImage;
  const int low = memfd_create("module", MFD_CLOEXEC);
  // A number that nobody else has used: the linker takes a library by its name for one it has.
  const int file = fcntl(low, F_DUPFD_CLOEXEC, 500);
  close(low);
  const size_t size = SizeOf(image);
  char path[32];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
  const bool written = file >= 0 && write(file, image, size) == (ssize_t)size;
  *module = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  // The file stays open: the linker would take the next one of its name for this one.
  return *module != NULL ? 0 : kInvalidImage;
}

int cuModuleGetFunction(struct Function** function, void* module, const char* name) {
  char symbol[256];
  snprintf(symbol, sizeof(symbol), "launch_%s", name);
  void* run = dlsym(module, symbol);
  snprintf(symbol, sizeof(symbol), "kinds_%s", name);
  const char* (*kinds)(void);
  *(void**)&kinds = dlsym(module, symbol);
  if (run == NULL || kinds == NULL) return kNotFound;
  *function = calloc(1, sizeof(**function));
  *(void**)&(*function)->run = run;
  (*function)->kinds = kinds();
  (*function)->most_shared = kSharedOfAny;
  return 0;
}

int cuFuncSetAttribute(struct Function* function, int attribute, int value) {
  if (attribute != kMostDynamicShared || value < 0) return kInvalidValue;
  function->most_shared = (unsigned)value;
  return 0;
}

struct Launch {
  const struct Function* function;
  unsigned blocks[3], threads[3], dynamic;
  bool resident;
  uint64_t values[kMostArguments];
};

static void Run(void* argument) {
  struct Launch* launch = argument;
  void* places[kMostArguments];
  for (int i = 0; launch->function->kinds[i] != '\0'; ++i) {
    uint64_t* value = &launch->values[i];
    if (launch->function->kinds[i] == 'p' && *value != 0) {
      *value = (uintptr_t)DataOf((void*)(uintptr_t)*value, 1);
    }
    places[i] = value;
  }
  pthread_mutex_lock(&mu);
  const char* wrong = launch->function->run(places, launch->blocks, launch->threads,
                                            launch->dynamic, launch->resident);
  pthread_mutex_unlock(&mu);
  if (wrong != NULL) {
    fprintf(stderr, "a kernel of the test device is wrong: %s\n", wrong);
    abort();
  }
  free(launch);
}

// Takes a launch whose function, blocks, threads and shared memory are known.
static int Give(const struct Launch* given, SP_Stream stream, void** arguments) {
  const struct Function* function = given->function;
  const unsigned *blocks = given->blocks, *threads = given->threads;
  if (Current() == NULL) return kInvalidContext;
  if (__atomic_load_n(&refuses, __ATOMIC_RELAXED)) return kLaunchFailed;
  const unsigned count = blocks[0] * blocks[1] * blocks[2];
  const unsigned all = threads[0] * threads[1] * threads[2];
  if (count == 0 || all == 0 || all > kMostThreads) return kInvalidValue;
  if (given->dynamic > function->most_shared) return kInvalidValue;
  if (strlen(function->kinds) > kMostArguments) return kInvalidValue;
  if (given->resident && count > __atomic_load_n(&most_blocks, __ATOMIC_RELAXED)) return kTooLarge;
  stream = StreamOf(stream);
  if (DeviceOf(stream) != Current()->device) return kInvalidContext;
  struct Launch* launch = malloc(sizeof(*launch));
  *launch = *given;
  for (size_t i = 0; function->kinds[i] != '\0'; ++i) {
    memcpy(&launch->values[i], arguments[i], sizeof(launch->values[i]));
  }
  __atomic_fetch_add(&launches[Current()->device], 1, __ATOMIC_RELAXED);
  EnqueueKernel(stream, Run, launch);
  return 0;
}

int cuLaunchKernel(const struct Function* function, unsigned x, unsigned y, unsigned z,
                   unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared,
                   SP_Stream stream, void** arguments, void** extra) {
  if (extra != NULL) return kInvalidValue;
  const struct Launch launch = {function, {x, y, z}, {threads_x, threads_y, threads_z},
                                shared,   false,     {0}};
  return Give(&launch, stream, arguments);
}

int cuLaunchCooperativeKernel(const struct Function* function, unsigned x, unsigned y, unsigned z,
                              unsigned threads_x, unsigned threads_y, unsigned threads_z,
                              unsigned shared, SP_Stream stream, void** arguments) {
  const struct Launch launch = {function, {x, y, z}, {threads_x, threads_y, threads_z},
                                shared,   true,      {0}};
  return Give(&launch, stream, arguments);
}
