#include "composite/runtime/program/signature.h"

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {

using tensorflow::AttrSlice;
using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::OpDef;

absl::StatusOr<FlatArg> Flatten(const OpDef::ArgDef& arg, AttrSlice attrs) {
  FlatArg flat{arg.name(), !arg.number_attr().empty() || !arg.type_list_attr().empty(), {}};
  if (!arg.type_list_attr().empty()) {
    TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(attrs, arg.type_list_attr(), &flat.types));
    return flat;
  }
  DataType type = arg.type();
  int64_t count = 1;
  if (!arg.type_attr().empty()) {
    TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(attrs, arg.type_attr(), &type));
  }
  if (!arg.number_attr().empty()) {
    TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(attrs, arg.number_attr(), &count));
  }
  if (count < 0 || count > kMostTensors) {
    return absl::InvalidArgumentError(absl::StrCat(arg.number_attr(), " is ", count));
  }
  flat.types.assign(count, type);
  return flat;
}

absl::StatusOr<std::vector<FlatArg>> Flatten(
    const google::protobuf::RepeatedPtrField<OpDef::ArgDef>& args, AttrSlice attrs) {
  std::vector<FlatArg> flat;
  for (const OpDef::ArgDef& arg : args) {
    TF_ASSIGN_OR_RETURN(FlatArg next, Flatten(arg, attrs));
    flat.push_back(std::move(next));
  }
  return flat;
}

std::vector<std::string> FlatNames(const std::vector<FlatArg>& args) {
  std::vector<std::string> names;
  absl::flat_hash_set<std::string> taken;
  auto add = [&](std::string name) {
    while (!taken.insert(name).second) name += "_";
    names.push_back(std::move(name));
  };
  for (const FlatArg& arg : args) {
    if (!arg.is_list) add(arg.name);
    for (size_t i = 0; arg.is_list && i < arg.types.size(); ++i) {
      add(absl::StrCat(arg.name, "_", i));
    }
  }
  return names;
}

std::vector<DataType> FlatTypes(const std::vector<FlatArg>& args) {
  std::vector<DataType> types;
  for (const FlatArg& arg : args) types.insert(types.end(), arg.types.begin(), arg.types.end());
  return types;
}

absl::StatusOr<tensorflow::NodeDef> CompleteAttrs(const OpDef& op_def, AttrSlice attrs) {
  tensorflow::NodeDef complete;
  complete.set_op(op_def.name());
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    const AttrValue* value = attrs.Find(attr.name());
    if (value == nullptr && attr.has_default_value()) value = &attr.default_value();
    if (value == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(op_def.name(), ": attribute '", attr.name(), "' is missing"));
    }
    if (absl::Status status = tensorflow::ValidateAttrValue(*value, attr); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(op_def.name(), ": ", status.message()));
    }
    (*complete.mutable_attr())[attr.name()] = *value;
  }
  return complete;
}

}  // namespace composite
