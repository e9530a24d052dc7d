// The part of CPython's ABI that calls from Python need: functions that every CPython from 3.10 on
// exports, declared here so that a library is built without Python's headers, one serves every
// Python, and a program without Python may load it too: there these are null, and nobody calls
// them.
#ifndef COMPOSITE_RUNTIME_BASE_PYTHON_ABI_H_
#define COMPOSITE_RUNTIME_BASE_PYTHON_ABI_H_

#include <cxxabi.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#define COMPOSITE_PYTHON __attribute__((weak, visibility("default")))

extern "C" {

struct PyObject;
using Py_ssize_t = ptrdiff_t;

// Its layout is the same in all of them; part of the stable ABI from 3.11 on.
struct Py_buffer {
  void* buf;
  PyObject* obj;
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char* format;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  Py_ssize_t* suboffsets;
  void* internal;
};

using PyFastFunction = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t count);
struct PyMethodDef {
  const char* ml_name;
  PyFastFunction ml_meth;
  int ml_flags;
  const char* ml_doc;
};

extern COMPOSITE_PYTHON PyObject* PyExc_FileNotFoundError;
extern COMPOSITE_PYTHON PyObject* PyExc_IndexError;
extern COMPOSITE_PYTHON PyObject* PyExc_LookupError;
extern COMPOSITE_PYTHON PyObject* PyExc_MemoryError;
extern COMPOSITE_PYTHON PyObject* PyExc_RuntimeError;
extern COMPOSITE_PYTHON PyObject* PyExc_TypeError;
extern COMPOSITE_PYTHON PyObject* PyExc_ValueError;
extern COMPOSITE_PYTHON PyObject PyDict_Type;
extern COMPOSITE_PYTHON PyObject PyFloat_Type;
extern COMPOSITE_PYTHON PyObject PyList_Type;
extern COMPOSITE_PYTHON PyObject PyTuple_Type;
extern COMPOSITE_PYTHON PyObject PyUnicode_Type;
extern COMPOSITE_PYTHON PyObject _Py_NoneStruct;
extern COMPOSITE_PYTHON PyObject _Py_NotImplementedStruct;
extern COMPOSITE_PYTHON PyObject _Py_TrueStruct;

