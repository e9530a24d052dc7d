#include "composite/runtime/program/op_def_text.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/op_def_builder.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::OpDef;
using tensorflow::OpDefBuilder;
using tensorflow::OpRegistrationData;

// OpRegistry takes [A-Z][a-zA-Z0-9_.>]*; '.' and '>' have meanings of their own in TensorFlow.
bool IsOpName(absl::string_view name) {
  if (name.empty() || !absl::ascii_isupper(name[0])) return false;
  for (char c : name) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return true;
}

// Whether the declaration is accepted; the builder's own words otherwise.
absl::Status Try(const OpDefBuilder& builder) {
  OpRegistrationData data;
  TF_RETURN_IF_ERROR(builder.Finalize(&data));
  return tensorflow::ValidateOpDef(data.op_def);
}

// The builder collects all problems and reports none of their strings, so that the offending one is
// found by building up to it. `attrs` come first, since inputs and outputs refer to them.
absl::Status FindOffender(const std::string& name, absl::Span<const std::string> inputs,
                          absl::Span<const std::string> attrs,
                          absl::Span<const std::string> outputs, const absl::Status& whole) {
  OpDefBuilder builder(name);
  auto blame = [&](const char* list, const std::string& text, const absl::Status& status) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' in ", list, " of ", name, ": ", status.message()));
  };
  for (const std::string& text : attrs) {
    builder.Attr(text);
    if (absl::Status s = Try(builder); !s.ok()) return blame("attrs", text, s);
  }
  for (const std::string& text : inputs) {
    builder.Input(text);
    if (absl::Status s = Try(builder); !s.ok()) return blame("inputs", text, s);
  }
  for (const std::string& text : outputs) {
    builder.Output(text);
    if (absl::Status s = Try(builder); !s.ok()) return blame("outputs", text, s);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("The declaration of ", name, " is not valid: ", whole.message()));
}

}  // namespace

absl::Status CheckOpDef(const OpDef& op_def) {
  if (!IsOpName(op_def.name())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", op_def.name(),
        "' is no name for an op: it must be letters, digits and underscores, starting with an "
        "upper-case letter"));
  }
  TF_RETURN_IF_ERROR(tensorflow::ValidateOpDef(op_def));
  for (const OpDef::ArgDef& arg : op_def.input_arg()) {
    if (arg.is_ref()) {
      return absl::UnimplementedError(absl::StrCat("Input '", arg.name(), "' of ", op_def.name(),
                                                   " is a Ref; use a resource instead"));
    }
  }
  absl::flat_hash_set<absl::string_view> names;
  for (const OpDef::ArgDef& arg : op_def.input_arg()) names.insert(arg.name());
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    if (!names.insert(attr.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", attr.name(), "' of ", op_def.name(), " is declared twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<OpDef> ParseDeclaration(const std::string& name,
                                       absl::Span<const std::string> inputs,
                                       absl::Span<const std::string> attrs,
                                       absl::Span<const std::string> outputs) {
  OpDefBuilder builder(name);
  for (const std::string& text : attrs) builder.Attr(text);
  for (const std::string& text : inputs) builder.Input(text);
  for (const std::string& text : outputs) builder.Output(text);
  OpRegistrationData data;
  absl::Status status = builder.Finalize(&data);
  if (status.ok()) status = tensorflow::ValidateOpDef(data.op_def);
  if (!status.ok()) return FindOffender(name, inputs, attrs, outputs, status);
  TF_RETURN_IF_ERROR(CheckOpDef(data.op_def));
  return data.op_def;
}

}  // namespace composite
