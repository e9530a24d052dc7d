#include "composite/runtime/regions/function_regions.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::NameRangeMap;
using tensorflow::Node;
using tensorflow::NodeDef;

absl::StatusOr<NameRangeMap> OutputsOf(const Node& node) {
  NameRangeMap outputs;
  TF_RETURN_IF_ERROR(tensorflow::NameRangesForNode(node.attrs(), node.op_def(), nullptr, &outputs));
  return outputs;
}

// A value in a function's own words: "argument" or "node:output:index".
absl::StatusOr<std::string> Reference(const Value& value) {
  const auto& [node, index] = value;
  if (node->IsArg()) return node->name();
  TF_ASSIGN_OR_RETURN(const NameRangeMap outputs, OutputsOf(*node));
  for (const auto& [name, range] : outputs) {
    if (index >= range.first && index < range.second) {
      return absl::StrCat(node->name(), ":", name, ":", index - range.first);
    }
  }
  return absl::InternalError(absl::StrCat("node ", node->name(), " has no output ", index));
}

// What references to a region's results become.
class References {
 public:
  absl::Status Move(const Region& region) {
    const std::vector<Value>& results = region.function.results;
    for (size_t i = 0; i < results.size(); ++i) {
      TF_ASSIGN_OR_RETURN(const std::string was, Reference(results[i]));
      const std::string is = absl::StrCat(region.call.name(), ":output:", i);
      // "node:output" is another word for "node:output:0".
      if (absl::EndsWith(was, ":0")) moved_[was.substr(0, was.size() - 2)] = is;
      moved_[was] = is;
    }
    return absl::OkStatus();
  }

  void Update(std::string* reference) const {
    if (auto it = moved_.find(*reference); it != moved_.end()) *reference = it->second;
  }

 private:
  absl::flat_hash_map<std::string, std::string> moved_;
};

absl::StatusOr<FunctionDef> Replaced(const FunctionDef& function,
                                     const std::vector<Region>& regions) {
  References references;
  absl::flat_hash_set<std::string> inside;
  for (const Region& region : regions) {
    TF_RETURN_IF_ERROR(references.Move(region));
    for (const Node* node : region.nodes) inside.insert(node->name());
  }
  FunctionDef changed = function;
  changed.clear_node_def();
  for (const NodeDef& node : function.node_def()) {
    if (!inside.contains(node.name())) *changed.add_node_def() = node;
  }
  for (const Region& region : regions) {
    NodeDef* call = changed.add_node_def();
    *call = region.call;
    for (const Value& argument : region.function.arguments) {
      TF_ASSIGN_OR_RETURN(*call->add_input(), Reference(argument));
    }
  }
  for (NodeDef& node : *changed.mutable_node_def()) {
    for (std::string& input : *node.mutable_input()) references.Update(&input);
  }
  for (auto& [name, value] : *changed.mutable_ret()) references.Update(&value);
  return changed;
}

}  // namespace

absl::StatusOr<FunctionWithRegions> WithRegions(const FunctionDef& function,
                                                FunctionLibraryDefinition* library,
                                                const Selection& denied, MayJoin may_join) {
  std::unique_ptr<tensorflow::FunctionBody> body;
  TF_RETURN_IF_ERROR(tensorflow::FunctionDefToBodyHelper(
      function, tensorflow::AttrSlice(&function.attr()), library, &body));
  const std::vector<Region> regions = MakeRegions(body->graph, denied, may_join);
  TF_RETURN_IF_ERROR(AddFunctions(regions, library));
  TF_ASSIGN_OR_RETURN(FunctionDef changed, Replaced(function, regions));
  return FunctionWithRegions{std::move(changed), static_cast<int>(regions.size())};
}

}  // namespace composite