COMPOSITE_PYTHON void Py_IncRef(PyObject*);
COMPOSITE_PYTHON void Py_DecRef(PyObject*);
COMPOSITE_PYTHON int Py_EnterRecursiveCall(const char* where);
COMPOSITE_PYTHON void Py_LeaveRecursiveCall();
COMPOSITE_PYTHON void* PyEval_SaveThread();
COMPOSITE_PYTHON void PyEval_RestoreThread(void*);
COMPOSITE_PYTHON int PyGILState_Check();
COMPOSITE_PYTHON void PyErr_Clear();
COMPOSITE_PYTHON PyObject* PyErr_Occurred();
COMPOSITE_PYTHON void PyErr_SetString(PyObject*, const char*);
COMPOSITE_PYTHON PyObject* PyCFunction_NewEx(PyMethodDef*, PyObject* self, PyObject* module);
COMPOSITE_PYTHON PyObject* PyCapsule_New(void*, const char* name, void (*destructor)(PyObject*));
COMPOSITE_PYTHON void* PyCapsule_GetPointer(PyObject*, const char* name);
COMPOSITE_PYTHON int PyCapsule_IsValid(PyObject*, const char* name);
COMPOSITE_PYTHON PyObject* PyDict_GetItemWithError(PyObject*, PyObject* key);  // borrowed
COMPOSITE_PYTHON PyObject* PyDict_Keys(PyObject*);
COMPOSITE_PYTHON double PyFloat_AsDouble(PyObject*);
COMPOSITE_PYTHON PyObject* PyList_GetItem(PyObject*, Py_ssize_t);  // borrowed
COMPOSITE_PYTHON PyObject* PyList_New(Py_ssize_t);
COMPOSITE_PYTHON int PyList_SetItem(PyObject*, Py_ssize_t, PyObject* stolen);
COMPOSITE_PYTHON Py_ssize_t PyList_Size(PyObject*);
COMPOSITE_PYTHON int PyList_Sort(PyObject*);
COMPOSITE_PYTHON int PyObject_GetBuffer(PyObject*, Py_buffer*, int flags);
COMPOSITE_PYTHON void PyBuffer_Release(Py_buffer*);
COMPOSITE_PYTHON PyObject* PyObject_GetAttr(PyObject*, PyObject* name);
COMPOSITE_PYTHON PyObject* PyObject_GetAttrString(PyObject*, const char*);
COMPOSITE_PYTHON int PyObject_IsInstance(PyObject*, PyObject* type);
COMPOSITE_PYTHON int PyObject_IsTrue(PyObject*);
COMPOSITE_PYTHON int PyObject_RichCompareBool(PyObject*, PyObject*, int op);
COMPOSITE_PYTHON PyObject* PyObject_CallNoArgs(PyObject*);
COMPOSITE_PYTHON PyObject* PyObject_CallFunctionObjArgs(PyObject*, ...);
COMPOSITE_PYTHON PyObject* PyObject_Type(PyObject*);
COMPOSITE_PYTHON PyObject* PyObject_GetItem(PyObject*, PyObject* key);
COMPOSITE_PYTHON PyObject* PyLong_FromLongLong(long long);
COMPOSITE_PYTHON long long PyLong_AsLongLong(PyObject*);
COMPOSITE_PYTHON PyObject* PySequence_Tuple(PyObject*);
COMPOSITE_PYTHON PyObject* PyTuple_New(Py_ssize_t);
COMPOSITE_PYTHON int PyTuple_SetItem(PyObject*, Py_ssize_t, PyObject* stolen);
COMPOSITE_PYTHON PyObject* PyTuple_GetItem(PyObject*, Py_ssize_t);
COMPOSITE_PYTHON Py_ssize_t PyTuple_Size(PyObject*);
COMPOSITE_PYTHON PyObject* PyUnicode_FromString(const char*);
COMPOSITE_PYTHON PyObject* PyUnicode_InternFromString(const char*);
COMPOSITE_PYTHON const char* PyUnicode_AsUTF8AndSize(PyObject*, Py_ssize_t*);

}  // extern "C"

namespace composite {

constexpr int kFastCall = 0x80;       // METH_FASTCALL
constexpr int kBufferWritable = 0x1;  // PyBUF_WRITABLE
constexpr int kBufferStrides = 0x18;  // PyBUF_STRIDES, with PyBUF_ND
constexpr int kBufferFormat = 0x4;    // PyBUF_FORMAT
constexpr int kEqual = 2;             // Py_EQ

// Calls a function of Python's that may wait for the GIL. While the interpreter ends, CPython up to
// 3.13 ends a daemon thread there by unwinding its stack: destructors would run without the GIL,
// and one that waits for it itself would abort the process. Such a thread stays here instead, as it
// does in CPython from 3.14 on, and ends with the process.
template <typename Function, typename... Args>
auto InPython(Function function, Args... args) {
  try {
    return function(args...);
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// Owns a reference; null where Python has raised.
class Object {
 public:
  Object() = default;
  explicit Object(PyObject* stolen) : object_(stolen) {}
  ~Object() { Reset(nullptr); }
  Object(Object&& other) noexcept : object_(other.Release()) {}
  Object& operator=(Object&& other) noexcept {
    Reset(other.Release());
    return *this;
  }

  static Object Borrowed(PyObject* object) {
    Py_IncRef(object);
    return Object(object);
  }

  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  PyObject* Release() {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  void Reset(PyObject* stolen) {
    if (object_ != nullptr) InPython(Py_DecRef, object_);
    object_ = stolen;
  }
  PyObject* object_ = nullptr;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_BASE_PYTHON_ABI_H_
