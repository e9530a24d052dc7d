// The kernels of the test devices, for float: those that bodies of the tests and their gradients
// call. Every other op has none here, as some have none on any GPU.
//
// A kernel allocates its output, and leaves the work to the stream: when it returns, nothing is
// computed yet.
#include "tensorflow/c/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "stream.h"

enum { kMostDims = 8, kMostInputs = 8, kMostOps = 64 };

// ---- launches -----------------------------------------------------------------------------------

static struct {
  const char* op;
  long launches[kDevices];
} counts[kMostOps];

long CountLaunches(const char* op, int device) {
  for (int i = 0; i < kMostOps && counts[i].op != NULL; ++i) {
    if (strcmp(counts[i].op, op) == 0) {
      return __atomic_load_n(&counts[i].launches[device], __ATOMIC_RELAXED);
    }
  }
  return -1;
}

struct Shape {
  int rank;
  int64_t dims[kMostDims];
};

struct Kernel {
  const char* op;
  float (*unary)(float);
  float (*binary)(float, float);
  int number;  // of the op, among counts
  unsigned char transposed[2];
  unsigned char keep_dims;
};

// What a kernel reads and writes when the stream runs it: by then TensorFlow may have deleted it.
struct Launch {
  struct Kernel kernel;
  struct Shape shapes[kMostInputs];
  const float* inputs[kMostInputs];
  int num_inputs;
  struct Shape shape;
  float* output;
};

static int64_t SizeOf(const struct Shape* shape) {
  int64_t size = 1;
  for (int i = 0; i < shape->rank; ++i) size *= shape->dims[i];
  return size;
}

static void Enter(TF_OpKernelContext* context, struct Launch* launch, int i) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* tensor = NULL;
  TF_GetInput(context, i, &tensor, status);
  struct Shape* shape = &launch->shapes[i];
  shape->rank = TF_NumDims(tensor);
  for (int d = 0; d < shape->rank; ++d) shape->dims[d] = TF_Dim(tensor, d);
  launch->inputs[i] = DataOf(TF_TensorData(tensor), TF_TensorByteSize(tensor));
  TF_DeleteTensor(tensor);
  TF_DeleteStatus(status);
}

static struct Launch* NewLaunch(TF_OpKernelContext* context, const struct Kernel* kernel,
                                int num_inputs) {
  struct Launch* launch = calloc(1, sizeof(*launch));
  launch->kernel = *kernel;
  launch->num_inputs = num_inputs;
  for (int i = 0; i < num_inputs; ++i) Enter(context, launch, i);
  return launch;
}

static void Fail(TF_OpKernelContext* context, TF_Status* status, struct Launch* launch) {
  TF_OpKernelContext_Failure(context, status);
  free(launch);
}

// Gives the launch, whose output has its shape, to the stream. The output may lie in the memory of
// one of the first `forwards` inputs: a sum over replicas must.
static void Start(TF_OpKernelContext* context, struct Launch* launch, Work work, int forwards) {
  static const int kInputs[] = {0, 1};
  TF_Status* status = TF_NewStatus();
  const size_t bytes = (size_t)SizeOf(&launch->shape) * sizeof(float);
  TF_Tensor* output = TF_ForwardInputOrAllocateOutput(
      context, kInputs, forwards, 0, launch->shape.dims, launch->shape.rank, NULL, status);
  SP_Stream stream = TF_GetCode(status) == TF_OK ? TF_GetStream(context, status) : NULL;
  if (TF_GetCode(status) != TF_OK) {
    Fail(context, status, launch);
  } else {
    launch->output = DataOf(TF_TensorData(output), bytes);
    __atomic_fetch_add(&counts[launch->kernel.number].launches[DeviceOf(stream)], 1,
                       __ATOMIC_RELAXED);
    EnqueueKernel(stream, work, launch);
  }
  if (output != NULL) TF_DeleteTensor(output);
  TF_DeleteStatus(status);
}

static void Refuse(TF_OpKernelContext* context, struct Launch* launch, const char* why) {
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, TF_INVALID_ARGUMENT, why);
  Fail(context, status, launch);
  TF_DeleteStatus(status);
}

