// Whether a record has the fields that it may have, of the types that they have: record_tables.h.
#ifndef COMPOSITE_RUNTIME_BASE_RECORD_CHECK_H_
#define COMPOSITE_RUNTIME_BASE_RECORD_CHECK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "composite/runtime/base/record_tables.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

// InvalidArgument that names the field which is unknown, missing or of another type, and the record
// as `kind`. Attributes without a leading underscore are the op's own, and not looked at.
absl::Status CheckFields(absl::string_view kind, absl::Span<const RecordField> fields,
                         const tensorflow::NodeDef& record);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_BASE_RECORD_CHECK_H_
