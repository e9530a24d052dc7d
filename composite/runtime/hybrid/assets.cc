#include "composite/runtime/hybrid/assets.h"

#include <stdlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/path.h"

namespace composite {
namespace {

constexpr char kAsset[] = "_composite_asset";  // ASSET of assets.py

absl::Status WriteFile(const std::string& folder, absl::string_view name,
                       const std::string& content, std::string* file) {
  tensorflow::Env* const env = tensorflow::Env::Default();
  TF_RETURN_IF_ERROR(env->CreateDir(folder));
  *file = tensorflow::io::JoinPath(folder, name);
  return tensorflow::WriteStringToFile(env, *file, content);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AssetFolder>> AssetFolder::Write(tensorflow::GraphDef* graph) {
  std::vector<tensorflow::NodeDef*> marked;
  for (tensorflow::NodeDef& node : *graph->mutable_node()) {
    if (node.attr().count(kAsset) != 0) marked.push_back(&node);
  }
  if (marked.empty()) return std::unique_ptr<AssetFolder>();
  const char* const named = getenv("TMPDIR");
  const std::string temporary = named != nullptr ? named : "/tmp";
  const absl::Status usable = tensorflow::Env::Default()->IsDirectory(temporary);
  if (!usable.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no folder for temporary files (TMPDIR): ", usable.message()));
  }
  std::string made = tensorflow::io::JoinPath(temporary, "composite-XXXXXX");
  if (mkdtemp(made.data()) == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot make the folder ", made));
  }
  std::unique_ptr<AssetFolder> folder(new AssetFolder(made));
  for (size_t k = 0; k < marked.size(); ++k) {
    auto& attrs = *marked[k]->mutable_attr();
    tensorflow::TensorProto* const value = attrs["value"].mutable_tensor();
    const std::string& path = attrs[kAsset].s();
    const absl::string_view name = tensorflow::io::Basename(path);
    if (value->string_val_size() != 1 || name.empty()) {
      return absl::InvalidArgumentError("a file of the module has no content or no name");
    }
    std::string file;
    TF_RETURN_IF_ERROR(WriteFile(tensorflow::io::JoinPath(folder->path_, absl::StrCat(k)), name,
                                 value->string_val(0), &file));
    value->set_string_val(0, file);
  }
  return folder;
}

AssetFolder::~AssetFolder() {
  int64_t files, folders;  // that are left, in a folder for temporary files
  tensorflow::Env::Default()->DeleteRecursively(path_, &files, &folders).IgnoreError();
}

}  // namespace composite