// ---- element by element -------------------------------------------------------------------------

static void RunUnary(void* argument) {
  struct Launch* launch = argument;
  const int64_t size = SizeOf(&launch->shape);
  for (int64_t i = 0; i < size; ++i) {
    launch->output[i] = launch->kernel.unary(launch->inputs[0][i]);
  }
  free(launch);
}

static void ComputeUnary(void* kernel, TF_OpKernelContext* context) {
  struct Launch* launch = NewLaunch(context, kernel, 1);
  launch->shape = launch->shapes[0];
  Start(context, launch, RunUnary, 1);
}

// Of int32, which lies in the device's memory here, as TensorFlow's own kernel on a GPU has it.
static void RunCast(void* argument) {
  struct Launch* launch = argument;
  const int64_t size = SizeOf(&launch->shape);
  const int32_t* input = (const int32_t*)launch->inputs[0];
  for (int64_t i = 0; i < size; ++i) launch->output[i] = (float)input[i];
  free(launch);
}

static void ComputeCast(void* kernel, TF_OpKernelContext* context) {
  struct Launch* launch = NewLaunch(context, kernel, 1);
  launch->shape = launch->shapes[0];
  Start(context, launch, RunCast, 0);
}

// Where element i of `shape` is in an input that is broadcast to it.
static int64_t Broadcast(int64_t i, const struct Shape* shape, const struct Shape* from) {
  int64_t place = 0, stride = 1;
  for (int d = shape->rank - 1, k = from->rank - 1; k >= 0; --d, --k) {
    if (from->dims[k] != 1) place += i % shape->dims[d] * stride;
    stride *= from->dims[k];
    i /= shape->dims[d];
  }
  return place;
}

static void RunBinary(void* argument) {
  struct Launch* launch = argument;
  const int64_t size = SizeOf(&launch->shape);
  for (int64_t i = 0; i < size; ++i) {
    launch->output[i] =
        launch->kernel.binary(launch->inputs[0][Broadcast(i, &launch->shape, &launch->shapes[0])],
                              launch->inputs[1][Broadcast(i, &launch->shape, &launch->shapes[1])]);
  }
  free(launch);
}

static void ComputeBinary(void* kernel, TF_OpKernelContext* context) {
  struct Launch* launch = NewLaunch(context, kernel, 2);
  const struct Shape* a = &launch->shapes[0];
  const struct Shape* b = &launch->shapes[1];
  launch->shape = a->rank >= b->rank ? *a : *b;
  for (int k = 1; k <= a->rank && k <= b->rank; ++k) {
    const int64_t x = a->dims[a->rank - k], y = b->dims[b->rank - k];
    if (x != y && x != 1 && y != 1) return Refuse(context, launch, "the shapes do not broadcast");
    launch->shape.dims[launch->shape.rank - k] = x == 1 ? y : x;
  }
  Start(context, launch, RunBinary, 2);
}

static void RunAddN(void* argument) {
  struct Launch* launch = argument;
  const int64_t size = SizeOf(&launch->shape);
  for (int64_t i = 0; i < size; ++i) {
    launch->output[i] = 0;
    for (int k = 0; k < launch->num_inputs; ++k) launch->output[i] += launch->inputs[k][i];
  }
  free(launch);
}

static void ComputeAddN(void* kernel, TF_OpKernelContext* context) {
  const int inputs = TF_NumInputs(context);
  struct Launch* launch = NewLaunch(context, kernel, inputs < kMostInputs ? inputs : kMostInputs);
  if (inputs > kMostInputs) return Refuse(context, launch, "AddN has too many inputs");
  launch->shape = launch->shapes[0];
  Start(context, launch, RunAddN, 0);
}

// ---- products and sums --------------------------------------------------------------------------

static void RunMatMul(void* argument) {
  struct Launch* launch = argument;
  const unsigned char* transposed = launch->kernel.transposed;
  const int64_t rows = launch->shape.dims[0], columns = launch->shape.dims[1];
  const int64_t depth = launch->shapes[0].dims[!transposed[0]];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        sum += launch->inputs[0][transposed[0] ? k * rows + i : i * depth + k] *
               launch->inputs[1][transposed[1] ? j * depth + k : k * columns + j];
      }
      launch->output[i * columns + j] = sum;
    }
  }
  free(launch);
}

