// A delegate of TFLite's interpreter: custom ops of a model, by the kernels of a built library.
//
// An interpreter loads it as an external delegate, by the two functions at the end. A custom op has
// the name of an op of the library, and its attributes, as JSON, for options.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "composite/runtime/c_api.h"
#include "composite/runtime/standalone/library.h"
#include "composite/runtime/standalone/tflite_abi.h"

namespace composite {
namespace standalone {
namespace {

using tflite_abi::Context;
using tflite_abi::IntArray;
using tflite_abi::Node;
using tflite_abi::Registration;
using tflite_abi::Status;

struct LibraryDelegate {
  tflite_abi::Delegate base{};  // first: the interpreter has its address
  std::unique_ptr<Library> library;
};

// A custom op of the model. The tensors of `node`, as the delegate has it, are sorted, and none is
// there twice; these are those of the call.
struct Call {
  const Function* function;
  std::vector<int> inputs;
  std::vector<int> outputs;
};

Status Fail(Context* context, const std::string& why) {
  context->ReportError(context, "%s", why.c_str());
  return tflite_abi::kError;
}

// Nothing is thrown into the interpreter.
template <typename Body>
Status Guarded(Context* context, Body body) {
  Failure failure;
  try {
    if (body(&failure)) return tflite_abi::kOk;
  } catch (const std::exception& thrown) {
    failure.message = thrown.what();
  }
  return Fail(context, failure.message);
}

// TfLiteType as DtypeKey has it; 0 for what kernels do not take.
uint32_t KeyOf(int type) {
  enum : uint32_t { kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kBool = 6 };
  const auto key = [](uint32_t code, uint32_t bits) { return code | bits << 8; };
  switch (type) {
    case 1:
      return key(kFloat, 32);
    case 2:
      return key(kInt, 32);
    case 3:
      return key(kUint, 8);
    case 4:
      return key(kInt, 64);
    case 6:
      return key(kBool, 8);
    case 7:
      return key(kInt, 16);
    case 9:
      return key(kInt, 8);
    case 10:
      return key(kFloat, 16);
    case 11:
      return key(kFloat, 64);
    case 13:
      return key(kUint, 64);
    case 16:
      return key(kUint, 32);
    case 17:
      return key(kUint, 16);
    case 19:
      return key(kBfloat, 16);
  }
  return 0;
}

// Tensors of a call as kernels take them.
struct Tensors {
  std::vector<Tensor> tensors;
  std::vector<std::array<int64_t, kMostDims>> dims;

