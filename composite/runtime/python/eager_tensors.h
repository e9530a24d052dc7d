// TensorFlow's eager tensors and its eager context, as Python has them.
//
// The only user of the private C++ APIs of TF 2.21 and 2.22 behind Python's `tensorflow` module:
// three functions of lib_pywrap_tensorflow_common for tensors and two for tapes, which are found by
// their names since a program without Python has none of them; and the class TensorHandle.
// tests/runtime/python pins them.
#ifndef COMPOSITE_RUNTIME_PYTHON_EAGER_TENSORS_H_
#define COMPOSITE_RUNTIME_PYTHON_EAGER_TENSORS_H_

#include "absl/status/status.h"
#include "composite/runtime/base/python_abi.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
class EagerContext;
}  // namespace tensorflow

namespace composite {

// Finds TensorFlow's functions, which all below call; FailedPrecondition if they are not there.
absl::Status FindEagerTensors();

// The tensor of an eager tensor, which lives as long as the object does and has another owner, too.
// Null, without an error, for anything else, and for what is not in the memory of this host. It
// waits for a tensor that is not there yet: only where ops run at once there is none.
const tensorflow::Tensor* TensorIn(PyObject* object);

// An eager tensor in the memory of this host. Null, with Python's error set, if there is no memory.
Object EagerTensorOf(tensorflow::Tensor tensor, tensorflow::EagerContext* context);

// The capsule of Python's eager context if TensorFlow would only run an op that is called now, and
// record it: in this process, on the device that it chooses, at once, with no callback or log to
// tell. `here`: what the context has for this thread. Null if it would do more, or, with Python's
// error set, if these have not what they should.
Object CapsuleWhereOpsOnlyRun(PyObject* context, PyObject* here);

// The eager context in such a capsule. Null, with Python's error set, if it is none.
tensorflow::EagerContext* EagerContextIn(PyObject* capsule);

// Whether a tape or a forward accumulator may record what is called now. False, with Python's error
// set, if that is not to be known.
bool IsRecorded();

// Has tapes and accumulators record a call of an op. `attrs`: a tuple of names and values; `inputs`
// and `results`: a tuple and a list. False with Python's error set.
bool Record(PyObject* here, PyObject* op_name, PyObject* inputs, PyObject* attrs,
            PyObject* results);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PYTHON_EAGER_TENSORS_H_
