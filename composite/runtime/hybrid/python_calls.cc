// Calls of an open model with Python's eager tensors, as a function of Python's.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "composite/runtime/base/python_abi.h"
#include "composite/runtime/hybrid/model.h"
#include "composite/runtime/python/eager_tensors.h"
#include "composite/runtime/python/functions.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {
namespace {

struct PythonModel {
  std::unique_ptr<HybridModel> model;
  Object fail;  // (code, message, whether it is TVM's): raises
};

Object Fail(const PythonModel& self, const absl::Status& status) {
  const Object code(PyLong_FromLongLong(static_cast<int>(status.code())));
  const Object message(PyUnicode_FromString(std::string(status.message()).c_str()));
  PyObject* const of_tvm = HybridModel::IsOfTvm(status) ? &_Py_TrueStruct : &_Py_NoneStruct;
  if (!code || !message) return Object();
  return Object(InPython(PyObject_CallFunctionObjArgs, self.fail.get(), code.get(), message.get(),
                         of_tvm, nullptr));
}

// call(capsule of the eager context, tuple of eager tensors): a list of eager tensors;
// NotImplemented where the model does not take them, or one is not in the memory of this host.
Object CallModel(const PythonModel& self, PyObject* const* given, Py_ssize_t count) {
  if (count != 2) return Raise(PyExc_TypeError, "call(capsule, tensors)");
  tensorflow::EagerContext* const context = EagerContextIn(given[0]);
  if (context == nullptr) return Object();
  std::vector<tensorflow::Tensor> inputs;
  for (Py_ssize_t i = 0; i < PyTuple_Size(given[1]); ++i) {
    const tensorflow::Tensor* const tensor = TensorIn(PyTuple_GetItem(given[1], i));
    if (tensor == nullptr) return PyErr_Occurred() == nullptr ? NotImplemented() : Object();
    inputs.push_back(*tensor);
  }
  if (PyErr_Occurred() != nullptr) return Object();
  if (!self.model->description().CheckInputs(inputs).ok()) return NotImplemented();
  absl::StatusOr<std::vector<tensorflow::Tensor>> results;
  {
    const WithoutGil others;
    results = self.model->Call(inputs);
  }
  if (!results.ok()) return Fail(self, results.status());
  std::vector<Object> objects;
  for (tensorflow::Tensor& result : *results) {
    objects.push_back(EagerTensorOf(std::move(result), context));
  }
  return ListOf(std::move(objects));
}

}  // namespace
}  // namespace composite

// The function call. It owns the model that composite_open_hybrid opened. Called by ctypes, with
// the GIL.
extern "C" __attribute__((visibility("default"))) PyObject* composite_python_hybrid(
    void* model, PyObject* fail) {
  using composite::HybridModel;
  using composite::Object;
  using composite::PythonModel;
  static PyMethodDef methods[] = {composite::Method<PythonModel, composite::CallModel>("call")};
  std::unique_ptr<HybridModel> owned(static_cast<HybridModel*>(model));
  return composite::MethodsOf(
             std::make_unique<PythonModel>(PythonModel{std::move(owned), Object::Borrowed(fail)}),
             methods)
      .Release();
}