  bool Fill(const Context* context, const std::vector<int>& indices, Failure* failure) {
    tensors.resize(indices.size());
    dims.resize(indices.size());
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0) return failure->Set(kInvalidArgument, "an input is left out");
      const tflite_abi::Tensor& given = context->tensors[indices[i]];
      const uint32_t key = KeyOf(given.type);
      if (key == 0 || given.dims->size > kMostDims) {
        const char* name = given.name == nullptr ? "" : given.name;
        return failure->Set(kInvalidArgument, std::string("the tensor \"") + name +
                                                  "\" has a type or a rank of no kernel");
      }
      std::copy_n(given.dims->data, given.dims->size, dims[i].begin());
      Tensor& tensor = tensors[i];
      tensor = Tensor{};
      tensor.data = given.data;
      tensor.device.type = tvm_abi::kCpu;
      tensor.ndim = given.dims->size;
      tensor.dtype = {static_cast<uint8_t>(key), static_cast<uint8_t>(key >> 8), 1};
      tensor.shape = dims[i].data();
    }
    return true;
  }
};

std::vector<int> Indices(const IntArray* array) {
  return std::vector<int>(array->data, array->data + array->size);
}

// As the interpreter makes one, which frees it.
IntArray* NewArray(const int64_t* values, int size) {
  auto* array = static_cast<IntArray*>(std::malloc(sizeof(IntArray) + sizeof(int) * size));
  if (array == nullptr) throw std::bad_alloc();
  array->size = size;
  std::copy_n(values, size, array->data);
  return array;
}

void* Init(Context* context, const char* buffer, size_t) {
  const auto* params = reinterpret_cast<const tflite_abi::DelegateParams*>(buffer);
  const auto* delegate = reinterpret_cast<const LibraryDelegate*>(params->delegate);
  auto call = std::make_unique<Call>();
  const Status status = Guarded(context, [&](Failure* failure) {
    Node* node;
    Registration* op;
    if (context->GetNodeAndRegistration(context, params->nodes->data[0], &node, &op) !=
        tflite_abi::kOk) {
      return failure->Set(kInternal, "a node of the model is not there");
    }
    const std::string attributes(static_cast<const char*>(node->custom_initial_data),
                                 node->custom_initial_data_size);
    call->function = delegate->library->Find(op->custom_name, attributes.c_str(), failure);
    call->inputs = Indices(node->inputs);
    call->outputs = Indices(node->outputs);
    return call->function != nullptr;
  });
  return status == tflite_abi::kOk ? call.release() : tflite_abi::InitFailed();
}

void Free(Context*, void* made) {
  if (made != tflite_abi::InitFailed()) delete static_cast<Call*>(made);
}

// Sizes the outputs. Called again when sizes of inputs have changed.
Status Prepare(Context* context, Node* node) {
  if (node->user_data == tflite_abi::InitFailed()) return tflite_abi::kError;
  const Call& call = *static_cast<const Call*>(node->user_data);
  return Guarded(context, [&](Failure* failure) {
    Tensors inputs;
    Choice choice;
    if (!inputs.Fill(context, call.inputs, failure) ||
        !call.function->Choose(inputs.tensors.data(), static_cast<int>(inputs.tensors.size()),
                               &choice, failure)) {
      return false;
    }
    const Kernel& kernel = *choice.kernel;
    if (call.outputs.size() != static_cast<size_t>(kernel.outputs)) {
      return failure->Set(kInvalidArgument, call.function->name() + ": the model has " +
                                                std::to_string(call.outputs.size()) + " outputs");
    }
    for (int i = 0; i < kernel.outputs; ++i) {
      int64_t dims[kMostDims];
      if (!call.function->OutputDims(choice, i, dims, failure)) return false;
      const int rank = kernel.ranks[kernel.inputs + i];
      tflite_abi::Tensor* tensor = &context->tensors[call.outputs[i]];
      if (context->ResizeTensor(context, tensor, NewArray(dims, rank)) != tflite_abi::kOk) {
        return failure->Set(kInternal, call.function->name() + ": an output cannot be resized");
      }
    }
    return true;
  });
}

Status Invoke(Context* context, Node* node) {
  const Call& call = *static_cast<const Call*>(node->user_data);
  return Guarded(context, [&](Failure* failure) {
    Tensors inputs, outputs;
    Choice choice;
    return inputs.Fill(context, call.inputs, failure) &&
           outputs.Fill(context, call.outputs, failure) &&
           call.function->Choose(inputs.tensors.data(), static_cast<int>(inputs.tensors.size()),
                                 &choice, failure) &&
           CheckOutputs(*call.function, choice, outputs.tensors.data(),
                        static_cast<int>(outputs.tensors.size()), failure) &&
           call.function->Run(choice, inputs.tensors.data(), outputs.tensors.data(), failure);
  });
}

bool Has(const Library& library, const char* op) {
  const Table& table = library.table();
  for (int i = 0; i < table.count; ++i) {
    if (std::strcmp(table.ops[i].name, op) == 0) return true;
  }
  return false;
}

// Takes over the custom ops that the library has, each as a kernel of its own.
Status TakeOver(Context* context, tflite_abi::Delegate* base) {
  const auto* delegate = reinterpret_cast<const LibraryDelegate*>(base);
  Registration kernel{};
  kernel.init = Init;
  kernel.free = Free;
  kernel.prepare = Prepare;
  kernel.invoke = Invoke;
  kernel.custom_name = "CompositeKernel";
  kernel.version = 1;
  return Guarded(context, [&](Failure* failure) {
    IntArray* plan;
    if (context->GetExecutionPlan(context, &plan) != tflite_abi::kOk) {
      return failure->Set(kInternal, "the interpreter has no execution plan");
    }
    // The plan is another one after each replacement.
    for (const int index : Indices(plan)) {
      Node* node;
      Registration* op;
      const IntArray one{1, {index}};
      if (context->GetNodeAndRegistration(context, index, &node, &op) != tflite_abi::kOk) {
        return failure->Set(kInternal, "a node of the model is not there");
      }
      if (op->custom_name == nullptr || !Has(*delegate->library, op->custom_name)) continue;
      if (context->ReplaceNodes(context, kernel, &one, base) != tflite_abi::kOk) {
        return failure->Set(kInternal, std::string(op->custom_name) + " cannot be taken over");
      }
    }
    return true;
  });
}

}  // namespace
}  // namespace standalone
}  // namespace composite

extern "C" {

using composite::standalone::LibraryDelegate;

// The option "library" is the folder of a built library.
COMPOSITE_EXPORT composite::tflite_abi::Delegate* tflite_plugin_create_delegate(
    const char* const* keys, const char* const* values, size_t count, void (*report)(const char*)) {
  composite::standalone::Failure failure;
  try {
    auto delegate = std::make_unique<LibraryDelegate>();
    if (count != 1 || std::string(keys[0]) != "library") {
      failure.message = "the delegate takes one option: library, the folder of a built library";
    } else {
      delegate->library = composite::standalone::Library::Open(values[0], &failure);
    }
    if (delegate->library != nullptr) {
      delegate->base.prepare = composite::standalone::TakeOver;
      // Without it an interpreter prepares the model's own nodes first, which these cannot be.
      delegate->base.flags = composite::tflite_abi::kAllowDynamicTensors;
      return &delegate.release()->base;
    }
  } catch (const std::exception& thrown) {
    failure.message = thrown.what();
  }
  if (report != nullptr) report(failure.message.c_str());
  return nullptr;
}

COMPOSITE_EXPORT void tflite_plugin_destroy_delegate(composite::tflite_abi::Delegate* delegate) {
  delete reinterpret_cast<LibraryDelegate*>(delegate);
}

}  // extern "C"
