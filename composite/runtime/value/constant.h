// Tensors from Python values: which dtype a number has, adopts, or may not take.
#ifndef COMPOSITE_RUNTIME_VALUE_CONSTANT_H_
#define COMPOSITE_RUNTIME_VALUE_CONSTANT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "composite/runtime/value/value.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace composite {

// The dtype that TensorFlow gives a Python value which nothing else decides: int32, float32, bool,
// string. For a list, that of its elements, float32 if ints and floats are mixed. DT_INVALID for
// what is no tensor (None, a dtype, ...).
tensorflow::DataType NaturalType(const Value& value);

// The dtype of the weak scalar that a number of Python's is: bool, int64 or double.
tensorflow::DataType WeakType(const Value& number);

// The dtype that a value already has and cannot change: of a tensor of the graph, or of the first
// one in a list. DT_INVALID if it has none.
tensorflow::DataType StrongType(const Value& value);

// Whether a value may become that dtype: ints become any number, floats only floating and complex,
// bool and string themselves. A constant array adopts a dtype as its elements would.
bool Adopts(const Value& value, tensorflow::DataType dtype);

// A number, string, known constant, or nested list of these. InvalidArgument when the value does
// not fit the dtype (300 in int8, 0.5 in int32), when lists are ragged, or the dtype has no
// numbers.
absl::StatusOr<tensorflow::Tensor> MakeConstant(const Value& value, tensorflow::DataType dtype);

// The elements of a real array as Python numbers; none for other dtypes.
std::vector<Value> ElementsOf(const tensorflow::Tensor& tensor);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VALUE_CONSTANT_H_
