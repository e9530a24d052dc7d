#include "composite/runtime/value/fold_array.h"

#include <utility>
#include <vector>

#include "composite/runtime/value/constant.h"
#include "composite/runtime/value/fold.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::Tensor;

bool IsReal(const Tensor& tensor) {
  return tensorflow::DataTypeIsFloating(tensor.dtype()) ||
         tensorflow::DataTypeIsInteger(tensor.dtype());
}

// A number first takes the array's dtype, as NumPy has it: 0.1 beside a float32 array is float32.
absl::StatusOr<std::vector<Value>> Operand(const Value& value, DataType dtype, int64_t count) {
  const Value number = value.as_bool() ? Value::Int(*value.as_bool() ? 1 : 0) : value;
  TF_ASSIGN_OR_RETURN(Tensor tensor, MakeConstant(number, dtype));
  std::vector<Value> elements = ElementsOf(tensor);
  if (value.as_constant() == nullptr) elements.resize(count, Value(elements[0]));
  return elements;
}

DataType ResultType(const Value& first, DataType operands, FoldBinaryFn fold) {
  if (first.as_bool() != nullptr) return tensorflow::DT_BOOL;
  const bool quotient = fold == &FoldTrueDiv && tensorflow::DataTypeIsInteger(operands);
  return quotient ? tensorflow::DT_DOUBLE : operands;
}

}  // namespace

bool CanFoldArrays(const Value& a, const Value& b) {
  const Tensor* x = a.as_constant();
  const Tensor* y = b.as_constant();
  if (x != nullptr && y != nullptr) {
    return IsReal(*x) && x->dtype() == y->dtype() && x->shape() == y->shape();
  }
  if (x != nullptr) return IsReal(*x) && b.is_number();
  return y != nullptr && IsReal(*y) && a.is_number();
}

absl::StatusOr<Value> FoldArrays(FoldBinaryFn fold, const Value& a, const Value& b) {
  const Tensor& array = a.as_constant() ? *a.as_constant() : *b.as_constant();
  if (array.NumElements() == 0) return Value::Constant(array);
  DataType dtype = array.dtype();
  const bool beside_float = a.as_float() != nullptr || b.as_float() != nullptr;
  if (beside_float && tensorflow::DataTypeIsInteger(dtype)) dtype = tensorflow::DT_DOUBLE;
  TF_ASSIGN_OR_RETURN(std::vector<Value> x, Operand(a, dtype, array.NumElements()));
  TF_ASSIGN_OR_RETURN(std::vector<Value> y, Operand(b, dtype, array.NumElements()));
  Value::List results;
  for (size_t i = 0; i < x.size(); ++i) {
    TF_ASSIGN_OR_RETURN(Value result, fold(x[i], y[i]));
    results.push_back(std::move(result));
  }
  const DataType type = ResultType(results[0], dtype, fold);
  TF_ASSIGN_OR_RETURN(Tensor flat, MakeConstant(Value::MakeList(std::move(results)), type));
  Tensor shaped;
  if (!shaped.CopyFrom(flat, array.shape())) {
    return absl::InternalError("a folded array has another size");
  }
  return Value::Constant(std::move(shaped));
}

}  // namespace composite
