#include "composite/runtime/hybrid/assets.h"

#include <stdlib.h>

#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

namespace fs = std::filesystem;

constexpr char kAsset[] = "_composite_asset";  // ASSET of assets.py

absl::Status WriteFile(const fs::path& file, const std::string& content) {
  std::error_code error;
  fs::create_directory(file.parent_path(), error);
  std::ofstream stream(file, std::ios::binary);
  stream << content;
  stream.close();
  if (!stream) return absl::UnavailableError(absl::StrCat("cannot write ", file.string()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<AssetFolder>> AssetFolder::Write(tensorflow::GraphDef* graph) {
  std::vector<tensorflow::NodeDef*> marked;
  for (tensorflow::NodeDef& node : *graph->mutable_node()) {
    if (node.attr().count(kAsset) != 0) marked.push_back(&node);
  }
  if (marked.empty()) return std::unique_ptr<AssetFolder>();
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no folder for temporary files (TMPDIR): ", error.message()));
  }
  std::string made = (temporary / "composite-XXXXXX").string();
  if (mkdtemp(made.data()) == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot make the folder ", made));
  }
  std::unique_ptr<AssetFolder> folder(new AssetFolder(made));
  for (size_t k = 0; k < marked.size(); ++k) {
    auto& attrs = *marked[k]->mutable_attr();
    tensorflow::TensorProto* const value = attrs["value"].mutable_tensor();
    const fs::path name = fs::path(attrs[kAsset].s()).filename();
    if (value->string_val_size() != 1 || name.empty()) {
      return absl::InvalidArgumentError("a file of the module has no content or no name");
    }
    const fs::path file = folder->path_ / std::to_string(k) / name;
    TF_RETURN_IF_ERROR(WriteFile(file, value->string_val(0)));
    value->set_string_val(0, file.string());
  }
  return folder;
}

AssetFolder::~AssetFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

}  // namespace composite
