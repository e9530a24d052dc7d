#include "composite/runtime/regions/library_regions.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "composite/runtime/base/op_traits.h"
#include "composite/runtime/checking/graph_check.h"
#include "composite/runtime/regions/function_regions.h"
#include "composite/runtime/variables/uses.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::FunctionDef;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;
using Names = absl::flat_hash_set<std::string>;

// Adds the functions that a node runs as a loop.
void AddRun(const std::string& op, AttrSlice attrs, Names* names) {
  if (TraitsOf(op).runs != Runs::kLoop) return;
  for (const char* attr : {"cond", "body"}) {
    const tensorflow::AttrValue* run = attrs.Find(attr);
    if (run != nullptr) names->insert(run->func().name());
  }
}

// Adds regions to one graph and to functions of a library, which stays as it was until the end: a
// region takes in what a loop ran before its body had regions.
class Adding {
 public:
  Adding(const DeniedOf& wanted, const Joining& joining, FunctionLibraryDefinition* library)
      : wanted_(wanted), joining_(joining), library_(*library) {}

  void ToGraph(const FunctionDef& function, const Names& denied, std::unique_ptr<Graph>* graph) {
    graph_ = graph->get();
    of_loops_ = OfLoops({});
    auto changed = Changed(function, denied, **graph);
    if (!changed.ok()) return Keep(function.signature().name(), changed.status());
    if (*changed == nullptr) return;
    *graph = *std::move(changed);
    graph_ = graph->get();
  }

  // Functions of loops after those that run these, and only of loops that no region has taken in.
  absl::Status ToFunctions() {
    Names next, all;
    for (const auto& [name, denied] : wanted_) all.insert(name);
    of_loops_.merge(OfLoops(all));
    absl::c_copy_if(all, std::inserter(next, next.end()),
                    [&](const std::string& name) { return !of_loops_.contains(name); });
    for (Names done; !next.empty();) {
      for (const auto& [name, denied] : wanted_) {
        if (next.contains(name)) ToFunction(name, denied);
      }
      done.insert(next.begin(), next.end());
      next = OfLoops(done);
      absl::erase_if(next, [&](const std::string& name) {
        return done.contains(name) || wanted_.count(name) == 0;
      });
    }
    for (const auto& [name, function] : changed_) {
      TF_RETURN_IF_ERROR(library_.ReplaceFunction(name, function));
    }
    return joining_.may_have_twice ? MarkFunctions() : absl::OkStatus();
  }

  int64_t count() const { return count_; }

 private:
  static Selection SelectionOf(const Names& entries) {
    return Selection({entries.begin(), entries.end()});
  }

  // A function of a loop may be prepared by itself later, where nobody sees who runs it.
  absl::Status MarkFunctions() {
    for (const auto& [name, denied] : wanted_) {
      const FunctionDef* function = library_.Find(name);
      if (function == nullptr) continue;
      FunctionDef marked = *function;
      (*marked.mutable_attr())[kMayHaveTwiceAttr].set_b(true);
      TF_RETURN_IF_ERROR(library_.ReplaceFunction(name, marked));
    }
    return absl::OkStatus();
  }

  // A graph with regions; null if there are none.
  absl::StatusOr<std::unique_ptr<Graph>> Changed(const FunctionDef& function, const Names& denied,
                                                 const Graph& graph) {
    TF_ASSIGN_OR_RETURN(auto copy, CopyOf(graph));
    TF_ASSIGN_OR_RETURN(const int regions,
                        AddRegions(function, SelectionOf(denied), joining_, &library_, copy.get()));
    count_ += regions;
    if (regions == 0) copy.reset();
    return copy;
  }

  void ToFunction(const std::string& name, const Names& denied) {
    auto record = library_.FindRecord(name);
    if (record == nullptr) return;
    auto made = WithRegions(record->fdef(), &library_, SelectionOf(denied), joining_);
    if (!made.ok()) return Keep(name, made.status());
    if (made->regions == 0) return;
    changed_[name] = std::move(made->function);
    count_ += made->regions;
  }

  static void Keep(const std::string& function, const absl::Status& why) {
    NoteInvalid(function, "regions", why);
  }

  // The functions that loops of the graph and of these functions run, as they are by now.
  Names OfLoops(const Names& functions) const {
    Names names;
    if (graph_ != nullptr) {
      for (const Node* node : graph_->op_nodes())
        AddRun(node->type_string(), node->attrs(), &names);
    }
    for (const std::string& name : functions) {
      const auto changed = changed_.find(name);
      auto record = library_.FindRecord(name);
      if (record == nullptr) continue;
      const FunctionDef& now = changed == changed_.end() ? record->fdef() : changed->second;
      for (const NodeDef& node : now.node_def()) AddRun(node.op(), AttrSlice(node), &names);
    }
    return names;
  }

  const DeniedOf& wanted_;
  const Joining joining_;
  FunctionLibraryDefinition& library_;
  const Graph* graph_ = nullptr;
  Names of_loops_;  // the functions that loops run, before they are in regions
  std::map<std::string, FunctionDef> changed_;
  int64_t count_ = 0;
};

}  // namespace

absl::StatusOr<int64_t> FormRegions(const DeniedOf& wanted, const Joining& joining,
                                    const FunctionDef* function, FunctionLibraryDefinition* library,
                                    std::unique_ptr<Graph>* graph) {
  if (wanted.empty()) return 0;
  Joining of_all = joining;
  of_all.may_have_twice = joining.writes_in_place && MayHaveTwice(function, *library);
  Adding adding(wanted, of_all, library);
  const auto own = function == nullptr ? wanted.end() : wanted.find(function->signature().name());
  if (own != wanted.end()) adding.ToGraph(*function, own->second, graph);
  TF_RETURN_IF_ERROR(adding.ToFunctions());
  return adding.count();
}

}  // namespace composite
