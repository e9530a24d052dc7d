// The calls of one function that have been prepared, as functions of Python's.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "composite/runtime/base/python_abi.h"
#include "composite/runtime/python/arguments.h"
#include "composite/runtime/python/eager_tensors.h"
#include "composite/runtime/python/functions.h"
#include "composite/runtime/python/prepared.h"

namespace composite {
namespace {

struct FunctionEntry {
  std::shared_ptr<const Prepared> prepared;
  Object pack;  // makes the result of a list of tensors; None: it is the one tensor
};

struct FunctionCalls {
  Object convert;
  absl::flat_hash_map<std::string, FunctionEntry> entries;  // by kinds of arguments
};

Object ResultOf(std::vector<Object> results, PyObject* pack) {
  if (pack == &_Py_NoneStruct) return std::move(results.front());
  const Object list = ListOf(std::move(results));
  return list ? Object(InPython(PyObject_CallFunctionObjArgs, pack, list.get(), nullptr))
              : Object();
}

bool AddAll(PyObject* tuple, Arguments* arguments) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
    if (!arguments->Add(PyTuple_GetItem(tuple, i))) return false;
  }
  return PyErr_Occurred() == nullptr;  // it is a tuple
}

// call(context, here, arguments): what the function returns for a tuple of arguments;
// NotImplemented if TensorFlow has to be asked.
Object CallFunction(const FunctionCalls& calls, PyObject* const* given, Py_ssize_t count) {
  if (count != 3) return Raise(PyExc_TypeError, "call(context, here, arguments)");
  const Object capsule = CapsuleWhereOpsOnlyRun(given[0], given[1]);
  if (!capsule || IsRecorded()) return PyErr_Occurred() == nullptr ? NotImplemented() : Object();
  Arguments arguments(calls.convert.get());
  if (!AddAll(given[2], &arguments)) {
    return PyErr_Occurred() == nullptr ? NotImplemented() : Object();
  }
  const auto found = calls.entries.find(arguments.kind());
  if (found == calls.entries.end()) return NotImplemented();
  // Others may add entries meanwhile, so that these move.
  const std::shared_ptr<const Prepared> prepared = found->second.prepared;
  const Object pack = Object::Borrowed(found->second.pack.get());
  if (!prepared->IsFor(capsule)) return NotImplemented();
  absl::StatusOr<std::vector<Object>> run = prepared->Run(arguments.tensors());
  return run.ok() ? ResultOf(*std::move(run), pack.get()) : NotImplemented();
}

bool Fits(const DirectCall& call, const Tensors& tensors) {
  if (call.arguments().size() != tensors.size()) return false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (call.arguments()[i] != tensors[i]->dtype()) return false;
  }
  return true;
}

// add(arguments, made, pack): has a DirectCall serve arguments of the same structure, dtypes and
// shapes.
Object AddFunctionCall(FunctionCalls& calls, PyObject* const* given, Py_ssize_t count) {
  if (count != 3) return Raise(PyExc_TypeError, "add(arguments, made, pack)");
  Arguments arguments(calls.convert.get());
  const bool known = AddAll(given[0], &arguments);
  if (PyErr_Occurred() != nullptr) return Object();
  FunctionEntry entry{Prepared::Make(given[1]), Object::Borrowed(given[2])};
  if (entry.prepared == nullptr) return Object();
  if (!known || !Fits(entry.prepared->call(), arguments.tensors())) {
    return Raise(PyExc_ValueError, "the function takes other arguments");
  }
  std::swap(calls.entries[arguments.kind()], entry);  // what was there goes last
  return None();
}

}  // namespace
}  // namespace composite

// The functions call and add. `convert`: see Arguments. Called by ctypes, with the GIL.
extern "C" __attribute__((visibility("default"))) PyObject* composite_python_function_calls(
    PyObject* convert) {
  using composite::FunctionCalls;
  using composite::Object;
  static PyMethodDef methods[] = {
      composite::Method<FunctionCalls, composite::CallFunction>("call"),
      composite::Method<FunctionCalls, composite::AddFunctionCall>("add")};
  return composite::MethodsOf(
             std::make_unique<FunctionCalls>(FunctionCalls{Object::Borrowed(convert), {}}), methods)
      .Release();
}
