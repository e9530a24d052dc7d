// Two devices of type GPU, as a plugin of TensorFlow: what TensorFlow asks of a device, with the
// memory of memory.h and the streams of stream.h. Their kernels are in kernels.c.
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "stream.h"
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

#define UNUSED __attribute__((unused))

static int32_t ordinals[kDevices] = {0, 1};

static void NoPlatform(SP_Platform* platform UNUSED) {}
static void NoPlatformFns(SP_PlatformFns* fns UNUSED) {}
static void NoDevice(const SP_Platform* platform UNUSED, SP_Device* device UNUSED) {}
static void NoDeviceFns(const SP_Platform* platform UNUSED, SP_DeviceFns* fns UNUSED) {}
static void NoExecutor(const SP_Platform* platform UNUSED, SP_StreamExecutor* executor UNUSED) {}
static void NoTimerFns(const SP_Platform* platform UNUSED, SP_TimerFns* fns UNUSED) {}

// ---- memory -------------------------------------------------------------------------------------

static void Allocate(const SP_Device* device, uint64_t size, int64_t space UNUSED,
                     SP_DeviceMemoryBase* memory) {
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->opaque = TakeMemory(device->ordinal, size);
  memory->size = memory->opaque == NULL ? 0 : size;
}

static void Deallocate(const SP_Device* device UNUSED, SP_DeviceMemoryBase* memory) {
  memory->opaque = NULL;
  memory->size = 0;
}

static void* AllocateHost(const SP_Device* device UNUSED, uint64_t size) {
  void* memory = NULL;
  return posix_memalign(&memory, 64, size) == 0 ? memory : NULL;
}

static void DeallocateHost(const SP_Device* device UNUSED, void* memory) { free(memory); }

static TF_Bool NoStats(const SP_Device* device UNUSED, SP_AllocatorStats* stats UNUSED) {
  return false;
}

static TF_Bool MemoryUsage(const SP_Device* device, int64_t* free_bytes, int64_t* total) {
  *free_bytes = (int64_t)FreeMemory(device->ordinal);
  *total = DEVICE_BYTES;
  return true;
}

// ---- streams and events -------------------------------------------------------------------------

static void CreateStream(const SP_Device* device, SP_Stream* stream, TF_Status* status UNUSED) {
  *stream = NewStream(device->ordinal);
}

static void DestroyStream(const SP_Device* device UNUSED, SP_Stream stream) {
  DeleteStream(stream);
}

static void CreateDependency(const SP_Device* device UNUSED, SP_Stream dependent, SP_Stream other,
                             TF_Status* status UNUSED) {
  MakeDependent(dependent, other);
}

static void StreamStatus(const SP_Device* device UNUSED, SP_Stream stream UNUSED,
                         TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
}

static void CreateEvent(const SP_Device* device UNUSED, SP_Event* event, TF_Status* status UNUSED) {
  *event = NewEvent();
}

static void DestroyEvent(const SP_Device* device UNUSED, SP_Event event) { DeleteEvent(event); }

static SE_EventStatus EventStatus(const SP_Device* device UNUSED, SP_Event event) {
  return IsComplete(event) ? SE_EVENT_COMPLETE : SE_EVENT_PENDING;
}

static void Record(const SP_Device* device UNUSED, SP_Stream stream, SP_Event event,
                   TF_Status* status UNUSED) {
  RecordEvent(stream, event);
}

static void StreamWaits(const SP_Device* const device UNUSED, SP_Stream stream, SP_Event event,
                        TF_Status* const status UNUSED) {
  MakeWait(stream, event);
}

static void HostWaits(const SP_Device* device UNUSED, SP_Event event, TF_Status* status UNUSED) {
  WaitForEvent(event);
}

static void HostWaitsForStream(const SP_Device* device UNUSED, SP_Stream stream,
                               TF_Status* status UNUSED) {
  WaitForStream(stream);
}

static void Synchronize(const SP_Device* device, TF_Status* status UNUSED) {
  WaitForAllStreams(device->ordinal);
}

static void CreateTimer(const SP_Device* device UNUSED, SP_Timer* timer UNUSED, TF_Status* status) {
  TF_SetStatus(status, TF_UNIMPLEMENTED, "the test device has no timers");
}

static void DestroyTimer(const SP_Device* device UNUSED, SP_Timer timer UNUSED) {}

