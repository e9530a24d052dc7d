#include "composite/runtime/xla_kernel.h"

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/body_shapes.h"
#include "composite/runtime/expand.h"
#include "composite/runtime/expansion_library.h"
#include "composite/runtime/registry.h"
#include "composite/runtime/xla_constants.h"
#include "tensorflow/compiler/tf2xla/const_analysis.h"
#include "tensorflow/compiler/tf2xla/xla_compiler.h"
#include "tensorflow/compiler/tf2xla/xla_context.h"
#include "tensorflow/compiler/tf2xla/xla_op_kernel.h"
#include "tensorflow/compiler/tf2xla/xla_op_registry.h"
#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"
#include "xla/hlo/builder/xla_builder.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::OpDef;
using tensorflow::Tensor;
using tensorflow::XlaCompiler;
using tensorflow::XlaExpression;
using tensorflow::XlaOpKernelContext;
using tensorflow::XlaOpRegistry;

// Larger inputs are no shapes, axes or sizes.
constexpr int64_t kLargestConstant = 1024;
constexpr char kAnyXlaOp[] = "AddV2";

// One node in one compilation.
class Lowering {
 public:
  Lowering(XlaOpKernelContext* context, AttrSlice attrs) : context_(context), attrs_(attrs) {}

  absl::Status Run(const std::string& op_name) {
    TF_ASSIGN_OR_RETURN(version_, Registry::Global().Resolve(op_name, attrs_));
    TF_RETURN_IF_ERROR(ReadInputs());
    TF_ASSIGN_OR_RETURN(std::shared_ptr<const Expansion> expansion, Expand());
    absl::Status status = Compile(*expansion);
    if (status.ok()) return status;
    // What XLA says of shapes that do not fit has neither the author's line nor the op.
    TF_ASSIGN_OR_RETURN(const tensorflow::FunctionBody* body, expansion->Body());
    absl::Status placed = BodyShapes(*expansion, *body, facts_).Run();
    if (absl::IsInvalidArgument(placed)) return placed;
    return absl::Status(status.code(), absl::StrCat(op_name, " (defined at ", version_->place,
                                                    "): ", status.message()));
  }

 private:
  absl::Status ReadInputs() {
    shapes_.resize(context_->num_inputs());
    facts_.resize(context_->num_inputs());
    constants_.resize(context_->num_inputs());
    for (int i = 0; i < context_->num_inputs(); ++i) {
      TF_ASSIGN_OR_RETURN(shapes_[i], context_->InputXlaShape(i));
      std::vector<int64_t> dims(shapes_[i].dimensions().begin(), shapes_[i].dimensions().end());
      for (size_t d = 0; d < dims.size(); ++d) {
        if (shapes_[i].is_dynamic_dimension(d)) dims[d] = -1;  // the size is a bound
      }
      facts_[i].dtype = context_->input_type(i);
      facts_[i].shape = tensorflow::PartialTensorShape(dims);
    }
    return absl::OkStatus();
  }

  // XLA folds a value to learn it, so that is done only when the evaluation needs one.
  absl::StatusOr<std::shared_ptr<const Expansion>> Expand() {
    auto expansion = GetExpansion(version_, attrs_, facts_);
    if (!IsNotYet(expansion.status())) return expansion;
    for (size_t i = 0; i < facts_.size(); ++i) {
      const int64_t elements = facts_[i].shape.num_elements();
      if (elements < 0 || elements > kLargestConstant) continue;
      TF_ASSIGN_OR_RETURN(facts_[i].constant, Constant(i));
    }
    return GetExpansion(version_, attrs_, facts_);
  }

  // The value of an input; null when XLA does not know it.
  absl::StatusOr<const Tensor*> Constant(int input) {
    if (!constants_[input].has_value()) {
      TF_ASSIGN_OR_RETURN(constants_[input], context_->InputExpression(input).ResolveConstant(
                                                 context_->compiler()->client()));
    }
    return constants_[input].has_value() ? &*constants_[input] : nullptr;
  }

  absl::Status Compile(const Expansion& expansion) {
    XlaCompiler::Options options = context_->compiler()->options();
    TF_ASSIGN_OR_RETURN(auto library, LibraryFor(*options.flib_def, expansion));
    options.flib_def = library.get();
    XlaCompiler compiler(options);
    tensorflow::NameAttrList function;
    function.set_name(expansion.name);
    TF_ASSIGN_OR_RETURN(std::vector<XlaCompiler::Argument> arguments,
                        Arguments(function, &compiler));
    XlaCompiler::CompileOptions call;
    call.is_entry_computation = false;
    XlaCompiler::CompilationResult result;
    TF_RETURN_IF_ERROR(compiler.CompileFunction(call, function, arguments, &result));
    return Call(arguments, result);
  }

