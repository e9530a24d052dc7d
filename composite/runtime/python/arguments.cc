#include "composite/runtime/python/arguments.h"

#include <cstdint>
#include <utility>

#include "composite/runtime/python/eager_tensors.h"

namespace composite {

bool Arguments::Add(PyObject* given) {
  // Not of classes that derive from these: to TensorFlow such are other structures.
  const Object type(PyObject_Type(given));
  if (type.get() == &PyList_Type) return AddSequence(given, 'l');
  if (type.get() == &PyTuple_Type) return AddSequence(given, 't');
  if (type.get() == &PyDict_Type) return AddDict(given);
  return AddTensor(Object::Borrowed(given));
}

bool Arguments::AddSequence(PyObject* given, char mark) {
  // A copy, since a conversion may run what changes a list.
  const Object items(InPython(PySequence_Tuple, given));
  if (!items || Py_EnterRecursiveCall(" in arguments of a function") != 0) return false;
  const Py_ssize_t size = PyTuple_Size(items.get());
  Append(mark, static_cast<int64_t>(size));
  bool known = true;
  for (Py_ssize_t i = 0; i < size && known; ++i) known = Add(PyTuple_GetItem(items.get(), i));
  Py_LeaveRecursiveCall();
  return known;
}

bool Arguments::AddDict(PyObject* given) {
  const Object names(PyDict_Keys(given));
  if (!names) return false;
  const Py_ssize_t size = PyList_Size(names.get());
  Append('d', static_cast<int64_t>(size));
  for (Py_ssize_t i = 0; i < size; ++i) {
    const Object type(PyObject_Type(PyList_GetItem(names.get(), i)));
    if (type.get() != &PyUnicode_Type) return false;
  }
  // The order in which a trace takes the values.
  if (InPython(PyList_Sort, names.get()) != 0) return false;
  const Object values(PyTuple_New(size));
  if (!values) return false;
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* const name = PyList_GetItem(names.get(), i);
    Py_ssize_t bytes = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(name, &bytes);
    PyObject* const value = InPython(PyDict_GetItemWithError, given, name);
    if (text == nullptr || value == nullptr) return false;
    Append('k', static_cast<int64_t>(bytes));
    Append(text, static_cast<size_t>(bytes));
    PyTuple_SetItem(values.get(), i, Object::Borrowed(value).Release());
  }
  return AddSequence(values.get(), 'v');
}

bool Arguments::AddTensor(Object object) {
  const tensorflow::Tensor* tensor = TensorIn(object.get());
  if (tensor == nullptr) {
    object = Object(InPython(PyObject_CallFunctionObjArgs, convert_, object.get(), nullptr));
    if (!object) return false;
    tensor = TensorIn(object.get());
  }
  if (tensor == nullptr) return false;
  Append('x', static_cast<int32_t>(tensor->dtype()));
  Append('r', static_cast<int32_t>(tensor->dims()));
  for (int i = 0; i < tensor->dims(); ++i) {
    const int64_t dim = tensor->dim_size(i);
    Append(&dim, sizeof(dim));
  }
  tensors_.push_back(tensor);
  owners_.push_back(std::move(object));
  return true;
}

}  // namespace composite
