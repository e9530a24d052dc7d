// The part of TFLite's C ABI that a delegate needs. TensorFlow's wheel has no header of it, and
// LiteRT's interpreter has the same, so it is declared here: as data, whose layout does not change
// within a major version, and calls through pointers that the interpreter brings.
#ifndef COMPOSITE_RUNTIME_STANDALONE_TFLITE_ABI_H_
#define COMPOSITE_RUNTIME_STANDALONE_TFLITE_ABI_H_

#include <cstddef>
#include <cstdint>

namespace composite {
namespace tflite_abi {

enum Status : int { kOk = 0, kError = 1 };
enum DelegateFlags : int64_t { kAllowDynamicTensors = 1 };

struct IntArray {
  int size;
  int data[1];  // as many as size says
};

struct Tensor {
  int type;  // TfLiteType
  void* data;
  IntArray* dims;
  float scale;  // of older quantized models
  int32_t zero_point;
  int allocation_type;
  size_t bytes;
  const void* allocation;
  const char* name;
  struct Delegate* delegate;
  int buffer_handle;
  bool data_is_stale;
  bool is_variable;
  int quantization_type;
  void* quantization;
  void* sparsity;
  const IntArray* dims_signature;
};
static_assert(sizeof(Tensor) == 112 && offsetof(Tensor, bytes) == 40, "TfLiteTensor");

struct Node {
  IntArray* inputs;
  IntArray* outputs;
  IntArray* intermediates;
  IntArray* temporaries;
  void* user_data;
  void* builtin_data;
  const void* custom_initial_data;
  int custom_initial_data_size;
  struct Delegate* delegate;
  bool might_have_side_effect;
};

// What `init` of a delegate's kernel is given.
struct DelegateParams {
  struct Delegate* delegate;
  IntArray* nodes;
  IntArray* inputs;
  IntArray* outputs;
};

struct Context;

struct Registration {
  void* (*init)(Context*, const char* buffer, size_t length);
  void (*free)(Context*, void* made);
  Status (*prepare)(Context*, Node*);
  Status (*invoke)(Context*, Node*);
  const char* (*profiling_string)(const Context*, const Node*);
  int32_t builtin_code;
  const char* custom_name;
  int version;
  void* external;
  void* (*async_kernel)(Context*, Node*);
  uint64_t inplace_operator;
};

struct Context {
  size_t tensors_size;
  Status (*GetExecutionPlan)(Context*, IntArray** plan);
  Tensor* tensors;
  void* impl;
  Status (*ResizeTensor)(Context*, Tensor*, IntArray* taken);
  void (*ReportError)(Context*, const char* format, ...);
  Status (*AddTensors)(Context*, int count, int* first);
  Status (*GetNodeAndRegistration)(Context*, int index, Node**, Registration**);
  Status (*ReplaceNodes)(Context*, Registration, const IntArray* nodes, struct Delegate*);
  int recommended_num_threads;
  void* (*GetExternalContext)(Context*, int type);
  void (*SetExternalContext)(Context*, int type, void*);
  // Others follow, which are not used.
};

struct Delegate {
  void* data;
  Status (*prepare)(Context*, Delegate*);
  Status (*copy_from_buffer_handle)(Context*, Delegate*, int handle, Tensor*);
  Status (*copy_to_buffer_handle)(Context*, Delegate*, int handle, Tensor*);
  void (*free_buffer_handle)(Context*, Delegate*, int* handle);
  int64_t flags;
  void* opaque_builder;
};

// What `init` returns where it failed.
inline void* InitFailed() { return reinterpret_cast<void*>(-1); }

}  // namespace tflite_abi
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_STANDALONE_TFLITE_ABI_H_
