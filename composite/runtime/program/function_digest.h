// What functions compute, as a hash that their names hold.
#ifndef COMPOSITE_RUNTIME_PROGRAM_FUNCTION_DIGEST_H_
#define COMPOSITE_RUNTIME_PROGRAM_FUNCTION_DIGEST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"

namespace composite {

// 32 hex digits: the hash of function[0] and of what it reaches. Names of functions, the author's
// places and what TensorFlow notes beside functions and nodes are no part of it; the names of nodes
// are. An attribute that is left out, as in a saved model, counts with its default. `library` is
// not empty.
std::string FunctionDigest(tensorflow::FunctionDefLibrary library);

// A function of a library and what it reaches, that one first.
tensorflow::FunctionDefLibrary ReachedFrom(const tensorflow::FunctionLibraryDefinition& library,
                                           const tensorflow::FunctionDef& function);

// Adds a function to a library that has none of its name, nor any op.
absl::Status AddIfMissing(const tensorflow::FunctionDef& function,
                          tensorflow::FunctionLibraryDefinition* library);

// The hash that a canonical name "__composite_<stem>_<hash>" ends with; "" for any other name, such
// as those that TensorFlow gives the functions of a model that it loads.
absl::string_view DigestInName(absl::string_view name);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PROGRAM_FUNCTION_DIGEST_H_
