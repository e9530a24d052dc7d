// The functions that an expansion may call.
#ifndef COMPOSITE_RUNTIME_INSTANTIATE_EXPANSION_LIBRARY_H_
#define COMPOSITE_RUNTIME_INSTANTIATE_EXPANSION_LIBRARY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "composite/runtime/expand/expansion.h"
#include "tensorflow/core/framework/function.h"

namespace composite {

// The expansion's own functions, and those of `caller`, the library that the node's function came
// from, if it names others: a function may be an attribute of the composite.
absl::StatusOr<std::shared_ptr<const tensorflow::FunctionLibraryDefinition>> LibraryFor(
    const tensorflow::FunctionLibraryDefinition& caller, const Expansion& expansion);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_INSTANTIATE_EXPANSION_LIBRARY_H_
