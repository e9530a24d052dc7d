#include "composite/runtime/hybrid/calls.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/hybrid/transfer.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::Tensor;
using tvm_abi::Any;

absl::StatusOr<tvm_ffi::Value> Run(const HybridPart& part, absl::Span<const Any> arguments) {
  TF_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, ToTensorFlow(arguments));
  TF_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, part.Run(inputs));
  TF_ASSIGN_OR_RETURN(const TvmValues values, ToTvm(outputs));
  return tvm_ffi::CallGlobal("ffi.Array", values.all);
}

}  // namespace

absl::StatusOr<tvm_ffi::Value> HybridCalls::CallTf(absl::Span<const Any> arguments) {
  return Kept(Call(arguments, Handles::kPassed));
}

absl::StatusOr<tvm_ffi::Value> HybridCalls::CallTfOnce(absl::Span<const Any> arguments) {
  if (arguments.empty()) return Kept(absl::InvalidArgumentError("call_tf_once: no graph"));
  const absl::string_view digest = tvm_ffi::TextOf(arguments[0]);
  auto known = kept_.find(digest);
  if (known == kept_.end()) {
    absl::StatusOr<tvm_ffi::Value> made = Call(arguments, Handles::kKept);
    if (!made.ok()) return Kept(std::move(made));
    known = kept_.emplace(std::string(digest), *std::move(made)).first;
    parts_.erase(parts_.find(digest));
  }
  return tvm_ffi::Value::Shared(known->second.any().v_ptr);
}

absl::StatusOr<tvm_ffi::Value> HybridCalls::Require(absl::Span<const Any> arguments) {
  if (arguments.size() != 3) return Kept(absl::InvalidArgumentError("require: not 3 arguments"));
  const int64_t size = arguments[0].v_int64, least = arguments[1].v_int64;
  if (size >= least) return tvm_ffi::Value();
  const absl::string_view region = tvm_ffi::TextOf(arguments[2]);
  return Kept(absl::InvalidArgumentError(
      absl::StrCat("a dim of the call is ", size, ", and the kernel of region ", region, " takes ",
                   least, " or more: compile the model with deny=[\"region:", region, "\"]")));
}

absl::StatusOr<tvm_ffi::Value> HybridCalls::Call(absl::Span<const Any> arguments, Handles handles) {
  if (arguments.size() < 2) return absl::InvalidArgumentError("call_tf: no graph");
  TF_ASSIGN_OR_RETURN(const HybridPart* part, PartOf(arguments, handles));
  return Run(*part, arguments.subspan(2));
}

absl::StatusOr<HybridPart*> HybridCalls::PartOf(absl::Span<const Any> arguments, Handles handles) {
  const absl::string_view digest = tvm_ffi::TextOf(arguments[0]);
  const auto known = parts_.find(digest);
  if (known != parts_.end()) return known->second.get();
  TF_ASSIGN_OR_RETURN(const Tensor content, ToTensorFlow(arguments[1]));
  const absl::string_view bytes(static_cast<const char*>(content.data()), content.TotalBytes());
  if (session_ == nullptr) {
    TF_ASSIGN_OR_RETURN(session_, NewHybridSession());
  }
  TF_ASSIGN_OR_RETURN(std::unique_ptr<HybridPart> made,
                      HybridPart::Make(bytes, absl::StrCat("part", made_++), handles, session_));
  return parts_.emplace(std::string(digest), std::move(made)).first->second.get();
}

absl::StatusOr<tvm_ffi::Value> HybridCalls::Kept(absl::StatusOr<tvm_ffi::Value> answer) {
  if (!answer.ok()) failure_ = answer.status();
  return answer;
}

absl::Status HybridCalls::TakeFailure() { return std::exchange(failure_, absl::OkStatus()); }

}  // namespace composite
