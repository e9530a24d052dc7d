#include "composite/runtime/regions/region_node.h"

#include "absl/algorithm/container.h"
#include "composite/runtime/base/op_traits.h"
#include "composite/runtime/kernels/dtypes.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace composite {
namespace {

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

bool HasKernelDtypes(const Node& node) {
  DtypeSet dtypes = DtypeSet::Of(node.input_types());
  for (tensorflow::DataType dtype : node.output_types()) {
    if (tensorflow::IsRefType(dtype)) return false;
    dtypes.Add(dtype);
  }
  return dtypes.IsIn(AbiDtypes());
}

bool HasFloats(const Node& node) {
  return absl::c_any_of(node.output_types(), tensorflow::DataTypeIsFloating);
}

}  // namespace

RegionRole RoleOf(const Node& node) {
  const OpTraits& traits = TraitsOf(node.type_string());
  if (traits.work == Work::kUnknown || node.op_def().is_stateful()) return RegionRole::kOutside;
  // A copy of a constant waits for nothing.
  if (node.IsConstant()) return IsSmall(node) ? RegionRole::kCopied : RegionRole::kOutside;
  const bool is_plain = traits.runs == Runs::kNothing && !HasControlEdge(node);
  if (!is_plain || !HasKernelDtypes(node)) return RegionRole::kOutside;
  // Whoever colocates a node says where it runs; a region has one place.
  if (node.attrs().Find("_class") != nullptr) return RegionRole::kOutside;
  switch (traits.work) {
    case Work::kMoves:
      return RegionRole::kMoves;
    case Work::kSums:
      return RegionRole::kSums;
    default:
      // Whole numbers and truths are sizes, places and masks: little work, as a rule.
      return HasFloats(node) ? RegionRole::kComputes : RegionRole::kMoves;
  }
}

}  // namespace composite
