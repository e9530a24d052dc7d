// Which inputs of an op XLA has to know the values of when it compiles a call.
#ifndef COMPOSITE_RUNTIME_XLA_XLA_CONSTANTS_H_
#define COMPOSITE_RUNTIME_XLA_XLA_CONSTANTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "composite/runtime/program/program.h"
#include "tensorflow/core/framework/function.pb.h"

namespace composite {

// The input args from which something in the body may be computed that an op of XLA takes as a
// constant: a shape, an axis, a number of rows. XLA asks for them by the op's name, before any
// attribute or shape is known, and compiles a function again for each value that they have; so an
// input counts for any attributes, but only if its value, not its shape, goes there.
std::vector<std::string> XlaConstantInputs(const Program& program);

// The arguments of function[0] for which that holds, by TensorFlow's own analysis.
absl::StatusOr<std::vector<int>> XlaConstantArguments(
    const tensorflow::FunctionDefLibrary& library);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_XLA_XLA_CONSTANTS_H_
