#include "composite/runtime/instantiate/inline_run.h"

#include <functional>
#include <utility>

namespace composite {

using tensorflow::FunctionLibraryRuntime;

FunctionLibraryRuntime::Options OptionsOf(tensorflow::OpKernelContext* context) {
  FunctionLibraryRuntime::Options options(context->step_id());
  options.cancellation_manager = context->cancellation_manager();
  options.collective_executor = context->collective_executor();
  options.step_container = context->step_container();
  options.stats_collector = context->stats_collector();
  return options;
}

std::function<void(std::function<void()>)>* InlineRunner() {
  static auto* const runner =
      new std::function<void(std::function<void()>)>([](std::function<void()> work) { work(); });
  return runner;
}

absl::Status RunInline(FunctionLibraryRuntime* runtime, FunctionLibraryRuntime::Options options,
                       const InstantiatedFunction& function,
                       tensorflow::CallFrameInterface* frame) {
  options.run_all_kernels_inline = true;
  // context->runner() would hand work to the pool whose thread this is, and then wait for it.
  options.runner = InlineRunner();
  return runtime->RunSync(std::move(options), function.handle(), frame);
}

}  // namespace composite
