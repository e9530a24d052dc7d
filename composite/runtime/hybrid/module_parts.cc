#include "composite/runtime/hybrid/module_parts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/hybrid/transfer.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {

absl::StatusOr<const HybridPart*> ModuleParts::Find(absl::string_view digest,
                                                    const tvm_abi::Any& graph) {
  absl::MutexLock lock(mu_);
  const auto known = parts_.find(digest);
  if (known != parts_.end()) return known->second.get();
  TF_ASSIGN_OR_RETURN(std::unique_ptr<HybridPart> made, Make(graph, Handles::kPassed));
  return parts_.emplace(std::string(digest), std::move(made)).first->second.get();
}

absl::StatusOr<ModuleParts::Tensors> ModuleParts::Kept(
    absl::string_view digest, const tvm_abi::Any& graph,
    absl::FunctionRef<absl::StatusOr<Tensors>()> inputs) {
  absl::MutexLock keeping(keeping_);
  const auto known = kept_.find(digest);
  if (known != kept_.end()) return known->second;
  TF_ASSIGN_OR_RETURN(const Tensors given, inputs());
  std::unique_ptr<HybridPart> part;
  {
    absl::MutexLock lock(mu_);
    TF_ASSIGN_OR_RETURN(part, Make(graph, Handles::kKept));
  }
  TF_ASSIGN_OR_RETURN(Tensors outputs, part->Run(given));
  return kept_.emplace(std::string(digest), std::move(outputs)).first->second;
}

absl::StatusOr<std::unique_ptr<HybridPart>> ModuleParts::Make(const tvm_abi::Any& graph,
                                                              Handles handles) {
  TF_ASSIGN_OR_RETURN(const tensorflow::Tensor content, ToTensorFlow(graph));
  const absl::string_view bytes(static_cast<const char*>(content.data()), content.TotalBytes());
  if (session_ == nullptr) {
    TF_ASSIGN_OR_RETURN(session_, NewHybridSession());
  }
  return HybridPart::Make(bytes, absl::StrCat("part", made_++), handles, session_);
}

}  // namespace composite
