// The one decision about a call: which kernel runs, or the expansion; what the just-in-time
// compiler is asked for; whether it will ever be another; and why.
//
// A pure function of values. The node's kernel carries it out (run/op_kernel.cc), the graph pass
// reads whether it is final, explain prints the reason (decision_text.h).
#ifndef COMPOSITE_RUNTIME_KERNELS_DECIDE_H_
#define COMPOSITE_RUNTIME_KERNELS_DECIDE_H_

#include <cstddef>

#include "composite/runtime/kernels/dtypes.h"
#include "composite/runtime/kernels/kernel_group.h"
#include "composite/runtime/kernels/machine.h"
#include "composite/runtime/kernels/options.h"

namespace composite {

// What must hold in a call for the kernels of a group: nothing, that some inputs never change, or
// that some variables have not been written to for many calls.
enum class Needs { kNothing, kConstants, kRest };

// What the decision reads of a node's groups and of its call. It reads no more than it must, since
// for a node that is running each of them is work.
class Snapshots {
 public:
  virtual ~Snapshots() = default;

  // The shapes of the call; null where some dim is not known.
  virtual const Signature* Call() = 0;
  // Of the groups, the most special first.
  virtual size_t size() = 0;
  virtual Needs NeedsOf(size_t i) = 0;
  // Null when the group has no say in this call. `must`: what the group knows now, even where the
  // node keeps to what it knew at its first call.
  virtual const KernelSnapshot* At(size_t i, bool must) = 0;
  // Whether ops are deterministic, so that the kernel of a call has to stay the same.
  virtual bool Deterministic() = 0;
};

// What the just-in-time compiler of this process can do for a node.
struct Compiler {
  bool lowers = false;                // every op that all calls of the body have
  DtypeSet dtypes = DtypeSet::All();  // that it computes in
  bool allowed = false;               // COMPOSITE_JIT
  bool running = false;               // now
};

// What is known of a call besides its shapes.
struct Caller {
  DtypeSet dtypes;  // of its inputs and outputs
  Compiler compiler;
  bool derived = false;    // no call of the user's, but what was derived from one
  bool measuring = false;  // by the worker, which would wait for itself
};

enum class Route {
  kExpansion,
  kKernel,   // choice.kernel, of the group
  kCompile,  // wait for a kernel of the group, then decide again
  kRefuse,   // raise
};

enum class Why {
  // Settled before any kernel is looked at.
  kBackendTf,
  kStrict,
  kDevice,
  kDtypes,
  // choice.kernel
  kKernel,
  kNotExact,
  // choice.slower
  kSlower,
  // shape_class, by its state
  kPending,
  kNotInstalled,
  kNotFaster,
  kNotCovered,
  kFailed,
  // No kernel, and nobody has asked for one.
  kUnchecked,
  kNoLowering,
  kNotCompiledDtypes,
  kJitOff,
  kNoWorker,
  kEmptyInput,
  kUnknownSize,
  kFirstCall,
  // No shapes, no group that has a say, or a node to measure without its kernel.
  kUnknownShapes,
  kNoGroup,
  kMeasuring,
};

struct Decision {
  Route route = Route::kExpansion;
  Why why = Why::kNoGroup;
  // The call runs its expansion, and nothing that it asks or waits for will change that.
  bool is_final = false;
  // Bit i: group i is asked for a kernel that covers the call.
  unsigned asks = 0;
  size_t group = 0;  // of the route
  // What the reason is about: the class, or the kernel of `choice`.
  const ShapeClass* shape_class = nullptr;
  Choice choice;
};

// The user's must is about the op that he calls, not about what is derived from it. That of a
// measurement is about the node that is measured.
Options OptionsOf(const Caller& caller, Options options);

Decision Decide(Snapshots& snapshots, const Caller& caller, const Options& options,
                const Device& device);

// Whether the graph pass puts the expansion in the node's place: the decision is final, and no
// input is empty. oneDNN's ops, which TF 2.21 rewrites graphs to on some machines, end the process
// when an inner product is empty; inside the node none are rewritten.
bool IsReplaced(const Decision& decision, Snapshots& snapshots);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_DECIDE_H_
