// Registers composites: with TensorFlow, for which an op needs a shape function and kernels, and in
// the registry of the process.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_REGISTRATION_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_REGISTRATION_H_

#include "absl/status/status.h"
#include "tensorflow/core/framework/function.pb.h"

namespace composite {

// Makes a new op known to TensorFlow, or adds a version of a known one and makes it current.
// Registering the same digest again makes that version current and is otherwise nothing.
// InvalidArgument: a malformed program, or an op that the program calls is unknown.
// Or it composes a TensorFlow op that it does not fit, see CheckComposition.
// AlreadyExists: TensorFlow has an op of that name, or another place defines it, or the new
// definition has another signature; the message names both places. Thread-safe.
absl::Status RegisterProgram(const tensorflow::FunctionDefLibrary& program);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_REGISTRATION_H_
