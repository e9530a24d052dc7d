/* Calls a kernel of a library once: what an emulator runs, to check a kernel for another CPU.
 *
 *     call_kernel LIBRARY KERNEL TASKS FILE
 *
 * FILE has the arguments, and their contents after the call: int32 count, and for each uint8 code
 * and bits of its dtype (DLPack's), int32 rank, int64 dims, and its elements. Elements lie at
 * addresses with no alignment but their own, between guards. Each parallel loop has TASKS threads.
 * An error is told on standard output, its kind and its message each on a line; the exit status
 * is 1 then, and 2 when the call cannot be made.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 128, MOST_TASKS = 64, MOST_ARGUMENTS = 256, MOST_DIMS = 256, TENSOR = 7 };

typedef struct {
  void* data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tensor;
typedef struct {
  int32_t type_index, zero;
  void* value;
} any;
typedef struct {
  pthread_barrier_t* meeting;
  int32_t tasks;
} group;
typedef int lambda(int, group*, void*);
typedef struct {
  lambda* body;
  void* data;
  group* env;
  int task, result;
} work;

static int tasks;
static char raised[4096];
static pthread_mutex_t raising = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char* what, const char* why) {
  fprintf(stderr, "call_kernel: %s: %s\n", what, why);
  exit(2);
}

/* As TensorFlow's threads compute: denormals are zeros. */
static void flush_denormals(void) {
#if defined(__aarch64__)
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  __asm__ volatile("msr fpcr, %0" : : "r"(control | 1u << 24));
#endif
}

/* What kernels call. The first error counts. */
void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count) {
  pthread_mutex_lock(&raising);
  if (raised[0] == 0) {
    size_t used = snprintf(raised, sizeof(raised), "%s\n", kind);
    for (int32_t i = 0; i < count && used < sizeof(raised); ++i) {
      if (parts[i]) used += snprintf(raised + used, sizeof(raised) - used, "%s", parts[i]);
    }
  }
  pthread_mutex_unlock(&raising);
}

static void* run(void* given) {
  work* own = given;
  flush_denormals();
  own->result = own->body(own->task, own->env, own->data);
  return NULL;
}

static int launch(lambda* body, void* data, int wanted) {
  (void)wanted;
  pthread_barrier_t meeting;
  pthread_barrier_init(&meeting, NULL, tasks);
  group env = {&meeting, tasks};
  pthread_t threads[MOST_TASKS];
  work works[MOST_TASKS];
  for (int i = 0; i < tasks; ++i) {
    works[i] = (work){body, data, &env, i, 0};
    if (pthread_create(&threads[i], NULL, run, &works[i])) fail("a thread", "there is none");
  }
  int result = 0;
  for (int i = 0; i < tasks; ++i) {
    pthread_join(threads[i], NULL);
    if (works[i].result) result = works[i].result;
  }
  pthread_barrier_destroy(&meeting);
  return result;
}

static int meet(int task, group* env) {
  (void)task;
  pthread_barrier_wait(env->meeting);
  return 0;
}

static void* allocate(int type, int id, uint64_t bytes, int code, int bits) {
  (void)type, (void)id, (void)code, (void)bits;
  return aligned_alloc(64, bytes + 64 - bytes % 64);
}

static int release(int type, int id, void* block) {
  (void)type, (void)id;
  free(block);
  return 0;
}

static void fill(void* library, const char* slot, void* function) {
  void** there = dlsym(library, slot);
  if (there) *there = function;
}

static void get(FILE* file, void* to, size_t bytes) {
  if (bytes && fread(to, bytes, 1, file) != 1) fail("the arguments", "they are cut short");
}

static size_t elements_of(const tensor* given) {
  size_t count = 1;
  for (int d = 0; d < given->ndim; ++d) count *= given->shape[d];
  return count * (given->bits / 8);
}

static void read_tensor(FILE* file, tensor* into) {
  *into = (tensor){.device_type = 1, .lanes = 1};
  get(file, &into->code, 1);
  get(file, &into->bits, 1);
  get(file, &into->ndim, sizeof(into->ndim));
  if (into->ndim < 0 || into->ndim > MOST_DIMS) fail("the arguments", "a rank is none");
  into->shape = calloc(into->ndim + 1, sizeof(int64_t));
  get(file, into->shape, into->ndim * sizeof(int64_t));
  const size_t bytes = elements_of(into), element = into->bits / 8;
  char* room = aligned_alloc(64, (bytes + 3 * GUARD) / 64 * 64);
  if (room == NULL) fail("the arguments", "there is no memory");
  memset(room, 77, bytes + 2 * GUARD);
  into->data = room + GUARD + element;
  get(file, into->data, bytes);
}

static int is_guarded(const tensor* given) {
  const size_t bytes = elements_of(given), element = given->bits / 8;
  const char* room = (char*)given->data - GUARD - element;
  for (size_t i = 0; i < bytes + 2 * GUARD; ++i) {
    const int is_inside = i >= GUARD + element && i < GUARD + element + bytes;
    if (!is_inside && room[i] != 77) return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 5) fail("usage", "call_kernel LIBRARY KERNEL TASKS FILE");
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail("the library", dlerror());
  fill(library, "__TVMBackendParallelLaunch", launch);
  fill(library, "__TVMBackendParallelBarrier", meet);
  fill(library, "__TVMBackendAllocWorkspace", allocate);
  fill(library, "__TVMBackendFreeWorkspace", release);
  char symbol[1024];
  snprintf(symbol, sizeof(symbol), "__tvm_ffi_%s", argv[2]);
  int (*kernel)(void*, const any*, int32_t, any*) = dlsym(library, symbol);
  if (kernel == NULL) fail(symbol, "the library has no such kernel");
  tasks = atoi(argv[3]);
  if (tasks < 1 || tasks > MOST_TASKS) fail("TASKS", "from 1 to 64");

  FILE* file = fopen(argv[4], "rb");
  if (file == NULL) fail(argv[4], "it cannot be read");
  int32_t count;
  get(file, &count, sizeof(count));
  if (count < 0 || count > MOST_ARGUMENTS) fail("the arguments", "there are too many");
  static tensor tensors[MOST_ARGUMENTS];
  static any arguments[MOST_ARGUMENTS];
  for (int i = 0; i < count; ++i) {
    read_tensor(file, &tensors[i]);
    arguments[i] = (any){TENSOR, 0, &tensors[i]};
  }
  fclose(file);

  flush_denormals();
  any result = {0, 0, NULL};
  if (kernel(NULL, arguments, count, &result) != 0) {
    puts(raised[0] ? raised : "RuntimeError\nthe kernel failed and gave no reason");
    return 1;
  }
  for (int i = 0; i < count; ++i) {
    if (is_guarded(&tensors[i])) continue;
    printf("RuntimeError\nthe kernel wrote outside of argument %d\n", i);
    return 1;
  }
  file = fopen(argv[4], "wb");
  if (file == NULL) fail(argv[4], "it cannot be written");
  for (int i = 0; i < count; ++i) {
    const size_t bytes = elements_of(&tensors[i]);
    if (bytes && fwrite(tensors[i].data, bytes, 1, file) != 1) fail(argv[4], "there is no room");
  }
  return fclose(file) == 0 ? 0 : 2;
}
