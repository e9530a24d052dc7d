// Functions of Python's that share an object of C++.
#ifndef COMPOSITE_RUNTIME_PYTHON_FUNCTIONS_H_
#define COMPOSITE_RUNTIME_PYTHON_FUNCTIONS_H_

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "composite/runtime/base/python_abi.h"
#include "composite/runtime/python/eager_tensors.h"

namespace composite {

inline Object None() { return Object::Borrowed(&_Py_NoneStruct); }
inline Object NotImplemented() { return Object::Borrowed(&_Py_NotImplementedStruct); }

inline Object Raise(PyObject* kind, const char* message) {
  PyErr_SetString(kind, message);
  return Object();
}

// Leaves the GIL to others, as long as this object lives.
class WithoutGil {
 public:
  WithoutGil() : thread_(PyEval_SaveThread()) {}
  ~WithoutGil() { InPython(PyEval_RestoreThread, thread_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  void* const thread_;
};

// Nothing where Python has raised, for an object that is null too.
inline Object ListOf(std::vector<Object> objects) {
  Object list(PyList_New(static_cast<Py_ssize_t>(objects.size())));
  for (size_t i = 0; list && i < objects.size(); ++i) {
    if (!objects[i]) return Object();
    PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), objects[i].Release());
  }
  return list;
}

// A function of Python's whose `self` is a capsule with a Self; it returns nothing where Python has
// raised.
template <typename Self, auto function>
PyMethodDef Method(const char* name) {
  const PyFastFunction call = [](PyObject* self, PyObject* const* given, Py_ssize_t count) {
    try {
      auto* const object = static_cast<Self*>(PyCapsule_GetPointer(self, nullptr));
      return object == nullptr ? nullptr : function(*object, given, count).Release();
    } catch (const std::exception& error) {
      return Raise(PyExc_RuntimeError, error.what()).Release();
    }
  };
  return {name, call, kFastCall, nullptr};
}

// A tuple of the functions, which own the object. Nothing where Python has raised.
template <typename Self, size_t count>
Object MethodsOf(std::unique_ptr<Self> object, PyMethodDef (&methods)[count]) {
  const absl::Status found = FindEagerTensors();
  if (!found.ok()) return Raise(PyExc_RuntimeError, std::string(found.message()).c_str());
  const Object self(PyCapsule_New(object.get(), nullptr, [](PyObject* capsule) {
    delete static_cast<Self*>(PyCapsule_GetPointer(capsule, nullptr));
  }));
  if (!self) return Object();
  object.release();
  Object tuple(PyTuple_New(count));
  Py_ssize_t i = 0;
  for (PyMethodDef& method : methods) {
    if (!tuple) break;
    Object made(PyCFunction_NewEx(&method, self.get(), nullptr));
    if (!made) return Object();
    PyTuple_SetItem(tuple.get(), i++, made.Release());
  }
  return tuple;
}

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PYTHON_FUNCTIONS_H_
