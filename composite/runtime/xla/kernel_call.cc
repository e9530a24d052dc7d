#include "composite/runtime/xla/kernel_call.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "composite/runtime/base/python_abi.h"
#include "composite/runtime/xla/custom_call.h"
#include "composite/runtime/xla/kernel_handler.h"
#include "composite/runtime/xla/kernel_handles.h"
#include "tensorflow/compiler/jit/flags.h"
#include "tensorflow/compiler/tf2xla/shape_util.h"
#include "tensorflow/compiler/tf2xla/xla_compiler.h"
#include "tensorflow/compiler/tf2xla/xla_op_registry.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

// TensorFlow compiles with the GIL held where Python asks for what XLA makes of a function, as
// call_tf of JAX does: another process, or another XLA, may run that. And no thread of Python's
// could make a kernel meanwhile.
bool IsAskedForByPython() { return PyGILState_Check != nullptr && PyGILState_Check() != 0; }

}  // namespace

std::string WhyNoKernelCalls(const tensorflow::XlaOpKernelContext& context) {
  const tensorflow::XlaCompiler::Options& options = context.compiler()->options();
  if (options.device_type != tensorflow::DEVICE_CPU_XLA_JIT) {
    return absl::StrCat("XLA compiles for ", options.device_type.type_string(),
                        ", and its code calls kernels on the CPU alone");
  }
  if (options.device_allocator == nullptr || IsAskedForByPython()) {
    return "what is compiled may run in another process";
  }
  if (!tensorflow::GetMarkForCompilationPassFlags()->tf_xla_persistent_cache_directory.empty()) {
    return "what is compiled is kept for other processes (--tf_xla_persistent_cache_directory)";
  }
  return "";
}

bool SignatureOf(absl::Span<const InputFact> facts,
                 absl::Span<const tensorflow::Tensor* const> values, Signature* call) {
  for (size_t i = 0; i < facts.size(); ++i) {
    const tensorflow::PartialTensorShape& shape = facts[i].shape;
    if (!shape.IsFullyDefined() || shape.num_elements() == 0) return false;
    call->ranks.push_back(shape.dims());
    for (const auto& dim : shape) call->dims.push_back(dim.size);
    if (values[i] != nullptr) call->NoteValue(static_cast<int>(i), *values[i]);
  }
  return true;
}

bool SignatureForXla(tensorflow::XlaOpKernelContext* context, absl::Span<const InputFact> facts,
                     Signature* call) {
  std::vector<std::optional<tensorflow::Tensor>> known(facts.size());
  std::vector<const tensorflow::Tensor*> values;
  for (size_t i = 0; i < facts.size(); ++i) {
    known[i] = context->InputExpression(static_cast<int>(i)).constant_value();
    values.push_back(facts[i].constant != nullptr ? facts[i].constant
                     : known[i].has_value()       ? &*known[i]
                                                  : nullptr);
  }
  return SignatureOf(facts, values, call);
}

absl::Status CallKernelInXla(tensorflow::XlaOpKernelContext* context, const InstalledKernel& kernel,
                             bool counted) {
  tensorflow::DataTypeVector inputs, outputs;
  for (int i = 0; i < context->num_inputs(); ++i) inputs.push_back(context->input_type(i));
  for (int i = 0; i < context->num_outputs(); ++i) {
    outputs.push_back(context->expected_output_dtype(i));
  }
  TF_ASSIGN_OR_RETURN(const XlaKernel* kept, KeepForXla(kernel, inputs, outputs));
  if (kept->out_shapes.size() != outputs.size()) {
    return absl::InternalError(absl::StrCat("kernel ", kept->name, " has other outputs"));
  }
  CustomCall call;
  call.target = kXlaKernelTarget;
  call.attrs = absl::StrCat("{", kXlaHandle, " = ", QuotedForXla(kept->handle), ", ", kXlaCounted,
                            " = ", counted ? "true" : "false", "}");
  for (int i = 0; i < context->num_inputs(); ++i) {
    TF_ASSIGN_OR_RETURN(xla::Shape shape, context->InputXlaShape(i));
    call.operands.push_back(context->Input(i));
    call.operand_shapes.push_back(std::move(shape));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    tensorflow::TensorShape shape;
    TF_RETURN_IF_ERROR(tensorflow::TensorShape::BuildTensorShape(kept->out_shapes[i], &shape));
    xla::Shape made;
    TF_RETURN_IF_ERROR(tensorflow::TensorShapeToXLAShape(outputs[i], shape, &made));
    call.output_shapes.push_back(std::move(made));
  }
  const std::vector<xla::XlaOp> results = AddCustomCall(context->builder(), call);
  for (size_t i = 0; i < results.size(); ++i) {
    context->SetOutput(static_cast<int>(i), results[i]);
  }
  return context->builder()->first_error();
}

}  // namespace composite
