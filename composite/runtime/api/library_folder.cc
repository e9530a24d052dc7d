#include "composite/runtime/api/library_folder.h"

#include <dlfcn.h>

#include <fstream>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "composite/runtime/base/checked_file.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/program/registry.h"
#include "google/protobuf/json/json.h"
#include "google/protobuf/struct.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// composite/manifest.py writes it, and has the same number.
constexpr int kFormat = 2;

struct Manifest {
  std::string name;
  std::string digest;  // of the library's file
  std::string tensorflow;
  int format = 0;
  std::vector<std::pair<std::string, std::string>> ops;  // name and digest of the body
};

const Value& Field(const Struct& content, const std::string& name) {
  auto it = content.fields().find(name);
  return it == content.fields().end() ? Value::default_instance() : it->second;
}

std::string FileOf(const Manifest& manifest) { return absl::StrCat("lib", manifest.name, ".so"); }

// What is not as it should be is left empty.
Manifest ReadManifest(const Struct& content) {
  Manifest manifest;
  manifest.name = Field(content, "name").string_value();
  manifest.format = static_cast<int>(Field(content, "format").number_value());
  manifest.tensorflow = Field(content, "tensorflow").string_value();
  const Struct& files = Field(content, "files").struct_value();
  manifest.digest = Field(files, FileOf(manifest)).string_value();
  for (const Value& op : Field(content, "ops").list_value().values()) {
    const Struct& facts = op.struct_value();
    manifest.ops.emplace_back(Field(facts, "op").string_value(),
                              Field(facts, "digest").string_value());
  }
  return manifest;
}

std::string Minor(absl::string_view version) {
  std::vector<absl::string_view> parts = absl::StrSplit(version, '.');
  if (parts.size() > 2) parts.resize(2);
  return absl::StrJoin(parts, ".");
}

absl::StatusOr<Manifest> CheckedManifest(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/manifest.json");
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat(folder, " holds no built library: it has no manifest.json"));
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Struct content;
  absl::Status parsed = google::protobuf::json::JsonStringToMessage(text, &content);
  Manifest manifest = ReadManifest(content);
  if (!parsed.ok() || manifest.format == 0 || manifest.name.empty()) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: build the library again"));
  }
  if (manifest.format != kFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has format ", manifest.format, ", not ", kFormat, ": build it again"));
  }
  if (Minor(manifest.tensorflow) != Minor(COMPOSITE_TF_VERSION)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the library in ", folder, " was built for TensorFlow ", manifest.tensorflow, ", but ",
        COMPOSITE_TF_VERSION, " is running: build it again with this TensorFlow"));
  }
  if (absl::StrContains(manifest.name, '/')) {
    return absl::DataLossError(absl::StrCat(path, " names \"", manifest.name,
                                            "\", which is not a file of its own folder"));
  }
  return manifest;
}

absl::Status CheckConflicts(const std::string& folder, const Manifest& manifest) {
  for (const auto& [op, digest] : manifest.ops) {
    auto here = Registry::Global().Current(op);
    if (here.ok() && (*here)->digest != digest) {
      return absl::AlreadyExistsError(absl::StrCat(
          op, " of ", folder, " has another body than the one defined here at ", (*here)->place,
          ": build the library again from that source, or rename one of them"));
    }
  }
  return absl::OkStatus();
}

// Libraries by their digests. Held while one is loaded, so that no two of an op's bodies pass.
struct LoadedLibraries {
  ForkMutex mu;
  std::set<std::string> digests ABSL_GUARDED_BY(mu);
};

}  // namespace

absl::Status LoadLibraryFolder(const std::string& folder) {
  static auto* const loaded = new LoadedLibraries;
  TF_ASSIGN_OR_RETURN(Manifest manifest, CheckedManifest(folder));
  absl::MutexLock lock(loaded->mu);
  if (loaded->digests.count(manifest.digest) != 0) return absl::OkStatus();
  TF_RETURN_IF_ERROR(CheckConflicts(folder, manifest));
  TF_ASSIGN_OR_RETURN(CheckedFile file,
                      CheckedFile::Open(absl::StrCat(folder, "/", FileOf(manifest))));
  TF_RETURN_IF_ERROR(file.MakeExecutable());
  TF_RETURN_IF_ERROR(file.CheckDigest(manifest.digest));
  TF_ASSIGN_OR_RETURN(void* library, file.Map(RTLD_NOW | RTLD_LOCAL));
  // compiler/emit/registration.py has the same name.
  const std::string symbol = absl::StrCat("composite_library_", manifest.name, "_status");
  auto* status = reinterpret_cast<const char* (*)()>(dlsym(library, symbol.c_str()));
  if (status == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(folder, " has no function ", symbol));
  }
  if (*status() != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the ops of ", folder, " could not be registered: ", status()));
  }
  loaded->digests.insert(manifest.digest);
  return absl::OkStatus();
}

}  // namespace composite
