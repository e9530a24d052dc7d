// A function runtime of our own, for calls that bring none: TensorFlow runs kernels so when it
// folds constants, while tracing and in grappler.
#ifndef COMPOSITE_RUNTIME_INSTANTIATE_PRIVATE_RUNTIME_H_
#define COMPOSITE_RUNTIME_INSTANTIATE_PRIVATE_RUNTIME_H_

#include "tensorflow/core/framework/function.h"

namespace composite {

// One for the process, made when first needed, on the device on which TensorFlow folds constants
// itself: it has one thread of its own, and leaves the pool of the process to the user's options.
tensorflow::FunctionLibraryRuntime* PrivateRuntime();

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_INSTANTIATE_PRIVATE_RUNTIME_H_
