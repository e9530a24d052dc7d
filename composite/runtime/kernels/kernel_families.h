// The groups of kernels of this process by op and attributes, and for how long they are kept.
//
// A group lives as long as a node holds it. One that no node holds is kept for the next node with
// its attributes; of these an op has a bounded number, since its attributes may have any number of
// values.
#ifndef COMPOSITE_RUNTIME_KERNELS_KERNEL_FAMILIES_H_
#define COMPOSITE_RUNTIME_KERNELS_KERNEL_FAMILIES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "composite/runtime/kernels/kernel_group.h"
#include "composite/runtime/program/op_version.h"
#include "composite/runtime/request/request_budget.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {

// What tells the kernels of a node from others with its attributes.
struct KernelKind {
  std::string device;      // the name of the node's device, see machine.h
  bool invariant = false;  // see Options
};

// The op, its attributes with their defaults, the program, the constants and the kind: what a
// request says of its group.
tensorflow::NodeDef Describe(const OpVersion& version, tensorflow::AttrSlice attrs,
                             const tensorflow::AttrValue* constants, const KernelKind& kind);

// The groups of a program with one set of attributes and one kind of kernels, which differ in the
// constants.
struct KernelFamily {
  std::shared_ptr<RequestBudget> budget;
  std::map<std::string, std::shared_ptr<KernelGroup>> groups;
  // Of built libraries, those that pack constants: for groups that come later.
  std::map<std::string, InstalledKernel> packing;  // by name
  // A library tells of its kernels once, when it is loaded: they are never let go.
  bool is_built = false;
  int64_t last_use = 0;
};

// Not thread-safe.
class KernelFamilies {
 public:
  // Families of one op that are kept although no node holds a group of theirs; now and then there
  // are twice as many.
  static constexpr size_t kIdle = 64;

  // The family of a node: `description` has all attributes of the op, and the kind. `dropped`
  // takes families that are let go for it, so that the caller destroys them without its lock.
  KernelFamily& Get(const OpVersion& version, const tensorflow::NodeDef& description,
                    std::vector<KernelFamily>* dropped);

  // The family of such a node if there is one, else null.
  const KernelFamily* Find(const OpVersion& version, const tensorflow::NodeDef& description) const;

  // Of a version's attributes, the one with the most values among the families that there are, and
  // how many; "" if none has several, or for a region, whose attributes follow from its function.
  std::pair<std::string, int> MostVaried(const OpVersion& version) const;

 private:
  struct Op {
    // But for a region, whose family has its own.
    std::shared_ptr<RequestBudget> budget = std::make_shared<RequestBudget>();
    std::map<std::string, KernelFamily> families;
    size_t sweep_at = 2 * kIdle;
  };

  // Lets go of idle families of the op but for those that were used last.
  static void Sweep(Op* op, std::vector<KernelFamily>* dropped);

  std::map<std::string, Op> ops_;
  int64_t clock_ = 0;  // counts uses
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_KERNEL_FAMILIES_H_