static void UseTimer(const SP_Device* device, SP_Stream stream UNUSED, SP_Timer timer,
                     TF_Status* status) {
  CreateTimer(device, &timer, status);
}

static uint64_t NoTime(SP_Timer timer UNUSED) { return 0; }

// ---- copies and callbacks -----------------------------------------------------------------------

struct Copy {
  void* to;
  const void* from;
  uint64_t size;
};

static void RunCopy(void* argument) {
  struct Copy* copy = argument;
  memcpy(copy->to, copy->from, copy->size);
  free(copy);
}

static void EnqueueCopy(SP_Stream stream, void* to, const void* from, uint64_t size) {
  if (size == 0) return;
  struct Copy* copy = malloc(sizeof(*copy));
  *copy = (struct Copy){to, from, size};
  Enqueue(stream, RunCopy, copy);
}

static void CopyToHost(const SP_Device* device UNUSED, SP_Stream stream, void* to,
                       const SP_DeviceMemoryBase* from, uint64_t size, TF_Status* status UNUSED) {
  EnqueueCopy(stream, to, DataOf(from->opaque, size), size);
}

static void CopyToDevice(const SP_Device* device UNUSED, SP_Stream stream, SP_DeviceMemoryBase* to,
                         const void* from, uint64_t size, TF_Status* status UNUSED) {
  EnqueueCopy(stream, DataOf(to->opaque, size), from, size);
}

static void CopyOnDevice(const SP_Device* device UNUSED, SP_Stream stream, SP_DeviceMemoryBase* to,
                         const SP_DeviceMemoryBase* from, uint64_t size, TF_Status* status UNUSED) {
  EnqueueCopy(stream, DataOf(to->opaque, size), DataOf(from->opaque, size), size);
}

static void CopyToHostNow(const SP_Device* device, void* to, const SP_DeviceMemoryBase* from,
                          uint64_t size, TF_Status* status UNUSED) {
  WaitForAllStreams(device->ordinal);
  if (size != 0) memcpy(to, DataOf(from->opaque, size), size);
}

static void CopyToDeviceNow(const SP_Device* device, SP_DeviceMemoryBase* to, const void* from,
                            uint64_t size, TF_Status* status UNUSED) {
  WaitForAllStreams(device->ordinal);
  if (size != 0) memcpy(DataOf(to->opaque, size), from, size);
}

static void CopyOnDeviceNow(const SP_Device* device, SP_DeviceMemoryBase* to,
                            const SP_DeviceMemoryBase* from, uint64_t size, TF_Status* status) {
  if (size != 0) CopyToDeviceNow(device, to, DataOf(from->opaque, size), size, status);
}

struct Fill {
  uint32_t* to;
  uint64_t words;
  uint32_t word;
  uint64_t bytes;  // after the words
};

static void RunFill(void* argument) {
  struct Fill* fill = argument;
  for (uint64_t i = 0; i < fill->words; ++i) fill->to[i] = fill->word;
  memcpy(fill->to + fill->words, &fill->word, fill->bytes);
  free(fill);
}

static void Fill32(const SP_Device* device UNUSED, SP_Stream stream, SP_DeviceMemoryBase* to,
                   uint32_t pattern, uint64_t size, TF_Status* status UNUSED) {
  if (size == 0) return;
  struct Fill* fill = malloc(sizeof(*fill));
  *fill = (struct Fill){DataOf(to->opaque, size), size / 4, pattern, size % 4};
  Enqueue(stream, RunFill, fill);
}

static void Fill8(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to,
                  uint8_t pattern, uint64_t size, TF_Status* status) {
  Fill32(device, stream, to, pattern * 0x01010101u, size, status);
}

static void Zero(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to, uint64_t size,
                 TF_Status* status) {
  Fill32(device, stream, to, 0, size, status);
}

struct Callback {
  SE_StatusCallbackFn function;
  void* argument;
};

static void RunCallback(void* argument) {
  struct Callback* callback = argument;
  TF_Status* status = TF_NewStatus();
  callback->function(callback->argument, status);
  TF_DeleteStatus(status);
  free(callback);
}

static TF_Bool HostCallback(const SP_Device* device UNUSED, SP_Stream stream,
                            SE_StatusCallbackFn function, void* argument) {
  struct Callback* callback = malloc(sizeof(*callback));
  *callback = (struct Callback){function, argument};
  Enqueue(stream, RunCallback, callback);
  return true;
}

