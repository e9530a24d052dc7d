// Whether XLA is given a kernel for a node, or the node's expansion.
//
// A kernel that may refuse inputs at run time is none for XLA, which could not run the expansion
// instead: the worker does not give it out (composite/kernels/produce.py).
#ifndef COMPOSITE_RUNTIME_XLA_KERNEL_CHOICE_H_
#define COMPOSITE_RUNTIME_XLA_KERNEL_CHOICE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/kernels/kernel_group.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/program/op_version.h"
#include "composite/runtime/request/kernel_shapes.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {

// On a forward node of which a function has a saving forward, too (tensorflow/saving_forward.h).
inline constexpr char kHasSavingForwardAttr[] = "_composite_has_twin";

// A node that XLA compiles for the CPU, with the shapes of its inputs.
struct XlaNode {
  const OpVersion& version;
  tensorflow::AttrSlice attrs;
  const Signature& call;
  const Expansion& expansion;
};

struct XlaChoice {
  const InstalledKernel* kernel = nullptr;  // null: the expansion
  std::string why;                          // for people
  std::shared_ptr<KernelGroup> group;       // for as long as this lives, the kernel does
};

// For tests: each call that can have a kernel has it, whatever its times and its size.
std::atomic<bool>& XlaKernelsAreForced();

// When a wait that may last so long has to end; called before each wait.
using UntilWhen = std::function<absl::Time(absl::Duration most)>;

// The choice. `until`: the kernel is asked for and waited for, as long as the options say; without
// it, neither. With backend="tvm" an error where there is no kernel: FailedPrecondition, or
// InvalidArgument where the kernel is not as exact as the options want.
absl::StatusOr<XlaChoice> ChooseForXla(const XlaNode& node, const Options& options,
                                       const UntilWhen& until = nullptr);

// Asks for the kernel of a node that a compilation will come to, if it will wait for one. What is
// asked last is made first.
void AskForXla(const XlaNode& node, const Options& options);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_XLA_KERNEL_CHOICE_H_
