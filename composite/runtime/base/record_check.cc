#include "composite/runtime/base/record_check.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace composite {
namespace {

using tensorflow::AttrValue;
using tensorflow::NodeDef;

// The names of the fields that a proto has set.
std::string Present(const google::protobuf::Message& message) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return absl::StrJoin(fields, " and ", [](std::string* out, const auto* field) {
    absl::StrAppend(out, field->name());
  });
}

// The type of a value as an OpDef would write it. An empty list is "list()".
std::string TypeOf(const AttrValue& value) {
  if (value.value_case() == AttrValue::VALUE_NOT_SET) return "empty";
  if (value.has_list()) return absl::StrCat("list(", Present(value.list()), ")");
  return Present(value);
}

bool Accepts(const RecordField& field, absl::string_view type) {
  return type == field.type || (type == "list()" && absl::StartsWith(field.type, "list("));
}

absl::Status Malformed(absl::string_view kind, const NodeDef& record, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(kind, record.name().empty() ? "" : " ",
                                                 record.name(), " of ", record.op(), ": ", why));
}

}  // namespace

absl::Status CheckFields(absl::string_view kind, absl::Span<const RecordField> fields,
                         const NodeDef& record) {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : record.attr()) {
    if (!absl::StartsWith(name, "_")) continue;
    const auto is_it = [&name = name](const RecordField& field) { return name == field.name; };
    const auto field = std::find_if(fields.begin(), fields.end(), is_it);
    if (field == fields.end()) {
      unknown.push_back(name);
      continue;
    }
    const std::string type = TypeOf(value);
    if (!Accepts(*field, type)) {
      return Malformed(kind, record, absl::StrCat(name, " is ", type, ", not ", field->type));
    }
  }
  if (!unknown.empty()) {
    std::sort(unknown.begin(), unknown.end());  // a proto's map has no order
    return Malformed(kind, record, absl::StrCat("unknown field ", absl::StrJoin(unknown, ", ")));
  }
  for (const RecordField& field : fields) {
    if (field.required && !record.attr().contains(field.name)) {
      return Malformed(kind, record, absl::StrCat(field.name, " (", field.type, ") is missing"));
    }
  }
  const auto version = record.attr().find(kVersionField);
  if (version != record.attr().end() && version->second.i() != kRecordVersion) {
    return Malformed(
        kind, record,
        absl::StrCat("its _version is ", version->second.i(), ", not ", kRecordVersion));
  }
  return absl::OkStatus();
}

}  // namespace composite
