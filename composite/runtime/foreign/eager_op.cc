#include "composite/runtime/foreign/eager_op.h"

#include <cstddef>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/foreign/call_op.h"
#include "composite/runtime/foreign/shape_rules.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::NodeDef;
using tensorflow::OpDef;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::shape_inference::InferenceContext;

// How many ops there are for eager calls: each takes some kilobytes.
constexpr size_t kMostEagerOps = 1024;

class EagerOpFactory : public tensorflow::kernel_factory::OpKernelFactory {
 public:
  explicit EagerOpFactory(NodeDef call) : call_(std::move(call)) {}
  OpKernel* Create(OpKernelConstruction* context) override {
    return new TvmCallOp(context, AttrSlice(call_));
  }

 private:
  const NodeDef call_;
};

// One argument for each dtype of a list.
absl::Status AddArguments(const NodeDef& call, const char* list, absl::string_view prefix,
                          google::protobuf::RepeatedPtrField<OpDef::ArgDef>* arguments) {
  tensorflow::DataTypeVector dtypes;
  TF_RETURN_IF_ERROR(GetNodeAttr(call, list, &dtypes));
  for (size_t i = 0; i < dtypes.size(); ++i) {
    OpDef::ArgDef* argument = arguments->Add();
    argument->set_name(absl::StrCat(prefix, i));
    argument->set_type(dtypes[i]);
  }
  return absl::OkStatus();
}

absl::Status RegisterEagerOp(const std::string& name, const NodeDef& call) {
  tensorflow::OpRegistry* const ops = tensorflow::OpRegistry::Global();
  const OpDef* called = nullptr;
  TF_RETURN_IF_ERROR(ops->LookUpOpDef(call.op(), &called));
  OpDef op;
  op.set_name(name);
  op.set_is_stateful(called->is_stateful());
  TF_RETURN_IF_ERROR(AddArguments(call, "Tin", "x", op.mutable_input_arg()));
  TF_RETURN_IF_ERROR(AddArguments(call, "Tout", "y", op.mutable_output_arg()));
  ShapeRules rules;
  TF_RETURN_IF_ERROR(rules.Read(AttrSlice(call)));
  ops->Register([op, rules](tensorflow::OpRegistrationData* data) {
    data->op_def = op;
    data->shape_inference_fn = [rules](InferenceContext* c) { return InferShapes(rules, c); };
    return absl::OkStatus();
  });
  TF_RETURN_IF_ERROR(ops->ProcessRegistrations());
  tensorflow::KernelDefBuilder cpu(name.c_str());
  cpu.Device(tensorflow::DEVICE_CPU);
  tensorflow::kernel_factory::OpKernelRegistrar(cpu.Build(), "TvmCallOp",
                                                std::make_unique<EagerOpFactory>(call));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> EagerOpFor(const NodeDef& call) {
  static auto* const mu = new ForkMutex;
  static auto* const names = new std::map<std::string, std::string>;
  absl::MutexLock lock(mu);
  std::string key;
  tensorflow::SerializeToStringDeterministic(call, &key);
  if (const auto known = names->find(key); known != names->end()) return known->second;
  if (names->size() == kMostEagerOps) return std::string();
  const std::string name = absl::StrCat("CompositeEagerTvmCall", names->size());
  TF_RETURN_IF_ERROR(RegisterEagerOp(name, call));
  (*names)[key] = name;
  return name;
}

}  // namespace composite
