// Calls from Python, composite/standalone/native.py: an op is a callable in C, which takes arrays
// and gives arrays of the kind that it was given. NumPy's are made by numpy.empty; all others are
// made of DLPack capsules, by Python.
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "composite/runtime/base/python_abi.h"
#include "composite/runtime/standalone/library.h"
#include "composite/runtime/standalone/python_array.h"

namespace composite {
namespace standalone {
namespace {

constexpr char kLibrary[] = "composite.library";
constexpr char kCallable[] = "composite.callable";

// What Python gave; it lives as long as the process.
struct Hooks {
  PyObject* ndarray = nullptr;  // numpy.ndarray
  PyObject* empty = nullptr;    // numpy.empty
  PyObject* dtypes = nullptr;   // numpy's dtypes by DtypeKey
  PyObject* bits = nullptr;  // of an array without a buffer: one that has, and its DtypeKey; or ()
  PyObject* wrap = nullptr;  // of an array and a capsule: an array of the same kind
};
Hooks hooks;

void Raise(const Failure& failure) {
  PyObject* kind = PyExc_RuntimeError;
  if (failure.code == kInvalidArgument || failure.code == kDataLoss) kind = PyExc_ValueError;
  if (failure.code == kNotFound) kind = PyExc_LookupError;
  if (failure.code == kOutOfRange) kind = PyExc_IndexError;
  if (failure.code == kResourceExhausted) kind = PyExc_MemoryError;
  PyErr_SetString(kind, failure.message.c_str());
}

// Runs `body`, which returns an object or null with what Python has raised.
template <typename Body>
PyObject* Guarded(Body body) {
  try {
    return body().Release();
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, "no memory for a call");
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// One call: what it holds, from its inputs to its results.
class Call {
 public:
  Call(const Function& function, PyObject* const* args, Py_ssize_t count)
      : function_(function), args_(args), inputs_(count), outputs_(function.outputs()) {}

  Object Run() {
    std::vector<Tensor> inputs(inputs_.size()), outputs(outputs_.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!HoldInput(i)) return Object();
      inputs[i] = inputs_[i].tensor();
    }
    Failure failure;
    bool ok = function_.Choose(inputs.data(), static_cast<int>(inputs.size()), &choice_, &failure);
    for (size_t i = 0; ok && i < outputs.size(); ++i) {
      int64_t dims[kMostDims];
      ok = function_.OutputDims(choice_, static_cast<int>(i), dims, &failure);
      if (ok && !MakeOutput(i, dims, &outputs[i])) return Object();
    }
    if (ok) {
      void* thread = PyEval_SaveThread();
      ok = function_.Run(choice_, inputs.data(), outputs.data(), &failure);
      InPython(PyEval_RestoreThread, thread);
    }
    if (ok) return Results();
    Raise(failure);
    return Object();
  }

 private:
  bool HoldInput(size_t i) {
    PyObject* arg = args_[i];
    const Object type(PyObject_Type(arg));
    if (type.get() != hooks.ndarray && InPython(PyObject_IsInstance, arg, hooks.ndarray) == 0) {
      const Object dlpack(InPython(PyObject_GetAttrString, arg, "__dlpack__"));
      if (dlpack) {
        if (kind_ == nullptr) kind_ = arg;
        return inputs_[i].HoldCapsule(Object(InPython(PyObject_CallNoArgs, dlpack.get())));
      }
      PyErr_Clear();
    }
    if (HoldBits(arg, false, &inputs_[i])) return true;
    if (PyErr_Occurred() == nullptr) {
      const std::string text = function_.name() + ": input " + std::to_string(i) +
                               " is no array: pass one of NumPy, or any that has __dlpack__";
      PyErr_SetString(PyExc_TypeError, text.c_str());
    }
    return false;
  }

  // False where the array has no memory that can be read, or Python has raised.
  static bool HoldBits(PyObject* array, bool writable, HeldArray* held) {
    if (held->HoldBuffer(array, writable)) return true;
    PyErr_Clear();
    const Object bits(InPython(PyObject_CallFunctionObjArgs, hooks.bits, array, nullptr));
    if (!bits || PyTuple_Size(bits.get()) != 2) return false;
    const long long key = PyLong_AsLongLong(PyTuple_GetItem(bits.get(), 1));
    if (!held->HoldBuffer(PyTuple_GetItem(bits.get(), 0), writable)) return false;
    held->SetDtype(static_cast<uint32_t>(key));
    return true;
  }

  bool MakeOutput(size_t i, const int64_t* dims, Tensor* tensor) {
    const Kernel& kernel = *choice_.kernel;
    const int rank = kernel.ranks[kernel.inputs + i];
    const uint32_t dtype = kernel.dtypes[kernel.inputs + i];
    if (kind_ != nullptr) {
      results_.push_back(NewCapsule(dtype, dims, rank, tensor));
      return static_cast<bool>(results_.back());
    }
    const Object shape(PyTuple_New(rank));
    if (!shape) return false;
    for (int d = 0; d < rank; ++d) {
      if (PyTuple_SetItem(shape.get(), d, PyLong_FromLongLong(dims[d])) != 0) return false;
    }
    const Object key(PyLong_FromLongLong(dtype));
    if (!key) return false;
    const Object type(InPython(PyObject_GetItem, hooks.dtypes, key.get()));
    if (!type) return false;
    results_.emplace_back(
        InPython(PyObject_CallFunctionObjArgs, hooks.empty, shape.get(), type.get(), nullptr));
    if (!results_.back() || !HoldBits(results_.back().get(), true, &outputs_[i])) return false;
    *tensor = outputs_[i].tensor();
    return true;
  }

  Object Results() {
    if (kind_ != nullptr) {
      for (Object& result : results_) {
        result = Object(
            InPython(PyObject_CallFunctionObjArgs, hooks.wrap, kind_, result.get(), nullptr));
        if (!result) return Object();
      }
    }
    if (results_.size() == 1) return std::move(results_.front());
    Object all(PyTuple_New(static_cast<Py_ssize_t>(results_.size())));
    for (size_t i = 0; all && i < results_.size(); ++i) {
      if (PyTuple_SetItem(all.get(), static_cast<Py_ssize_t>(i), results_[i].Release()) != 0) {
        return Object();
      }
    }
    return all;
  }

  const Function& function_;
  PyObject* const* const args_;
  PyObject* kind_ = nullptr;  // the first input that is not NumPy's
  Choice choice_;
  std::vector<HeldArray> inputs_;
  std::vector<HeldArray> outputs_;
  std::vector<Object> results_;
};

PyObject* CallFunction(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return Guarded([&] {
    const auto* function = static_cast<const Function*>(PyCapsule_GetPointer(self, kCallable));
    return function == nullptr ? Object() : Call(*function, args, count).Run();
  });
}
PyMethodDef call_function = {"call", CallFunction, kFastCall, nullptr};

// open(folder): a capsule of the library.
PyObject* OpenLibrary(PyObject*, PyObject* const* args, Py_ssize_t) {
  return Guarded([&] {
    const char* folder = PyUnicode_AsUTF8AndSize(args[0], nullptr);
    if (folder == nullptr) return Object();
    Failure failure;
    std::unique_ptr<Library> library = Library::Open(folder, &failure);
    if (library != nullptr) return Object(PyCapsule_New(library.release(), kLibrary, nullptr));
    if (failure.code == kNotFound) {
      PyErr_SetString(PyExc_FileNotFoundError, failure.message.c_str());
    } else {
      Raise(failure);
    }
    return Object();
  });
}
PyMethodDef open_library = {"open", OpenLibrary, kFastCall, nullptr};

// signatures(library): for each op its name in Python and its signature.
PyObject* Signatures(PyObject*, PyObject* const* args, Py_ssize_t) {
  return Guarded([&] {
    const auto* library = static_cast<const Library*>(PyCapsule_GetPointer(args[0], kLibrary));
    if (library == nullptr) return Object();
    const Table& table = library->table();
    Object all(PyTuple_New(table.count));
    for (int i = 0; all && i < table.count; ++i) {
      Object pair(PyTuple_New(2));
      if (!pair) return pair;
      const Op& op = table.ops[i];
      if (PyTuple_SetItem(pair.get(), 0, PyUnicode_FromString(op.python_name)) != 0 ||
          PyTuple_SetItem(pair.get(), 1, PyUnicode_FromString(op.signature)) != 0 ||
          PyTuple_SetItem(all.get(), i, pair.Release()) != 0) {
        return Object();
      }
    }
    return all;
  });
}
PyMethodDef signatures = {"signatures", Signatures, kFastCall, nullptr};

// find(library, op, attributes): a callable of arrays.
PyObject* FindFunction(PyObject*, PyObject* const* args, Py_ssize_t) {
  return Guarded([&] {
    const auto* library = static_cast<const Library*>(PyCapsule_GetPointer(args[0], kLibrary));
    const char* op = PyUnicode_AsUTF8AndSize(args[1], nullptr);
    const char* attributes = PyUnicode_AsUTF8AndSize(args[2], nullptr);
    if (library == nullptr || op == nullptr || attributes == nullptr) return Object();
    Failure failure;
    const Function* function = library->Find(op, attributes, &failure);
    if (function == nullptr) {
      Raise(failure);
      return Object();
    }
    const Object self(PyCapsule_New(const_cast<Function*>(function), kCallable, nullptr));
    return Object(self ? PyCFunction_NewEx(&call_function, self.get(), nullptr) : nullptr);
  });
}
PyMethodDef find_function = {"find", FindFunction, kFastCall, nullptr};

}  // namespace
}  // namespace standalone
}  // namespace composite

// The functions open, signatures and find. Called once, with the GIL, by ctypes; see Hooks.
extern "C" __attribute__((visibility("default"))) PyObject* composite_python_functions(
    PyObject* ndarray, PyObject* empty, PyObject* dtypes, PyObject* bits, PyObject* wrap) {
  using composite::Object;
  for (PyObject* hook : {ndarray, empty, dtypes, bits, wrap}) Py_IncRef(hook);
  composite::standalone::hooks = {ndarray, empty, dtypes, bits, wrap};
  Object functions(PyTuple_New(3));
  Py_ssize_t i = 0;
  for (PyMethodDef* one : {&composite::standalone::open_library, &composite::standalone::signatures,
                           &composite::standalone::find_function}) {
    if (!functions ||
        PyTuple_SetItem(functions.get(), i++, PyCFunction_NewEx(one, nullptr, nullptr)) != 0) {
      return nullptr;
    }
  }
  return functions.Release();
}
