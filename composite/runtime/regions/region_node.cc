#include "composite/runtime/regions/region_node.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "composite/runtime/base/op_traits.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/program/function_versions.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/variables/update_node.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace composite {
namespace {

using tensorflow::AttrValue;
using tensorflow::Edge;
using tensorflow::Node;

constexpr int64_t kMostCopied = 16;  // elements

bool HasControlEdge(const Node& node) {
  for (const Edge* edge : node.in_edges()) {
    if (edge->IsControlEdge() && !edge->src()->IsSource()) return true;
  }
  for (const Edge* edge : node.out_edges()) {
    if (edge->IsControlEdge() && !edge->dst()->IsSink()) return true;
  }
  return false;
}

bool IsSmall(const Node& constant) {
  const tensorflow::TensorProto* value = nullptr;
  if (!tensorflow::TryGetNodeAttr(constant.attrs(), "value", &value)) return false;
  const tensorflow::TensorShape shape(value->tensor_shape());
  return value->dtype() != tensorflow::DT_STRING && shape.num_elements() <= kMostCopied;
}

// Whether a node gives a weight in another shape, or its shape: that takes no time.
bool IsOfWeight(const Node& node) {
  const Edge* of = nullptr;
  return (node.type_string() == "Shape" || IsView(node)) && node.input_edge(0, &of).ok() &&
         IsWeight(*of->src());
}

bool HasKernelDtypes(const Node& node) {
  DtypeSet dtypes = DtypeSet::Of(node.input_types());
  for (tensorflow::DataType dtype : node.output_types()) {
    if (tensorflow::IsRefType(dtype)) return false;
    dtypes.Add(dtype);
  }
  return AreInside(dtypes);
}

bool HasFloats(const Node& node) {
  return absl::c_any_of(node.output_types(), tensorflow::DataTypeIsFloating);
}

bool IsFree(const Node& node) {
  return !HasControlEdge(node) && HasKernelDtypes(node) && !IsColocated(node);
}

// Whether a node wants what the region will: an option that it does not have is the process's.
bool HasThreadsOptions(const Node& node) {
  const auto own = NodeOptions(node.attrs());
  if (!own.ok()) return false;
  const Options& wanted = ThreadOptions();
  const bool same_backend = own->backend == wanted.backend ||
                            (own->backend == Backend::kUnset && wanted.backend == Backend::kAuto);
  const bool same_numerics =
      own->numerics == wanted.numerics ||
      (own->numerics == Numerics::kUnset && wanted.numerics == Numerics::kFast);
  return same_backend && same_numerics;
}

// A body may ask for the value of whole numbers that a node gives it, an axis or a shape; inside of
// a region that is a tensor.
bool ReadsWholeConstant(const Node& node) {
  for (const Edge* edge : node.in_edges()) {
    if (edge->IsControlEdge() || !edge->src()->IsConstant()) continue;
    if (!tensorflow::DataTypeIsFloating(edge->src()->output_type(0))) return true;
  }
  return false;
}

RegionRole RoleOfComposite(const Node& node) {
  const AttrValue* version_of = node.attrs().Find(VersionAttr(node.type_string()));
  // An eager op has no version of its own; a region in a region would be compiled twice.
  if (version_of == nullptr || absl::StartsWith(VersionOf(version_of), kRegionPrefix)) {
    return RegionRole::kOutside;
  }
  if (node.attrs().Find(kSavingForwardAttr) != nullptr || IsAltered(node.attrs()) ||
      !HasThreadsOptions(node) || ReadsWholeConstant(node)) {
    return RegionRole::kOutside;
  }
  auto version = Registry::Global().Resolve(node.type_string(), node.attrs());
  if (!version.ok()) return RegionRole::kOutside;
  bool sums = false;
  for (const std::string& op : (*version)->unconditional_ops) {
    const Work work = TraitsOf(op).work;
    if (work == Work::kUnknown) return RegionRole::kOutside;
    sums |= work == Work::kSums;
  }
  if (sums) return RegionRole::kSums;
  return HasFloats(node) ? RegionRole::kComputes : RegionRole::kMoves;
}

// Of a node that runs no functions.
RegionRole RoleOfWork(const Node& node) {
  switch (TraitsOf(node.type_string()).work) {
    case Work::kUnknown:
      return RegionRole::kOutside;
    case Work::kMoves:
      return RegionRole::kMoves;
    case Work::kSums:
      return RegionRole::kSums;
    default:
      // Whole numbers and truths are sizes, places and masks: little work, as a rule.
      return HasFloats(node) ? RegionRole::kComputes : RegionRole::kMoves;
  }
}

bool KeepsAttr(const std::string& name, const AttrValue& value) {
  if (!absl::StartsWith(name, "_")) return true;
  if (name == kBackendAttr) return value.s() == Name(Backend::kTf);
  if (name == kNumericsAttr) {
    return value.s() == Name(Numerics::kStrict) || value.s() == Name(Numerics::kInvariant);
  }
  return name == kProgramAttr;
}

}  // namespace

bool IsView(const Node& node) {
  const std::string& op = node.type_string();
  if (op == "Identity" || op == "StopGradient" || op == "Squeeze") return true;
  const Edge* shape = nullptr;
  return (op == "ExpandDims" || op == "Reshape") && node.input_edge(1, &shape).ok() &&
         shape->src()->IsConstant();
}

bool IsWeight(const Node& node) {
  const Edge* of = nullptr;
  if (IsView(node) && node.input_edge(0, &of).ok()) return IsWeight(*of->src());
  return node.IsConstant() || node.type_string() == kReadOp ||
         node.type_string() == kReadToUpdateOp;
}

bool AreInside(const DtypeSet& dtypes) {
  static const DtypeSet inside = [] {
    DtypeSet known = AbiDtypes();
    known.Add(tensorflow::DT_VARIANT);
    return known;
  }();
  return dtypes.IsIn(inside);
}

bool IsColocated(const Node& node) { return node.attrs().Find("_class") != nullptr; }

tensorflow::NodeDef CopyOf(const Node& node, std::string name) {
  tensorflow::NodeDef copy;
  copy.set_op(node.type_string());
  copy.set_name(std::move(name));
  *copy.mutable_experimental_debug_info() = node.def().experimental_debug_info();
  for (const auto& [attr, value] : node.attrs()) {
    if (KeepsAttr(attr, value)) (*copy.mutable_attr())[attr] = value;
  }
  return copy;
}

RegionRole RoleOf(const Node& node) {
  if (node.op_def().is_stateful()) return RegionRole::kOutside;
  const OpTraits& traits = TraitsOf(node.type_string());
  if (traits.work == Work::kUnknown && IsFree(node) &&
      Registry::Global().Contains(node.type_string())) {
    return RoleOfComposite(node);
  }
  // A copy of a constant waits for nothing.
  if (node.IsConstant()) return IsSmall(node) ? RegionRole::kCopied : RegionRole::kOutside;
  if (IsOfWeight(node) && HasKernelDtypes(node)) return RegionRole::kCopied;
  return IsFree(node) ? RoleOfWork(node) : RegionRole::kOutside;
}

RegionRole RoleInLoop(const Node& node) {
  if (node.op_def().is_stateful() || !HasKernelDtypes(node)) return RegionRole::kOutside;
  if (node.IsConstant()) return IsSmall(node) ? RegionRole::kMoves : RegionRole::kOutside;
  return RoleOfWork(node);
}

}  // namespace composite