static void ComputeMatMul(void* kernel, TF_OpKernelContext* context) {
  const unsigned char* transposed = ((struct Kernel*)kernel)->transposed;
  struct Launch* launch = NewLaunch(context, kernel, 2);
  const int64_t* a = launch->shapes[0].dims;
  const int64_t* b = launch->shapes[1].dims;
  if (a[!transposed[0]] != b[transposed[1]]) {
    return Refuse(context, launch, "the inner dims of a product differ");
  }
  launch->shape = (struct Shape){2, {a[transposed[0]], b[!transposed[1]]}};
  Start(context, launch, RunMatMul, 0);
}

// The output has the input's rank while it is computed: Broadcast then finds each element's place.
static void RunSum(void* argument) {
  struct Launch* launch = argument;
  const int64_t size = SizeOf(&launch->shapes[0]);
  memset(launch->output, 0, (size_t)SizeOf(&launch->shapes[1]) * sizeof(float));
  for (int64_t i = 0; i < size; ++i) {
    launch->output[Broadcast(i, &launch->shapes[0], &launch->shapes[1])] += launch->inputs[0][i];
  }
  free(launch);
}

static void ComputeSum(void* kernel, TF_OpKernelContext* context) {
  struct Launch* launch = NewLaunch(context, kernel, 1);
  TF_Status* status = TF_NewStatus();
  TF_Tensor* axes = NULL;
  TF_GetInput(context, 1, &axes, status);
  struct Shape* summed = &launch->shapes[1];
  *summed = launch->shapes[0];
  unsigned dropped = 0;
  for (int64_t i = 0; i < TF_TensorElementCount(axes); ++i) {
    const int axis = ((const int*)TF_TensorData(axes))[i];
    const int dim = axis < 0 ? axis + summed->rank : axis;
    summed->dims[dim] = 1;
    dropped |= 1u << dim;
  }
  for (int d = 0; d < summed->rank; ++d) {
    if (((struct Kernel*)kernel)->keep_dims || (dropped >> d & 1) == 0) {
      launch->shape.dims[launch->shape.rank++] = summed->dims[d];
    }
  }
  Start(context, launch, RunSum, 0);
  TF_DeleteTensor(axes);
  TF_DeleteStatus(status);
}

// ---- what TensorFlow is given -------------------------------------------------------------------

static struct Kernel* NewKernel(const char* op) {
  struct Kernel* kernel = calloc(1, sizeof(*kernel));
  kernel->op = op;
  while (strcmp(counts[kernel->number].op, op) != 0) ++kernel->number;
  return kernel;
}

// Overwritten: work of a stream that still reads it fails each time.
static void DeleteKernel(void* kernel) {
  explicit_bzero(kernel, sizeof(struct Kernel));
  free(kernel);
}

#define UNARY(OP, VALUE)                                        \
  static float Value##OP(float x) { return VALUE; }             \
  static void* New##OP(TF_OpKernelConstruction* construction) { \
    (void)construction;                                         \
    struct Kernel* kernel = NewKernel(#OP);                     \
    kernel->unary = Value##OP;                                  \
    return kernel;                                              \
  }
#define BINARY(OP, VALUE)                                       \
  static float Value##OP(float x, float y) { return VALUE; }    \
  static void* New##OP(TF_OpKernelConstruction* construction) { \
    (void)construction;                                         \
    struct Kernel* kernel = NewKernel(#OP);                     \
    kernel->binary = Value##OP;                                 \
    return kernel;                                              \
  }

