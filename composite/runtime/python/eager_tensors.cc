#include "composite/runtime/python/eager_tensors.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/c/eager/tfe_context_internal.h"
#include "tensorflow/c/eager/tfe_tensorhandle_internal.h"
#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow/core/common_runtime/eager/tensor_handle.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

constexpr char kLibrary[] = "lib_pywrap_tensorflow_common.so";
constexpr char kContext[] = "TFE_Context";  // the name of its capsule, which has none in TF 2.21

// Declared by TensorFlow in headers that want NumPy's, or that it does not ship.
struct Functions {
  bool (*EagerTensor_CheckExact)(const PyObject*) = nullptr;
  TFE_TensorHandle* (*EagerTensor_Handle)(const PyObject*);
  PyObject* (*EagerTensorFromHandle)(TFE_TensorHandle*, bool is_packed);
  PyObject* (*TFE_Py_TapeSetIsEmpty)();
  PyObject* (*TFE_Py_RecordGradient)(PyObject* op_name, PyObject* inputs, PyObject* attrs,
                                     PyObject* results, PyObject* scope_name);
};
Functions functions;

template <typename Function>
absl::Status Find(void* library, const char* mangled, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, mangled));
  if (*function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(kLibrary, " has no ", mangled));
}

// Whether an attribute is there and true in Python's sense; -1 with Python's error set.
int IsTrue(PyObject* object, PyObject* name) {
  const Object value(InPython(PyObject_GetAttr, object, name));
  return value ? InPython(PyObject_IsTrue, value.get()) : -1;
}

}  // namespace

absl::Status FindEagerTensors() {
  if (functions.EagerTensor_CheckExact != nullptr) return absl::OkStatus();
  // It is there if Python has imported TensorFlow, and stays.
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(kLibrary, " is not loaded"));
  }
  Functions found;
  TF_RETURN_IF_ERROR(
      Find(library, "_Z22EagerTensor_CheckExactPK7_object", &found.EagerTensor_CheckExact));
  TF_RETURN_IF_ERROR(Find(library, "_Z18EagerTensor_HandlePK7_object", &found.EagerTensor_Handle));
  TF_RETURN_IF_ERROR(
      Find(library, "_Z21EagerTensorFromHandleP16TFE_TensorHandleb", &found.EagerTensorFromHandle));
  TF_RETURN_IF_ERROR(Find(library, "_Z21TFE_Py_TapeSetIsEmptyv", &found.TFE_Py_TapeSetIsEmpty));
  TF_RETURN_IF_ERROR(Find(library, "_Z21TFE_Py_RecordGradientP7_objectS0_S0_S0_S0_",
                          &found.TFE_Py_RecordGradient));
  functions = found;
  return absl::OkStatus();
}

tensorflow::EagerContext* EagerContextIn(PyObject* capsule) {
  const char* const name = PyCapsule_IsValid(capsule, kContext) != 0 ? kContext : nullptr;
  auto* const context = static_cast<TFE_Context*>(PyCapsule_GetPointer(capsule, name));
  if (context == nullptr) return nullptr;
  return tensorflow::ContextFromInterface(tensorflow::unwrap(context));
}

const tensorflow::Tensor* TensorIn(PyObject* object) {
  if (!functions.EagerTensor_CheckExact(object)) return nullptr;
  tensorflow::ImmediateExecutionTensorHandle* const handle =
      tensorflow::unwrap(functions.EagerTensor_Handle(object));
  // Others are those of custom devices.
  if (!tensorflow::TensorHandle::classof(handle)) return nullptr;
  auto* const local = static_cast<tensorflow::TensorHandle*>(handle);
  if (local->device() != nullptr) return nullptr;
  tensorflow::TensorValue value;
  if (!local->TensorValue(/*d=*/nullptr, &value).ok()) return nullptr;
  return value.tensor;
}

Object EagerTensorOf(tensorflow::Tensor tensor, tensorflow::EagerContext* context) {
  auto* const handle = tensorflow::TensorHandle::CreateLocalHandle(std::move(tensor), /*d=*/nullptr,
                                                                   /*op_device=*/nullptr, context);
  return Object(
      InPython(functions.EagerTensorFromHandle, tensorflow::wrap(handle), /*is_packed=*/false));
}

Object CapsuleWhereOpsOnlyRun(PyObject* context, PyObject* here) {
  const auto interned = [](const char* name) { return PyUnicode_InternFromString(name); };
  static PyObject* const handle = interned("_context_handle");
  static PyObject* const of_process[] = {interned("_server_def"),
                                         interned("_collective_ops_server_def"),
                                         interned("_log_device_placement")};
  static PyObject* const of_thread[] = {interned("device_name"), interned("op_callbacks")};
  for (PyObject* name : of_process) {
    if (IsTrue(context, name) != 0) return Object();
  }
  for (PyObject* name : of_thread) {
    if (IsTrue(here, name) != 0) return Object();
  }
  Object capsule(InPython(PyObject_GetAttr, context, handle));
  // A context that has run nothing has none yet.
  if (!capsule || capsule.get() == &_Py_NoneStruct) return Object();
  tensorflow::EagerContext* const eager = EagerContextIn(capsule.get());
  if (eager == nullptr || eager->Executor().Async()) return Object();
  return capsule;
}

bool IsRecorded() {
  const Object is_empty(InPython(functions.TFE_Py_TapeSetIsEmpty));
  return is_empty && is_empty.get() != &_Py_TrueStruct;
}

bool Record(PyObject* here, PyObject* op_name, PyObject* inputs, PyObject* attrs,
            PyObject* results) {
  static PyObject* const scope_name = PyUnicode_InternFromString("scope_name");
  const Object scope(InPython(PyObject_GetAttr, here, scope_name));
  if (!scope) return false;
  const Object recorded(
      InPython(functions.TFE_Py_RecordGradient, op_name, inputs, attrs, results, scope.get()));
  return static_cast<bool>(recorded);
}

}  // namespace composite
