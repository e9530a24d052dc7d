// Nodes and regions that somebody names, to have them inside or outside of regions.
#ifndef COMPOSITE_RUNTIME_REGIONS_SELECTION_H_
#define COMPOSITE_RUNTIME_REGIONS_SELECTION_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Each entry is an op, such as "Softmax"; "name:" and a shell pattern of nodes' names, in which *
// matches any characters; "region:" and the last digits of the name of a region's function;
// "node:", the name of a region's function, ":" and the name of a node in it; or "smaller:" and a
// number: the regions in which fewer ops compute.
class Selection {
 public:
  Selection() = default;
  explicit Selection(const std::vector<std::string>& entries);

  bool HasNode(const tensorflow::Node& node) const;
  bool HasRegion(absl::string_view function) const;
  // The nodes of a region's function, by their names in it.
  std::vector<std::string> NodesOf(absl::string_view function) const;
  // Whether an entry is about nodes; about regions.
  bool of_nodes() const { return !ops_.empty() || !patterns_.empty(); }
  bool of_regions() const { return !regions_.empty(); }
  int smaller_than() const { return smaller_than_; }

 private:
  absl::flat_hash_set<std::string> ops_;
  std::vector<std::string> patterns_, regions_;
  std::vector<std::pair<std::string, std::string>> nodes_;  // functions of regions, names in them
  int smaller_than_ = 0;
};

// Entries as a part of a function's name, in which not every character may be: "Softmax",
// "name-3Ahead-2F-2A". composite/acceleration/comparing.py writes them.
std::string Unescaped(absl::string_view entry);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_SELECTION_H_
