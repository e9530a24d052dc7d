#include "composite/runtime/foreign/eager_only_op.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace composite {
namespace {

using tensorflow::OpDef;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;

class Factory : public tensorflow::kernel_factory::OpKernelFactory {
 public:
  explicit Factory(std::function<OpKernel*(OpKernelConstruction*)> make) : make_(std::move(make)) {}
  OpKernel* Create(OpKernelConstruction* context) override { return make_(context); }

 private:
  const std::function<OpKernel*(OpKernelConstruction*)> make_;
};

void AddArguments(const tensorflow::DataTypeVector& dtypes, const char* prefix,
                  google::protobuf::RepeatedPtrField<OpDef::ArgDef>* arguments) {
  for (size_t i = 0; i < dtypes.size(); ++i) {
    OpDef::ArgDef* argument = arguments->Add();
    argument->set_name(absl::StrCat(prefix, i));
    argument->set_type(dtypes[i]);
  }
}

}  // namespace

absl::Status Register(
    const EagerOnlyOp& op,
    std::function<absl::Status(tensorflow::shape_inference::InferenceContext*)> shapes,
    std::function<OpKernel*(OpKernelConstruction*)> make) {
  OpDef def;
  def.set_name(op.name);
  def.set_is_stateful(op.is_stateful);
  AddArguments(op.inputs, "x", def.mutable_input_arg());
  AddArguments(op.outputs, "y", def.mutable_output_arg());
  tensorflow::OpRegistry* const ops = tensorflow::OpRegistry::Global();
  ops->Register([def, shapes = std::move(shapes)](tensorflow::OpRegistrationData* data) {
    data->op_def = def;
    data->shape_inference_fn = shapes;
    return absl::OkStatus();
  });
  absl::Status status = ops->ProcessRegistrations();
  if (!status.ok()) return status;
  tensorflow::KernelDefBuilder cpu(op.name.c_str());
  cpu.Device(tensorflow::DEVICE_CPU);
  tensorflow::kernel_factory::OpKernelRegistrar(cpu.Build(), op.name,
                                                std::make_unique<Factory>(std::move(make)));
  return absl::OkStatus();
}

}  // namespace composite
