#include "composite/runtime/tensorflow/op_kernel_registration.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/run/op_kernel.h"
#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::KernelDefBuilder;
using tensorflow::OpDef;

// An op of more type attributes than this has no kernels for each choice of those that are int32.
constexpr size_t kMostTypeAttrs = 4;

// Below TensorFlow's own kernels, which have 0: of those that match a node, the highest runs.
constexpr int32_t kFallbackPriority = -1;
// Below those of ours that take what they can in the device's memory.
constexpr int32_t kInHostMemoryPriority = -1;

void RegisterKernel(KernelDefBuilder* builder, const std::string& composite) {
  tensorflow::kernel_factory::OpKernelRegistrar(builder->Build(), "CompositeOp",
                                                NewOpKernelFactory(composite));
}

// The dtypes that the attribute allows, int32 left out.
std::vector<DataType> AllButInt32(const OpDef::AttrDef& attr) {
  std::vector<DataType> dtypes;
  for (int value = tensorflow::DT_FLOAT; tensorflow::DataType_IsValid(value); ++value) {
    const DataType dtype = static_cast<DataType>(value);
    bool allowed = !attr.has_allowed_values();
    for (int type : attr.allowed_values().list().type()) allowed |= type == value;
    if (allowed && dtype != tensorflow::DT_INT32) dtypes.push_back(dtype);
  }
  return dtypes;
}

bool IsType(const OpDef::AttrDef& attr) { return attr.type() == "type"; }
bool IsTypes(const OpDef::AttrDef& attr) { return attr.type() == "list(type)"; }

bool AllowsInt32(const OpDef::AttrDef& attr) {
  if (!IsType(attr) && !IsTypes(attr)) return false;
  if (!attr.has_allowed_values()) return true;
  for (int type : attr.allowed_values().list().type()) {
    if (type == tensorflow::DT_INT32) return true;
  }
  return false;
}

using Attrs = std::vector<const OpDef::AttrDef*>;

// On GPU devices. TensorFlow keeps int32 tensors of GPU functions in host memory, so the arguments
// that are int32 must lie there, all of them: an op that runs eagerly may have int32 in one of the
// memories only. Bit i of `int32s`: attrs[i] is int32.
void RegisterGpuKernel(const OpDef& op, const Attrs& attrs, unsigned int32s) {
  KernelDefBuilder builder(op.name().c_str());
  builder.Device(tensorflow::DEVICE_GPU);
  for (size_t i = 0; i < attrs.size(); ++i) {
    const bool int32 = (int32s >> i & 1) != 0;
    builder.TypeConstraint(
        attrs[i]->name().c_str(),
        int32 ? std::vector<DataType>{tensorflow::DT_INT32} : AllButInt32(*attrs[i]));
  }
  const auto in_host_memory = [&](const OpDef::ArgDef& arg) {
    for (size_t i = 0; i < attrs.size(); ++i) {
      if (arg.type_attr() == attrs[i]->name()) return (int32s >> i & 1) != 0;
    }
    return arg.type() == tensorflow::DT_INT32;
  };
  for (const auto* args : {&op.input_arg(), &op.output_arg()}) {
    for (const auto& arg : *args) {
      if (in_host_memory(arg)) builder.HostMemory(arg.name().c_str());
    }
  }
  RegisterKernel(&builder, op.name());
}

// The kernel for int32 among dtypes that a registration cannot tell from one another: in a list, or
// in one of many attributes. All tensors lie in host memory.
void RegisterGpuKernelInHostMemory(const OpDef& op) {
  KernelDefBuilder builder(op.name().c_str());
  builder.Device(tensorflow::DEVICE_GPU).Priority(kInHostMemoryPriority);
  for (const auto* args : {&op.input_arg(), &op.output_arg()}) {
    for (const auto& arg : *args) builder.HostMemory(arg.name().c_str());
  }
  RegisterKernel(&builder, op.name());
}

void RegisterGpuKernels(const OpDef& op) {
  Attrs attrs, lists;
  for (const auto& attr : op.attr()) {
    if (AllowsInt32(attr)) (IsTypes(attr) ? lists : attrs).push_back(&attr);
  }
  const bool any = attrs.size() <= kMostTypeAttrs;
  const unsigned choices = any ? 1u << attrs.size() : 1u;
  const bool in_host_memory = !any || !lists.empty();
  attrs.insert(attrs.end(), lists.begin(), lists.end());
  for (unsigned int32s = 0; int32s < choices; ++int32s) RegisterGpuKernel(op, attrs, int32s);
  if (in_host_memory) RegisterGpuKernelInHostMemory(op);
}

}  // namespace

absl::Status RegisterOpKernels(const std::string& op_name) {
  const OpDef* op = nullptr;
  absl::Status status = tensorflow::OpRegistry::Global()->LookUpOpDef(op_name, &op);
  if (!status.ok()) return status;
  KernelDefBuilder cpu(op_name.c_str());
  cpu.Device(tensorflow::DEVICE_CPU);
  RegisterKernel(&cpu, op_name);
  RegisterGpuKernels(*op);
  return absl::OkStatus();
}

void RegisterFunctionOpKernels(const OpDef& op) {
  KernelDefBuilder cpu(kFunctionOp);
  cpu.Device(tensorflow::DEVICE_CPU);
  RegisterKernel(&cpu, kFunctionOp);
  const std::vector<DataType> dtypes = AllButInt32(OpDef::AttrDef());
  KernelDefBuilder gpu(kFunctionOp);
  gpu.Device(tensorflow::DEVICE_GPU)
      .TypeConstraint("Tin", dtypes)
      .TypeConstraint("Tout", dtypes)
      .HostMemory("constants");
  RegisterKernel(&gpu, kFunctionOp);
  RegisterGpuKernelInHostMemory(op);
}

void RegisterFallbackKernel(const std::string& tf_op, const std::string& composition) {
  // A kernel for every device is asked only when none of the device itself matches: ours would
  // come before it.
  const tensorflow::KernelList kernels = tensorflow::GetRegisteredKernelsForOp(tf_op);
  for (const auto& kernel : kernels.kernel()) {
    if (kernel.device_type() == tensorflow::DEVICE_DEFAULT) return;
  }
  KernelDefBuilder cpu(tf_op.c_str());
  cpu.Device(tensorflow::DEVICE_CPU).Priority(kFallbackPriority);
  RegisterKernel(&cpu, composition);
}

}  // namespace composite
