// The arguments of a function: tensors in lists, tuples and dicts, flat and in TensorFlow's order,
// and what tells their kind from others.
#ifndef COMPOSITE_RUNTIME_PYTHON_ARGUMENTS_H_
#define COMPOSITE_RUNTIME_PYTHON_ARGUMENTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "composite/runtime/base/python_abi.h"
#include "composite/runtime/python/prepared.h"

namespace composite {

class Arguments {
 public:
  // `convert`: of Python's, makes an eager tensor of an object, or returns the object.
  explicit Arguments(PyObject* convert) : convert_(convert) {}

  // Appends an argument. False, with Python's error set or without, if there is anything but eager
  // tensors in the memory of this host, and what becomes such a tensor, in lists, tuples, and dicts
  // whose keys are strings.
  bool Add(PyObject* given);

  // They live as long as this does.
  const Tensors& tensors() const { return tensors_; }
  // The same for arguments of one structure, with tensors of the same dtypes and shapes.
  const std::string& kind() const { return kind_; }

 private:
  bool AddSequence(PyObject* given, char mark);
  bool AddDict(PyObject* given);
  bool AddTensor(Object object);
  void Append(const void* data, size_t size) { kind_.append(static_cast<const char*>(data), size); }
  template <typename Number>
  void Append(char mark, Number number) {
    kind_.push_back(mark);
    Append(&number, sizeof(number));
  }

  PyObject* const convert_;
  Tensors tensors_;
  std::vector<Object> owners_;
  std::string kind_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PYTHON_ARGUMENTS_H_
