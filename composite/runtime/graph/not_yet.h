// The third outcome of an evaluation: a fact that it needs is not known. And the author's place in
// the errors of an evaluation.
#ifndef COMPOSITE_RUNTIME_GRAPH_NOT_YET_H_
#define COMPOSITE_RUNTIME_GRAPH_NOT_YET_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace composite {

// FailedPrecondition "not yet: <fact> is not known".
absl::Status NotYet(absl::string_view fact);

// Whether the status is one of NotYet.
bool IsNotYet(const absl::Status& status);

// The same status with `prefix` before its message, payloads kept.
absl::Status WithPrefix(const absl::Status& status, absl::string_view prefix);
absl::Status WithSuffix(const absl::Status& status, absl::string_view suffix);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_GRAPH_NOT_YET_H_
