#include "composite/runtime/api/model_kernels.h"

#include <unistd.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/checked_file.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/base/sha256.h"
#include "composite/runtime/kernels/kernel_library.h"
#include "composite/runtime/kernels/kernel_record.h"
#include "composite/runtime/kernels/kernel_table.h"
#include "composite/runtime/kernels/machine.h"
#include "composite/runtime/program/function_digest.h"
#include "composite/runtime/program/function_versions.h"
#include "composite/runtime/regions/refused_nodes.h"
#include "composite/runtime/regions/region_options.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

std::string PathIn(const std::string& folder) { return absl::StrCat(folder, "/", kModelKernels); }

struct Description {
  GraphDef content;
  std::string digest;
};

absl::StatusOr<Description> Read(const std::string& folder, const std::string& digest) {
  const std::string path = PathIn(folder);
  TF_ASSIGN_OR_RETURN(const CheckedFile file, CheckedFile::Open(path));
  TF_ASSIGN_OR_RETURN(const std::string bytes, file.Read());
  Sha256 hash;
  hash.Update(bytes.data(), bytes.size());
  Description found{GraphDef(), hash.HexDigest()};
  const bool is_it = digest.empty() || digest == found.digest;
  if (!is_it || !found.content.ParseFromString(bytes)) {
    return absl::DataLossError(
        absl::StrCat(path,
                     " is not what was saved: it is damaged or was changed; accelerate the "
                     "model again"));
  }
  return found;
}

// The names of the functions that are versions now: regions, and what their loops run.
absl::flat_hash_set<std::string> Register(const FunctionDefLibrary& regions) {
  absl::flat_hash_set<std::string> known;
  const tensorflow::FunctionLibraryDefinition all(tensorflow::OpRegistry::Global(), regions);
  for (const FunctionDef& region : regions.function()) {
    const absl::Status status = RegisterFunction(ReachedFrom(all, region));
    if (status.ok()) {
      known.insert(region.signature().name());
    } else {
      LOG(WARNING) << "Composite: a region of a saved model is compiled anew: " << status.message();
    }
  }
  return known;
}

absl::Status Install(const std::string& folder, KernelRecord of_model) {
  InstalledKernel kernel{std::move(of_model), nullptr, {}, nullptr, nullptr};
  KernelRecord& record = kernel.record;
  if (CheckMachine(record).ok()) {
    if (absl::StrContains(record.library, '/')) {
      return absl::DataLossError(absl::StrCat(folder, " has a kernel in \"", record.library,
                                              "\", which is not a file of its own"));
    }
    std::vector<std::string> names = {record.name};
    for (size_t i = 0; i < record.packed.size(); ++i) names.push_back(record.PackerName(i));
    record.library = absl::StrCat(folder, "/", record.library);
    TF_ASSIGN_OR_RETURN(kernel.packers, LoadKernel(record.library, record.library_sha256, names,
                                                   KernelOrigin::kTrusted));
    kernel.function = kernel.packers.front();
    kernel.packers.erase(kernel.packers.begin());
  }
  // The table keeps the reason why one for another machine is refused, for explain.
  const absl::Status status = KernelTable::Global().Install(std::move(kernel));
  return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
}

void RefuseOne(const NodeDef& refusal) {
  auto nodes = refusal.attr().find(kRefusedNodes);
  if (nodes == refusal.attr().end()) return;
  for (const std::string& node : nodes->second.list().s()) RefuseNode(refusal.name(), node);
}

// Digests of the descriptions whose kernels are installed. Held while one is loaded.
struct LoadedKernels {
  ForkMutex mutex;
  std::set<std::string> digests ABSL_GUARDED_BY(mutex);
};

}  // namespace

void Refuse(const GraphDef& refusals) {
  for (const NodeDef& node : refusals.node()) {
    if (node.op() == kRefusedOp) RefuseOne(node);
  }
}

GraphDef Refusals() {
  GraphDef refusals;
  for (const std::string& region : RegionsWithRefusedNodes()) {
    NodeDef* refusal = refusals.add_node();
    refusal->set_op(kRefusedOp);
    refusal->set_name(region);
    auto* nodes = (*refusal->mutable_attr())[kRefusedNodes].mutable_list();
    for (std::string& node : RefusedNodes(region)) nodes->add_s(std::move(node));
  }
  return refusals;
}

bool IsModelKernels(const std::string& folder) { return access(PathIn(folder).c_str(), F_OK) == 0; }

absl::Status LoadModelKernels(const std::string& folder, const std::string& digest,
                              NativeCode native_code) {
  static auto* const loaded = new LoadedKernels;  // never destroyed: threads may outlive main
  TF_ASSIGN_OR_RETURN(const Description description, Read(folder, digest));
  Refuse(description.content);
  if (native_code == NativeCode::kNo) return absl::OkStatus();
  absl::MutexLock lock(loaded->mutex);
  if (loaded->digests.count(description.digest) != 0) return absl::OkStatus();
  const absl::flat_hash_set<std::string> regions = Register(description.content.library());
  for (const NodeDef& node : description.content.node()) {
    if (node.op() == kRefusedOp) continue;
    absl::StatusOr<KernelRecord> record = ParseKernelRecord(node);
    if (!record.ok()) {
      LOG(WARNING) << "Composite: kernel " << node.name() << " in " << folder
                   << " is not used: " << record.status().message();
    } else if (regions.contains(record->program)) {
      TF_RETURN_IF_ERROR(Install(folder, *std::move(record)));
      NoteKernelsOfRegions();
    }
  }
  loaded->digests.insert(description.digest);
  return absl::OkStatus();
}

}  // namespace composite