UNARY(Exp, expf(x))
UNARY(Neg, -x)
UNARY(OnesLike, ((void)x, 1.0f))
UNARY(Relu, x < 0 ? 0 : x)
UNARY(Sqrt, sqrtf(x))
UNARY(Square, x* x)
UNARY(Tanh, tanhf(x))
UNARY(ZerosLike, ((void)x, 0.0f))
BINARY(Add, x + y)
BINARY(AddV2, x + y)
BINARY(Div, x / y)
BINARY(Maximum, x > y ? x : y)
BINARY(Mul, x* y)
BINARY(RealDiv, x / y)
BINARY(ReluGrad, y > 0 ? x : 0)
BINARY(Sub, x - y)
BINARY(TanhGrad, y * (1 - x * x))

static void* NewAddN(TF_OpKernelConstruction* construction) {
  (void)construction;
  return NewKernel("AddN");
}

static void* NewCast(TF_OpKernelConstruction* construction) {
  (void)construction;
  return NewKernel("Cast");
}

static void* NewMatMul(TF_OpKernelConstruction* construction) {
  struct Kernel* kernel = NewKernel("MatMul");
  TF_Status* status = TF_NewStatus();
  TF_OpKernelConstruction_GetAttrBool(construction, "transpose_a", &kernel->transposed[0], status);
  TF_OpKernelConstruction_GetAttrBool(construction, "transpose_b", &kernel->transposed[1], status);
  TF_DeleteStatus(status);
  return kernel;
}

static void* NewSum(TF_OpKernelConstruction* construction) {
  struct Kernel* kernel = NewKernel("Sum");
  TF_Status* status = TF_NewStatus();
  TF_OpKernelConstruction_GetAttrBool(construction, "keep_dims", &kernel->keep_dims, status);
  TF_DeleteStatus(status);
  return kernel;
}

static void Register(const char* op, void* (*create)(TF_OpKernelConstruction*),
                     void (*compute)(void*, TF_OpKernelContext*), const char* in_host_memory) {
  int number = 0;
  while (counts[number].op != NULL) ++number;
  counts[number].op = op;
  TF_Status* status = TF_NewStatus();
  TF_KernelBuilder* builder = TF_NewKernelBuilder(op, "GPU", create, compute, DeleteKernel);
  if (compute == ComputeCast) {
    TF_KernelBuilder_TypeConstraint(builder, "SrcT", TF_INT32, status);
    TF_KernelBuilder_TypeConstraint(builder, "DstT", TF_FLOAT, status);
  } else {
    TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status);
  }
  if (in_host_memory != NULL) {
    TF_KernelBuilder_TypeConstraint(builder, "Tidx", TF_INT32, status);
    TF_KernelBuilder_HostMemory(builder, in_host_memory);
  }
  TF_RegisterKernelBuilder(op, builder, status);
  TF_DeleteStatus(status);
}

void TF_InitKernel(void) {
  Register("Add", NewAdd, ComputeBinary, NULL);
  Register("AddN", NewAddN, ComputeAddN, NULL);
  Register("AddV2", NewAddV2, ComputeBinary, NULL);
  Register("Cast", NewCast, ComputeCast, NULL);
  Register("Div", NewDiv, ComputeBinary, NULL);
  Register("Exp", NewExp, ComputeUnary, NULL);
  Register("MatMul", NewMatMul, ComputeMatMul, NULL);
  Register("Maximum", NewMaximum, ComputeBinary, NULL);
  Register("Mul", NewMul, ComputeBinary, NULL);
  Register("Neg", NewNeg, ComputeUnary, NULL);
  Register("OnesLike", NewOnesLike, ComputeUnary, NULL);
  Register("RealDiv", NewRealDiv, ComputeBinary, NULL);
  Register("Relu", NewRelu, ComputeUnary, NULL);
  Register("ReluGrad", NewReluGrad, ComputeBinary, NULL);
  Register("Sqrt", NewSqrt, ComputeUnary, NULL);
  Register("Square", NewSquare, ComputeUnary, NULL);
  Register("Sub", NewSub, ComputeBinary, NULL);
  Register("Sum", NewSum, ComputeSum, "reduction_indices");
  Register("Tanh", NewTanh, ComputeUnary, NULL);
  Register("TanhGrad", NewTanhGrad, ComputeBinary, NULL);
  Register("ZerosLike", NewZerosLike, ComputeUnary, NULL);
}
