// Runs of functions to their end on the thread that asks for them.
#ifndef COMPOSITE_RUNTIME_INSTANTIATE_INLINE_RUN_H_
#define COMPOSITE_RUNTIME_INSTANTIATE_INLINE_RUN_H_

#include <functional>

#include "absl/status/status.h"
#include "composite/runtime/instantiate/instantiated_function.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

// What a function that runs inside of a kernel's call has in common with that call. It has no
// rendezvous.
tensorflow::FunctionLibraryRuntime::Options OptionsOf(tensorflow::OpKernelContext* context);

// Runs what it is given at once. It stays.
std::function<void(std::function<void()>)>* InlineRunner();

absl::Status RunInline(tensorflow::FunctionLibraryRuntime* runtime,
                       tensorflow::FunctionLibraryRuntime::Options options,
                       const InstantiatedFunction& function, tensorflow::CallFrameInterface* frame);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_INSTANTIATE_INLINE_RUN_H_
