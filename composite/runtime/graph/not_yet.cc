#include "composite/runtime/graph/not_yet.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace composite {
namespace {

constexpr char kNotYetPayload[] = "composite/not_yet";

absl::Status WithMessage(const absl::Status& status, absl::string_view message) {
  absl::Status result(status.code(), message);
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

}  // namespace

absl::Status NotYet(absl::string_view fact) {
  absl::Status status =
      absl::FailedPreconditionError(absl::StrCat("not yet: ", fact, " is not known"));
  status.SetPayload(kNotYetPayload, absl::Cord(fact));
  return status;
}

bool IsNotYet(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) && status.GetPayload(kNotYetPayload).has_value();
}

absl::Status WithPrefix(const absl::Status& status, absl::string_view prefix) {
  return WithMessage(status, absl::StrCat(prefix, status.message()));
}

absl::Status WithSuffix(const absl::Status& status, absl::string_view suffix) {
  return WithMessage(status, absl::StrCat(status.message(), suffix));
}

}  // namespace composite
