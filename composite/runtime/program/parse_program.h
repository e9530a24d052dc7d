// From the serialized form of a program, a tensorflow.FunctionDefLibrary (function[0] is the op,
// the others are regions), to the program. All of it is checked here, once, so that the evaluator
// never meets a name that does not resolve.
#ifndef COMPOSITE_RUNTIME_PROGRAM_PARSE_PROGRAM_H_
#define COMPOSITE_RUNTIME_PROGRAM_PARSE_PROGRAM_H_

#include "absl/status/statusor.h"
#include "composite/runtime/program/program.h"
#include "tensorflow/core/framework/function.pb.h"

namespace composite {

// InvalidArgument, naming function, node and what is wrong with it, for anything malformed.
absl::StatusOr<Program> ParseProgram(const tensorflow::FunctionDefLibrary& library);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PROGRAM_PARSE_PROGRAM_H_