  // What the expansion takes: the values that have to be constants, where they are known, and
  // parameters.
  absl::StatusOr<std::vector<XlaCompiler::Argument>> Arguments(
      const tensorflow::NameAttrList& function, XlaCompiler* compiler) {
    const tensorflow::FunctionBody* body = nullptr;
    TF_RETURN_IF_ERROR(compiler->FindFunctionBody(function, &body));
    std::vector<bool> must_be_constant(facts_.size(), false);
    TF_RETURN_IF_ERROR(tensorflow::BackwardsConstAnalysis(*body->graph, &must_be_constant, nullptr,
                                                          compiler->flib_runtime()));
    std::vector<XlaCompiler::Argument> arguments(facts_.size());
    for (size_t i = 0; i < facts_.size(); ++i) {
      XlaCompiler::Argument& argument = arguments[i];
      const XlaExpression& input = context_->InputExpression(i);
      argument.type = facts_[i].dtype;
      argument.shape = shapes_[i];
      argument.kind = XlaCompiler::Argument::kParameter;
      const bool known = input.kind() == XlaExpression::Kind::kConstant;
      if (!known && !must_be_constant[i]) continue;
      TF_ASSIGN_OR_RETURN(const Tensor* constant, Constant(i));
      if (constant == nullptr) continue;
      argument.kind = XlaCompiler::Argument::kConstant;
      argument.constant_value = *constant;
    }
    return arguments;
  }

  absl::Status Call(const std::vector<XlaCompiler::Argument>& arguments,
                    const XlaCompiler::CompilationResult& result) {
    std::vector<xla::XlaOp> operands;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].kind == XlaCompiler::Argument::kConstant) continue;
      operands.push_back(context_->Input(static_cast<int>(i)));
    }
    const xla::XlaOp tuple = xla::Call(context_->builder(), *result.computation, operands);
    int element = 0;  // constants are left out
    for (int i = 0; i < context_->num_outputs(); ++i) {
      if (result.outputs[i].is_constant) {
        context_->SetConstantOutput(i, result.outputs[i].constant_value);
      } else {
        context_->SetOutput(i, xla::GetTupleElement(tuple, element++));
      }
    }
    return absl::OkStatus();
  }

  XlaOpKernelContext* const context_;
  const AttrSlice attrs_;
  std::shared_ptr<const OpVersion> version_;
  std::vector<xla::Shape> shapes_;
  std::vector<InputFact> facts_;
  std::vector<std::optional<Tensor>> constants_;  // as far as they were asked for
};

class CompositeXlaOp : public tensorflow::XlaOpKernel {
 public:
  explicit CompositeXlaOp(tensorflow::OpKernelConstruction* context) : XlaOpKernel(context) {}

  void Compile(XlaOpKernelContext* context) override {
    // TensorFlow is built without exceptions: one that left this function would end the process.
    try {
      absl::Status status = Lowering(context, AttrSlice(def())).Run(type_string());
      if (!status.ok()) context->CtxFailure(status);
    } catch (const std::exception& error) {
      context->CtxFailure(absl::InternalError(absl::StrCat(type_string(), ": ", error.what())));
    }
  }
};

tensorflow::OpKernel* NewXlaKernel(tensorflow::OpKernelConstruction* context) {
  return new CompositeXlaOp(context);
}

bool HasKernel(const std::string& op_name, const std::string& device) {
  const tensorflow::KernelList kernels = tensorflow::GetRegisteredKernelsForOp(op_name);
  for (const auto& kernel : kernels.kernel()) {
    if (kernel.device_type() == device) return true;
  }
  return false;
}

// The types that both the attribute and XLA allow.
void AddAllowedTypes(const tensorflow::OpDef::AttrDef& attr, tensorflow::KernelDef* kernel) {
  auto* constraint = kernel->add_constraint();
  constraint->set_name(attr.name());
  for (const tensorflow::DataType type : tensorflow::kCpuAllTypes) {
    bool allowed = !attr.has_allowed_values();
    for (int one : attr.allowed_values().list().type()) allowed |= one == type;
    if (allowed) constraint->mutable_allowed_values()->mutable_list()->add_type(type);
  }
}

void RegisterWith(const OpDef& op_def, const std::string& device) {
  auto kernel = std::make_unique<tensorflow::KernelDef>();
  kernel->set_op(op_def.name());
  kernel->set_device_type(device);
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    if (attr.type() != "type") continue;
    AddAllowedTypes(attr, kernel.get());
    if (kernel->constraint().rbegin()->allowed_values().list().type().empty()) return;
  }
  tensorflow::kernel_factory::OpKernelRegistrar(kernel.release(), "CompositeXlaOp", NewXlaKernel);
}

}  // namespace

void RegisterXlaKernels(const Program& program) {
  const OpDef& op_def = program.op_def;
  auto registration = tensorflow::XlaOpRegistrationBuilder::Name(op_def.name());
  for (const std::string& name : XlaConstantInputs(program)) {
    registration.CompileTimeConstantInput(name);
  }
  tensorflow::XlaOpRegistrar(registration.Build(NewXlaKernel));
  // TensorFlow makes kernels of all registrations when XLA is first used, and of none that comes
  // later. Whether that was, its own ops show; the call then waits for a thread that is at it.
  for (const std::string& device : XlaOpRegistry::BackendNames()) {
    if (!HasKernel(kAnyXlaOp, device)) continue;
    XlaOpRegistry::RegisterCompilationKernels();
    if (!HasKernel(op_def.name(), device)) RegisterWith(op_def, device);
  }
}

}  // namespace composite
