#include "composite/runtime/xla/xla_region.h"

#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/base/op_traits.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/xla/xla_constants.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/logging.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Node;

bool IsFusedByXla(const RegionFunction& region) {
  return absl::c_all_of(region.function.node_def(), [](const tensorflow::NodeDef& node) {
    const OpTraits& traits = TraitsOf(node.op());
    const bool maps = traits.work == Work::kMaps || traits.work == Work::kMoves;
    return node.op() == "Const" || (maps && traits.runs == Runs::kNothing);
  });
}

bool ChecksIndices(absl::string_view op) {
  static const auto& ops =
      *new absl::flat_hash_set<absl::string_view>{"Gather",
                                                  "GatherNd",
                                                  "GatherV2",
                                                  "ScatterNd",
                                                  "SparseSegmentMean",
                                                  "SparseSegmentSum",
                                                  "SparseSoftmaxCrossEntropyWithLogits",
                                                  "TensorScatterAdd",
                                                  "TensorScatterMax",
                                                  "TensorScatterMin",
                                                  "TensorScatterSub",
                                                  "TensorScatterUpdate",
                                                  "TopKV2",
                                                  "UnsortedSegmentMax",
                                                  "UnsortedSegmentMin",
                                                  "UnsortedSegmentProd",
                                                  "UnsortedSegmentSum"};
  return ops.contains(op);
}

// By whole numbers, of which one may be zero.
bool Divides(absl::string_view op) {
  static const auto& ops = *new absl::flat_hash_set<absl::string_view>{
      "Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"};
  return ops.contains(op);
}

bool ReadsShapeAlone(const Node& node) {
  const std::string& op = node.type_string();
  return op == "Shape" || op == "ShapeN" || op == "Size" || op == "Rank";
}

// Whether a value follows from values that are known when the function is called, not compiled.
bool DependsOnArguments(const Node& node) {
  std::vector<const Node*> pending = {&node};
  absl::flat_hash_set<const Node*> seen = {&node};
  while (!pending.empty()) {
    const Node* next = pending.back();
    pending.pop_back();
    if (next->IsArg() || TraitsOf(next->type_string()).runs != Runs::kNothing) return true;
    if (ReadsShapeAlone(*next)) continue;
    for (const Edge* edge : next->in_edges()) {
      if (!edge->IsControlEdge() && seen.insert(edge->src()).second) pending.push_back(edge->src());
    }
  }
  return false;
}

// Whether XLA has to know an argument of the region that depends on those of its caller.
bool HidesConstants(const RegionFunction& region) {
  std::vector<int> whole;
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    const Argument& argument = region.arguments[i];
    if (!tensorflow::DataTypeIsInteger(argument.dtype)) continue;
    if (DependsOnArguments(*argument.value.first)) whole.push_back(static_cast<int>(i));
  }
  if (whole.empty()) return false;
  tensorflow::FunctionDefLibrary library;
  *library.add_function() = region.function;
  for (const tensorflow::FunctionDef& loop : region.loops) *library.add_function() = loop;
  const auto constants = XlaConstantArguments(library);
  if (!constants.ok()) {
    VLOG(1) << "Composite: no region for XLA: " << constants.status();
    return true;
  }
  return absl::c_any_of(*constants, [&](int i) { return absl::c_linear_search(whole, i); });
}

}  // namespace

bool MayJoinXlaRegion(const Node& node) {
  const std::string& op = node.type_string();
  if (TraitsOf(op).draws || ChecksIndices(op)) return false;
  const bool is_whole =
      node.num_outputs() > 0 && tensorflow::DataTypeIsInteger(node.output_type(0));
  return !(is_whole && Divides(op));
}

bool MayBeXlaRegion(const RegionFunction& region) {
  return !IsFusedByXla(region) && !HidesConstants(region);
}

}  // namespace composite
