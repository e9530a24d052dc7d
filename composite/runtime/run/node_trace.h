// What a node does, in the traces of TensorFlow's profiler: an event inside the node's own. Where
// no trace is taken, an atomic load and a branch.
#ifndef COMPOSITE_RUNTIME_RUN_NODE_TRACE_H_
#define COMPOSITE_RUNTIME_RUN_NODE_TRACE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "composite/runtime/kernels/decision_text.h"
#include "composite/runtime/run/composite_node.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tsl/profiler/lib/traceme.h"

namespace composite {

// Runs from its construction to its end. "kernel <name>" while a kernel is called.
class KernelTrace {
 public:
  KernelTrace(const tensorflow::OpKernel& kernel, const Decision& decision)
      : trace_(
            [&] {
              const KernelRecord& record = decision.choice.kernel->record;
              return tsl::profiler::TraceMeEncode(absl::StrCat("kernel ", record.name),
                                                  {{"node", kernel.name()},
                                                   {"op", kernel.type_string()},
                                                   {"strategy", record.strategy}});
            },
            tsl::profiler::TraceMeLevel::kInfo) {}

 private:
  tsl::profiler::TraceMe trace_;
};

// "expansion of <op>", with the reason why no kernel runs.
class ExpansionTrace {
 public:
  ExpansionTrace(const tensorflow::OpKernel& kernel, const CompositeNode& node,
                 const OpVersion& version, const Decision& decision)
      : trace_(
            [&] {
              const std::string why = decision.route == Route::kExpansion
                                          ? Sentence(decision, version, node.CallerAs(version))
                                          : "the kernel of the call could not be used";
              return tsl::profiler::TraceMeEncode(
                  absl::StrCat("expansion of ", kernel.type_string()),
                  {{"node", kernel.name()}, {"why", why}});
            },
            tsl::profiler::TraceMeLevel::kInfo) {}

 private:
  tsl::profiler::TraceMe trace_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_NODE_TRACE_H_
