#include "composite/runtime/expand/expansion.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {

absl::StatusOr<const tensorflow::FunctionBody*> Expansion::Body(const std::string& function) const {
  absl::MutexLock lock(mu_);
  std::shared_ptr<const tensorflow::FunctionBody>& body = bodies_[function];
  if (body != nullptr) return body.get();
  const tensorflow::FunctionDef* def = library->Find(function);
  if (def == nullptr) {
    return absl::InternalError(absl::StrCat(name, " refers to ", function, ", which is not there"));
  }
  std::unique_ptr<tensorflow::FunctionBody> made;
  TF_RETURN_IF_ERROR(
      tensorflow::FunctionDefToBodyHelper(*def, tensorflow::AttrSlice(), library.get(), &made));
  body = std::move(made);
  return body.get();
}

bool Expansion::Matches(absl::Span<const InputFact> facts) const { return Match(reads, facts); }

}  // namespace composite