// ---- what TensorFlow is given -------------------------------------------------------------------

static void CountDevices(const SP_Platform* platform UNUSED, int* count, TF_Status* status UNUSED) {
  *count = kDevices;
}

static void CreateDevice(const SP_Platform* platform UNUSED, SE_CreateDeviceParams* params,
                         TF_Status* status UNUSED) {
  SP_Device* device = params->device;
  device->struct_size = SP_DEVICE_STRUCT_SIZE;
  device->ordinal = params->ordinal;
  device->device_handle = &ordinals[params->ordinal];
  device->hardware_name = "a thread";
  device->device_vendor = "tests";
  device->pci_bus_id = params->ordinal == 0 ? "0000:00:01.0" : "0000:00:02.0";
}

static int32_t NumaNode(const SP_Device* device UNUSED) { return -1; }
static int64_t Bandwidth(const SP_Device* device UNUSED) { return -1; }
static double Gflops(const SP_Device* device UNUSED) { return -1; }

static void CreateDeviceFns(const SP_Platform* platform UNUSED, SE_CreateDeviceFnsParams* params,
                            TF_Status* status UNUSED) {
  *params->device_fns =
      (SP_DeviceFns){SP_DEVICE_FNS_STRUCT_SIZE, NULL, NumaNode, Bandwidth, Gflops};
}

static void CreateTimerFns(const SP_Platform* platform UNUSED, SP_TimerFns* fns,
                           TF_Status* status UNUSED) {
  fns->nanoseconds = NoTime;
}

static void CreateExecutor(const SP_Platform* platform UNUSED,
                           SE_CreateStreamExecutorParams* params, TF_Status* status UNUSED) {
  *params->stream_executor = (SP_StreamExecutor){
      .struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE,
      .allocate = Allocate,
      .deallocate = Deallocate,
      .host_memory_allocate = AllocateHost,
      .host_memory_deallocate = DeallocateHost,
      .unified_memory_allocate = AllocateHost,
      .unified_memory_deallocate = DeallocateHost,
      .get_allocator_stats = NoStats,
      .device_memory_usage = MemoryUsage,
      .create_stream = CreateStream,
      .destroy_stream = DestroyStream,
      .create_stream_dependency = CreateDependency,
      .get_stream_status = StreamStatus,
      .create_event = CreateEvent,
      .destroy_event = DestroyEvent,
      .get_event_status = EventStatus,
      .record_event = Record,
      .wait_for_event = StreamWaits,
      .create_timer = CreateTimer,
      .destroy_timer = DestroyTimer,
      .start_timer = UseTimer,
      .stop_timer = UseTimer,
      .memcpy_dtoh = CopyToHost,
      .memcpy_htod = CopyToDevice,
      .memcpy_dtod = CopyOnDevice,
      .sync_memcpy_dtoh = CopyToHostNow,
      .sync_memcpy_htod = CopyToDeviceNow,
      .sync_memcpy_dtod = CopyOnDeviceNow,
      .block_host_for_event = HostWaits,
      .block_host_until_done = HostWaitsForStream,
      .synchronize_all_activity = Synchronize,
      .mem_zero = Zero,
      .memset = Fill8,
      .memset32 = Fill32,
      .host_callback = HostCallback,
  };
}

void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  if (MapMemory() != 0) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for the test devices");
    return;
  }
  SP_Platform* platform = params->platform;
  platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  platform->name = "TEST_GPU";
  platform->type = "GPU";
  platform->use_bfc_allocator = true;
  platform->force_memory_growth = true;
  params->destroy_platform = NoPlatform;
  params->destroy_platform_fns = NoPlatformFns;
  *params->platform_fns = (SP_PlatformFns){
      .struct_size = SP_PLATFORM_FNS_STRUCT_SIZE,
      .get_device_count = CountDevices,
      .create_device = CreateDevice,
      .destroy_device = NoDevice,
      .create_device_fns = CreateDeviceFns,
      .destroy_device_fns = NoDeviceFns,
      .create_stream_executor = CreateExecutor,
      .destroy_stream_executor = NoExecutor,
      .create_timer_fns = CreateTimerFns,
      .destroy_timer_fns = NoTimerFns,
  };
}
