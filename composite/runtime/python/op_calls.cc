// The eager calls of one op that have been prepared, as functions of Python's.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "composite/runtime/base/python_abi.h"
#include "composite/runtime/python/eager_tensors.h"
#include "composite/runtime/python/functions.h"
#include "composite/runtime/python/prepared.h"

namespace composite {
namespace {

struct Entry {
  std::shared_ptr<const Prepared> prepared;
  std::vector<Object> attrs;
};

struct OpCalls {
  Py_ssize_t inputs;
  Py_ssize_t attrs;
  bool is_open;  // whether Python wants to know of calls that nothing serves
  std::vector<Entry> entries;
};

// Whether two values of an attribute, which never change, mean the same. To Python 0.0 is -0.0.
bool AreSame(PyObject* one, PyObject* other) {
  if (one == other) return true;
  const Object types[] = {Object(PyObject_Type(one)), Object(PyObject_Type(other))};
  if (types[0].get() != types[1].get()) return false;
  if (types[0].get() == &PyFloat_Type) {
    const double values[] = {PyFloat_AsDouble(one), PyFloat_AsDouble(other)};
    return std::memcmp(&values[0], &values[1], sizeof(double)) == 0;
  }
  const int equal = PyObject_RichCompareBool(one, other, kEqual);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

bool Serves(const Entry& entry, const Tensors& tensors, PyObject* const* attrs) {
  const tensorflow::DataTypeVector& dtypes = entry.prepared->call().arguments();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i]->dtype() != dtypes[i]) return false;
  }
  for (size_t i = 0; i < entry.attrs.size(); ++i) {
    if (!AreSame(entry.attrs[i].get(), attrs[i])) return false;
  }
  return true;
}

Object ResultOf(std::vector<Object> results) {
  for (const Object& one : results) {
    if (!one) return Object();
  }
  if (results.empty()) return None();
  if (results.size() == 1) return std::move(results.front());
  Object tuple(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t i = 0; tuple && i < results.size(); ++i) {
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), results[i].Release());
  }
  return tuple;
}

// call(context, here, *tensors, *attributes): what the op returns, a tensor or a tuple;
// NotImplemented if nothing that was added serves such a call; None if TensorFlow has to make it.
Object Call(const OpCalls& calls, PyObject* const* given, Py_ssize_t count) {
  if (count != 2 + calls.inputs + calls.attrs) {
    return Raise(PyExc_TypeError, "call(context, here, *tensors, *attributes)");
  }
  Tensors tensors;
  for (Py_ssize_t i = 0; i < calls.inputs; ++i) {
    const tensorflow::Tensor* const tensor = TensorIn(given[2 + i]);
    if (tensor == nullptr) return None();
    tensors.push_back(tensor);
  }
  for (const Entry& entry : calls.entries) {
    if (!Serves(entry, tensors, given + 2 + calls.inputs)) continue;
    const std::shared_ptr<const Prepared> prepared = entry.prepared;  // entries may move
    if (prepared->MayRun(given[0], given[1])) return ResultOf(prepared->Run(tensors));
    return PyErr_Occurred() == nullptr ? None() : Object();
  }
  return calls.is_open ? NotImplemented() : None();
}

// add(address, keep, capsule, attributes): has a DirectCall serve the calls with the dtypes of its
// arguments and with these attributes, values that never change.
Object Add(OpCalls& calls, PyObject* const* given, Py_ssize_t count) {
  if (count != 4 || PyTuple_Size(given[3]) != calls.attrs) {
    return Raise(PyExc_TypeError, "add(address, keep, capsule, attributes)");
  }
  Entry entry;
  entry.prepared = Prepared::Make(given[0], given[1], given[2]);
  if (entry.prepared == nullptr) return Object();
  if (static_cast<Py_ssize_t>(entry.prepared->call().arguments().size()) != calls.inputs) {
    return Raise(PyExc_ValueError, "the op has another number of inputs");
  }
  for (Py_ssize_t i = 0; i < calls.attrs; ++i) {
    entry.attrs.push_back(Object::Borrowed(PyTuple_GetItem(given[3], i)));
  }
  calls.entries.push_back(std::move(entry));
  return None();
}

// close(): calls that nothing serves give None from now on.
Object Close(OpCalls& calls, PyObject* const*, Py_ssize_t) {
  calls.is_open = false;
  return None();
}

}  // namespace
}  // namespace composite

// The functions call, add and close, for an op with so many inputs and attributes. Called by
// ctypes, with the GIL.
extern "C" __attribute__((visibility("default"))) PyObject* composite_python_op_calls(
    Py_ssize_t inputs, Py_ssize_t attrs) {
  using composite::OpCalls;
  static PyMethodDef methods[] = {composite::Method<OpCalls, composite::Call>("call"),
                                  composite::Method<OpCalls, composite::Add>("add"),
                                  composite::Method<OpCalls, composite::Close>("close")};
  return composite::MethodsOf(std::make_unique<OpCalls>(OpCalls{inputs, attrs, true, {}}), methods).Release();
}
