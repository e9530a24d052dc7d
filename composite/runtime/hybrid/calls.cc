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
  if (arguments.size() < 2) return Kept(absl::InvalidArgumentError("call_tf: no graph"));
  const absl::string_view digest = tvm_ffi::TextOf(arguments[0]);
  auto known = parts_.find(digest);
  if (known == parts_.end()) {
    const absl::StatusOr<Tensor> content = ToTensorFlow(arguments[1]);
    if (!content.ok()) return Kept(content.status());
    const absl::string_view bytes(static_cast<const char*>(content->data()), content->TotalBytes());
    absl::StatusOr<std::unique_ptr<HybridPart>> made = HybridPart::Make(bytes);
    if (!made.ok()) return Kept(made.status());
    known = parts_.emplace(std::string(digest), *std::move(made)).first;
  }
  return Kept(Run(*known->second, arguments.subspan(2)));
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

absl::StatusOr<tvm_ffi::Value> HybridCalls::Kept(absl::StatusOr<tvm_ffi::Value> answer) {
  if (!answer.ok()) failure_ = answer.status();
  return answer;
}

absl::Status HybridCalls::TakeFailure() { return std::exchange(failure_, absl::OkStatus()); }

}  // namespace composite
