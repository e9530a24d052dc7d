#include "composite/runtime/api/request.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/record_check.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/program/signature.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::AttrValue;

// In records a negative dim is a symbol; here that means only that it is not known.
absl::Status ReadShape(tensorflow::TensorShapeProto proto, InputFact* fact) {
  for (auto& dim : *proto.mutable_dim()) {
    if (dim.size() < 0) dim.set_size(-1);
  }
  return tensorflow::PartialTensorShape::BuildPartialTensorShape(proto, &fact->shape);
}

absl::Status CheckCount(const char* what, int given, size_t inputs, const OpVersion& version) {
  if (given == 0 || given == static_cast<int>(inputs)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(version.op_name, " has ", inputs, " inputs, but ", given, " ", what));
}

}  // namespace

absl::StatusOr<CallRecord> ReadCall(const tensorflow::NodeDef& record) {
  CallRecord call;
  TF_RETURN_IF_ERROR(CheckFields("call", kCallFields, record));
  TF_ASSIGN_OR_RETURN(call.version, Registry::Global().Resolve(record.op(), AttrSlice(record)));
  TF_ASSIGN_OR_RETURN(tensorflow::NodeDef complete,
                      CompleteAttrs(call.version->op_def, AttrSlice(record)));
  TF_ASSIGN_OR_RETURN(std::vector<FlatArg> inputs,
                      Flatten(call.version->op_def.input_arg(), AttrSlice(complete)));
  for (tensorflow::DataType type : FlatTypes(inputs)) call.facts.push_back({type, {}, nullptr});
  if (const AttrValue* shapes = AttrSlice(record).Find(kInShapesField); shapes != nullptr) {
    const auto& list = shapes->list().shape();
    TF_RETURN_IF_ERROR(CheckCount("shapes", list.size(), call.facts.size(), *call.version));
    for (int i = 0; i < list.size(); ++i) TF_RETURN_IF_ERROR(ReadShape(list[i], &call.facts[i]));
  }
  if (const AttrValue* values = AttrSlice(record).Find(kConstantsField); values != nullptr) {
    const auto& list = values->list().tensor();
    TF_RETURN_IF_ERROR(CheckCount("constants", list.size(), call.facts.size(), *call.version));
    for (int i = 0; i < list.size(); ++i) {
      if (list[i].dtype() == tensorflow::DT_INVALID) continue;
      tensorflow::Tensor& value = call.constants.emplace_back();
      if (list[i].dtype() != call.facts[i].dtype || !value.FromProto(list[i])) {
        return absl::InvalidArgumentError(absl::StrCat("the constant of input ", i, " of ",
                                                       call.version->op_name, " does not parse"));
      }
      call.facts[i].constant = &value;
    }
  }
  return call;
}

}  // namespace composite
