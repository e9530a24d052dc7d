// Files that a module has inside, see composite/hybrid/assets.py.
#ifndef COMPOSITE_RUNTIME_HYBRID_ASSETS_H_
#define COMPOSITE_RUNTIME_HYBRID_ASSETS_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace composite {

// The files of a graph, in a folder that goes with this object.
class AssetFolder {
 public:
  // Writes the files, and has the graph's constants be their paths. Null for a graph without.
  static absl::StatusOr<std::unique_ptr<AssetFolder>> Write(tensorflow::GraphDef* graph);
  ~AssetFolder();
  AssetFolder(const AssetFolder&) = delete;
  AssetFolder& operator=(const AssetFolder&) = delete;

 private:
  explicit AssetFolder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_HYBRID_ASSETS_H_
