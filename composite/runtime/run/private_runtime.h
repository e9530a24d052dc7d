// A function runtime of our own, for calls that bring none: TensorFlow runs kernels so when it
// folds constants, while tracing and in grappler.
#ifndef COMPOSITE_RUNTIME_RUN_PRIVATE_RUNTIME_H_
#define COMPOSITE_RUNTIME_RUN_PRIVATE_RUNTIME_H_

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/function.h"

namespace composite {

// One for the process, on a CPU device of its own, made when first needed. The device runs on
// TensorFlow's own threads; nothing is started here.
absl::StatusOr<tensorflow::FunctionLibraryRuntime*> PrivateRuntime();

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_PRIVATE_RUNTIME_H_
