#include "composite/runtime/hybrid/description.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/base/cpu_level.h"
#include "google/protobuf/json/json.h"
#include "google/protobuf/struct.pb.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;
using tensorflow::PartialTensorShape;

constexpr int kFormat = 4;  // FORMAT of structure.py

const Value& Field(const Struct& fields, const char* name) {
  const auto found = fields.fields().find(name);
  return found == fields.fields().end() ? Value::default_instance() : found->second;
}

// One more than the largest index in a structure: how many values it has.
int Count(const Value& structure) {
  int count = 0;
  switch (structure.kind_case()) {
    case Value::kNumberValue:
      return static_cast<int>(structure.number_value()) + 1;
    case Value::kListValue:
      for (const Value& one : structure.list_value().values()) count = std::max(count, Count(one));
      return count;
    case Value::kStructValue:
      for (const auto& [name, one] : structure.struct_value().fields()) {
        count = std::max(count, Count(one));
      }
      return count;
    default:
      return 0;
  }
}

// Null is a shape, or a dim, that is not known.
absl::Status ShapeOf(const Value& dims, PartialTensorShape* shape) {
  if (dims.kind_case() != Value::kListValue) {
    *shape = PartialTensorShape();
    return absl::OkStatus();
  }
  std::vector<int64_t> sizes;
  for (const Value& dim : dims.list_value().values()) {
    const bool is_known = dim.kind_case() == Value::kNumberValue;
    sizes.push_back(is_known ? static_cast<int64_t>(dim.number_value()) : -1);
  }
  return PartialTensorShape::MakePartialShape(sizes.data(), static_cast<int>(sizes.size()), shape);
}

std::string Told(tensorflow::DataType dtype, const std::string& shape) {
  return absl::StrCat(tensorflow::DataTypeString(dtype), shape);
}

}  // namespace

absl::StatusOr<HybridDescription> HybridDescription::Parse(std::string json) {
  Struct fields;
  if (!google::protobuf::json::JsonStringToMessage(json, &fields).ok()) {
    return absl::InvalidArgumentError("what it says of itself is no JSON");
  }
  if (Field(fields, "format").number_value() != kFormat) {
    return absl::FailedPreconditionError(
        "the module was written by another version: compile the model again");
  }
  const std::string& isa = Field(fields, "isa").string_value();
  const std::string excluded = isa.empty() ? "" : ExcludedLevel(isa, LevelOfCpu());
  if (!excluded.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        excluded, ": compile the model here, or with COMPOSITE_ISA set to a lower level"));
  }
  HybridDescription made;
  made.name_ = Field(fields, "name").string_value();
  made.outputs_ = Count(Field(fields, "outputs"));
  for (const Value& one : Field(fields, "specs").list_value().values()) {
    const ListValue& pair = one.list_value();
    Spec spec;
    if (pair.values_size() != 2 ||
        !tensorflow::DataTypeFromString(pair.values(0).string_value(), &spec.dtype) ||
        !ShapeOf(pair.values(1), &spec.shape).ok()) {
      return absl::InvalidArgumentError("what it says of its inputs is not understood");
    }
    made.specs_.push_back(std::move(spec));
  }
  made.json_ = std::move(json);
  return made;
}

absl::Status HybridDescription::CheckInputs(absl::Span<const tensorflow::Tensor> inputs) const {
  if (inputs.size() != specs_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, " takes ", specs_.size(), " inputs, not ", inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Spec& spec = specs_[i];
    if (inputs[i].dtype() != spec.dtype || !spec.shape.IsCompatibleWith(inputs[i].shape())) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " of ", name_, " is ",
                       Told(inputs[i].dtype(), inputs[i].shape().DebugString()),
                       ", the module takes ", Told(spec.dtype, spec.shape.DebugString())));
    }
  }
  return absl::OkStatus();
}

}  // namespace composite
