// The eager calls of one op that have been prepared, as functions of Python's.
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "composite/runtime/base/python_abi.h"
#include "composite/runtime/python/eager_tensors.h"
#include "composite/runtime/python/functions.h"
#include "composite/runtime/python/prepared.h"

namespace composite {
namespace {

struct OpEntry {
  std::shared_ptr<const Prepared> prepared;
  std::vector<Object> attrs;  // as they are given
  Object recorded;            // attributes as tapes record them
  Object fail;                // raises the error of a code and a message; None: TensorFlow does
};

struct OpCalls {
  Object op_name;
  Py_ssize_t inputs;
  Py_ssize_t attrs;
  bool is_open;  // whether Python wants to know of calls that nothing serves
  // An entry stays where it is: another thread may add one while this one runs a call.
  std::deque<OpEntry> entries;
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
  const int equal = InPython(PyObject_RichCompareBool, one, other, kEqual);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

bool Serves(const OpEntry& entry, const Tensors& tensors, PyObject* const* attrs) {
  const tensorflow::DataTypeVector& dtypes = entry.prepared->call().arguments();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i]->dtype() != dtypes[i]) return false;
  }
  for (size_t i = 0; i < entry.attrs.size(); ++i) {
    if (!AreSame(entry.attrs[i].get(), attrs[i])) return false;
  }
  return true;
}

Object TupleOf(PyObject* const* objects, Py_ssize_t count) {
  Object tuple(PyTuple_New(count));
  for (Py_ssize_t i = 0; tuple && i < count; ++i) {
    PyTuple_SetItem(tuple.get(), i, Object::Borrowed(objects[i]).Release());
  }
  return tuple;
}

Object Fail(const OpEntry& entry, const absl::Status& status) {
  if (entry.fail.get() == &_Py_NoneStruct) return None();
  const Object code(PyLong_FromLongLong(static_cast<int>(status.code())));
  const Object message(PyUnicode_FromString(std::string(status.message()).c_str()));
  if (!code || !message) return Object();
  return Object(
      InPython(PyObject_CallFunctionObjArgs, entry.fail.get(), code.get(), message.get(), nullptr));
}

// `inputs`: the objects of `tensors`.
Object Run(const OpCalls& calls, const OpEntry& entry, const Tensors& tensors,
           PyObject* const* inputs, PyObject* here) {
  absl::StatusOr<std::vector<Object>> run = entry.prepared->Run(tensors);
  if (!run.ok()) return Fail(entry, run.status());
  const Object results = ListOf(*std::move(run));
  if (!results) return Object();
  if (IsRecorded()) {
    const Object given = TupleOf(inputs, calls.inputs);
    if (!given ||
        !Record(here, calls.op_name.get(), given.get(), entry.recorded.get(), results.get())) {
      return Object();
    }
  }
  if (PyErr_Occurred() != nullptr) return Object();
  if (PyList_Size(results.get()) != 1) return Object(InPython(PySequence_Tuple, results.get()));
  return Object::Borrowed(PyList_GetItem(results.get(), 0));
}

// call(context, here, *tensors, *attributes): what the op returns, a tensor or a tuple;
// NotImplemented if nothing that was added serves such a call; None if TensorFlow has to make it.
Object CallOp(const OpCalls& calls, PyObject* const* given, Py_ssize_t count) {
  if (count != 2 + calls.inputs + calls.attrs) {
    return Raise(PyExc_TypeError, "call(context, here, *tensors, *attributes)");
  }
  const Object capsule = CapsuleWhereOpsOnlyRun(given[0], given[1]);
  if (!capsule) return PyErr_Occurred() == nullptr ? None() : Object();
  Tensors tensors;
  for (Py_ssize_t i = 0; i < calls.inputs; ++i) {
    const tensorflow::Tensor* const tensor = TensorIn(given[2 + i]);
    if (tensor == nullptr) return None();
    tensors.push_back(tensor);
  }
  for (const OpEntry& entry : calls.entries) {
    if (!entry.prepared->IsFor(capsule)) continue;
    if (!Serves(entry, tensors, given + 2 + calls.inputs)) continue;
    return Run(calls, entry, tensors, given + 2, given[1]);
  }
  return calls.is_open ? NotImplemented() : None();
}

// add(made, attributes, recorded, fail): has a DirectCall serve the calls with the dtypes of its
// arguments and with these attributes, values that never change.
Object AddOpCall(OpCalls& calls, PyObject* const* given, Py_ssize_t count) {
  if (count != 4 || PyTuple_Size(given[1]) != calls.attrs) {
    return Raise(PyExc_TypeError, "add(made, attributes, recorded, fail)");
  }
  OpEntry entry;
  entry.prepared = Prepared::Make(given[0]);
  if (entry.prepared == nullptr) return Object();
  if (static_cast<Py_ssize_t>(entry.prepared->call().arguments().size()) != calls.inputs) {
    return Raise(PyExc_ValueError, "the op has another number of inputs");
  }
  for (Py_ssize_t i = 0; i < calls.attrs; ++i) {
    entry.attrs.push_back(Object::Borrowed(PyTuple_GetItem(given[1], i)));
  }
  entry.recorded = Object::Borrowed(given[2]);
  entry.fail = Object::Borrowed(given[3]);
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
    PyObject* op_name, Py_ssize_t inputs, Py_ssize_t attrs) {
  using composite::OpCalls;
  static PyMethodDef methods[] = {composite::Method<OpCalls, composite::CallOp>("call"),
                                  composite::Method<OpCalls, composite::AddOpCall>("add"),
                                  composite::Method<OpCalls, composite::Close>("close")};
  auto calls = std::make_unique<OpCalls>(
      OpCalls{composite::Object::Borrowed(op_name), inputs, attrs, /*is_open=*/true, {}});
  return composite::MethodsOf(std::move(calls), methods).Release();
}
