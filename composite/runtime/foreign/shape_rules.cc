#include "composite/runtime/foreign/shape_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {

using tensorflow::AttrSlice;
using tensorflow::shape_inference::InferenceContext;

template <typename Get>
absl::Status ShapeRules::ReadBy(const Get& get) {
  std::vector<tensorflow::DataType> in, out;
  TF_RETURN_IF_ERROR(get("shape_of", &shape_of));
  TF_RETURN_IF_ERROR(get("shapes", &shapes));
  TF_RETURN_IF_ERROR(get("Tin", &in));
  TF_RETURN_IF_ERROR(get("Tout", &out));
  int given = 0;  // the shapes among the inputs, where they are apart
  if (get(kGivenAttr, &given).ok()) {
    in.insert(in.end(), given, tensorflow::DT_INT64);
  } else {
    TF_RETURN_IF_ERROR(get("returns", &returns));
  }
  if (shape_of.empty()) shape_of.assign(out.size(), returns || !shapes.empty() ? kStated : 0);
  if (shapes.empty()) shapes.resize(out.size());
  return Check(in, out.size());
}

absl::Status ShapeRules::Read(const AttrSlice& attrs) {
  return ReadBy(
      [&](const char* name, auto* value) { return tensorflow::GetNodeAttr(attrs, name, value); });
}

absl::Status ShapeRules::Read(InferenceContext* c) {
  return ReadBy([c](const char* name, auto* value) { return c->GetAttr(name, value); });
}

absl::Status ShapeRules::Check(const std::vector<tensorflow::DataType>& in, size_t outputs) {
  if (shape_of.size() != outputs || shapes.size() != outputs) {
    return absl::InvalidArgumentError(absl::StrCat(outputs, " outputs, and shape_of has ",
                                                   shape_of.size(), " elements, shapes ",
                                                   shapes.size()));
  }
  const auto given = std::count(shape_of.begin(), shape_of.end(), kGiven);
  inputs = static_cast<int>(in.size() - given);
  for (int i = std::max(inputs, 0); i < static_cast<int>(in.size()); ++i) {
    if (in[i] == tensorflow::DT_INT64) continue;
    return absl::InvalidArgumentError(absl::StrCat("input ", i,
                                                   " is the shape of an output, and not int64 but ",
                                                   tensorflow::DataTypeString(in[i])));
  }
  for (size_t i = 0; i < outputs; ++i) {
    const int source = shape_of[i];
    const bool stated = source == kStated && (returns || shapes[i].IsFullyDefined());
    const bool of_input = source >= 0 && source < inputs;
    if (inputs >= 0 && (stated || of_input || source == kGiven)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("nothing says what shape output ", i, " has: shape_of is ", source,
                     ", shapes ", shapes[i].DebugString(), ", number of inputs ", in.size()));
  }
  return absl::OkStatus();
}

absl::Status InferShapes(const ShapeRules& rules, InferenceContext* c) {
  int given = rules.inputs;
  for (int i = 0; i < c->num_outputs(); ++i) {
    const int source = rules.shape_of[i];
    tensorflow::shape_inference::ShapeHandle shape;
    if (source == kGiven) {
      TF_RETURN_IF_ERROR(c->MakeShapeFromShapeTensor(given++, &shape));
    } else if (source == kStated) {
      TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(rules.shapes[i], &shape));
    } else {
      shape = c->input(source);
    }
    c->set_output(i, shape);
  }
  return absl::OkStatus();
}

}  // namespace composite
