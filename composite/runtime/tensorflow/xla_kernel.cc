#include "composite/runtime/tensorflow/xla_kernel.h"

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/authors_place.h"
#include "composite/runtime/base/op_traits.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/expand/body_shapes.h"
#include "composite/runtime/expand/expand.h"
#include "composite/runtime/graph/known_shape.h"
#include "composite/runtime/graph/not_yet.h"
#include "composite/runtime/instantiate/expansion_library.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/program/function_versions.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/xla/calls_ahead.h"
#include "composite/runtime/xla/compilation.h"
#include "composite/runtime/xla/kernel_call.h"
#include "composite/runtime/xla/kernel_choice.h"
#include "tensorflow/compiler/tf2xla/graph_compiler.h"
#include "tensorflow/compiler/tf2xla/xla_compilation_device.h"
#include "tensorflow/compiler/tf2xla/xla_compiler.h"
#include "tensorflow/compiler/tf2xla/xla_context.h"
#include "tensorflow/compiler/tf2xla/xla_op_kernel.h"
#include "tensorflow/compiler/tf2xla/xla_op_registry.h"
#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::OpDef;
using tensorflow::Tensor;
using tensorflow::XlaCompiler;
using tensorflow::XlaContext;
using tensorflow::XlaExpression;
using tensorflow::XlaOpKernelContext;
using tensorflow::XlaOpRegistry;

// "ops.py:12:5: AsString" of a node that XLA has no kernel for; empty when there is none.
std::string Unsupported(const Expansion& expansion, const tensorflow::DeviceType& device) {
  for (const std::string& name : expansion.library->ListFunctionNames()) {
    for (const tensorflow::NodeDef& node : expansion.library->Find(name)->node_def()) {
      if (expansion.library->Contains(node.op())) continue;
      if (FindKernelDef(device, node, nullptr, nullptr).ok()) continue;
      return absl::StrCat(AuthorsPlace(node), node.op());
    }
  }
  return "";
}

// "ops.py:12:5" of a write that may make a TensorArray grow, which XLA gives another place within
// the array; absent where there is none.
absl::optional<std::string> Growing(const Expansion& expansion) {
  for (const std::string& name : expansion.library->ListFunctionNames()) {
    for (const tensorflow::NodeDef& node : expansion.library->Find(name)->node_def()) {
      const auto grows = node.attr().find("resize_if_index_out_of_bounds");
      if (grows != node.attr().end() && grows->second.b()) return AuthorsPlace(node);
    }
  }
  return absl::nullopt;
}

// Has XLA look for constants among what a branch or a loop is given, as TensorFlow's Python has it
// do where it knows that XLA will compile; without, a shape from outside of a loop is none inside.
constexpr char kFindConstants[] = "_xla_propagate_compile_time_consts";

bool HasBodies(absl::string_view op) {
  const Runs runs = TraitsOf(op).runs;
  return runs == Runs::kBranch || runs == Runs::kLoop;
}

// What the expansion may call, with that mark in it.
absl::StatusOr<std::shared_ptr<const tensorflow::FunctionLibraryDefinition>> MarkedLibrary(
    const tensorflow::FunctionLibraryDefinition& caller, const Expansion& expansion) {
  TF_ASSIGN_OR_RETURN(auto plain, LibraryFor(caller, expansion));
  auto marked = std::make_shared<tensorflow::FunctionLibraryDefinition>(*plain);
  for (const std::string& name : expansion.library->ListFunctionNames()) {
    tensorflow::FunctionDef function = *expansion.library->Find(name);
    for (tensorflow::NodeDef& node : *function.mutable_node_def()) {
      if (HasBodies(node.op())) (*node.mutable_attr())[kFindConstants].set_b(true);
    }
    TF_RETURN_IF_ERROR(marked->ReplaceFunction(name, function));
  }
  return std::shared_ptr<const tensorflow::FunctionLibraryDefinition>(std::move(marked));
}

// One node in one compilation. A kernel is called in its place, or its expansion is built there, as
// if the author had written it.
class Lowering {
 public:
  Lowering(XlaOpKernelContext* context, AttrSlice attrs) : context_(context), attrs_(attrs) {}

  absl::Status Run(const tensorflow::NodeDef& node) {
    TF_ASSIGN_OR_RETURN(renamed_, LearnFunction(node, *context_->compiler()->options().flib_def));
    if (renamed_.has_value()) attrs_ = AttrSlice(*renamed_);
    TF_ASSIGN_OR_RETURN(version_, Registry::Global().Resolve(node.op(), attrs_));
    TF_RETURN_IF_ERROR(ReadInputs());
    auto expansion = ExpandWithLoops(renamed_.has_value() ? *renamed_ : node);
    if (IsNotYet(expansion.status())) return NotConstant(expansion.status());
    TF_RETURN_IF_ERROR(expansion.status());
    const std::string missing =
        Unsupported(**expansion, context_->compiler()->options().device_type);
    if (!missing.empty()) return NoKernel(missing);
    if (const auto growing = Growing(**expansion)) return MayGrow(*growing);
    const bool counted = attrs_.Find(kUncountedAttr) == nullptr;
    TF_ASSIGN_OR_RETURN(const bool is_called, CallKernel(**expansion, counted));
    if (is_called && counted) Count(GlobalStats().xla_kernel_nodes);
    if (is_called && counted) Count(GlobalStats().xla_nodes);
    if (is_called) return absl::OkStatus();
    TF_ASSIGN_OR_RETURN(const tensorflow::FunctionBody* body, (*expansion)->Body());
    absl::Status status = Build(**expansion, *body);
    if (status.ok() && counted) Count(GlobalStats().xla_nodes);
    if (!absl::IsInvalidArgument(status)) return status;
    // What XLA says of shapes that do not fit has neither the author's line nor the op.
    absl::Status placed = BodyShapes(**expansion, *body, facts_).Run();
    return absl::IsInvalidArgument(placed) ? placed : status;
  }

 private:
  absl::Status ReadInputs() {
    facts_.resize(context_->num_inputs());
    constants_.resize(context_->num_inputs());
    for (int i = 0; i < context_->num_inputs(); ++i) {
      facts_[i].dtype = context_->input_type(i);
      TF_ASSIGN_OR_RETURN(facts_[i].shape, ShapeOf(i));
    }
    return absl::OkStatus();
  }

  // XLA's types leave out what it keeps apart: strings, which are always constants, and resources.
  absl::StatusOr<tensorflow::PartialTensorShape> ShapeOf(int input) {
    const XlaExpression& value = context_->InputExpression(input);
    switch (value.kind()) {
      case XlaExpression::Kind::kConstant:
        return value.constant_value()->shape();
      case XlaExpression::Kind::kResource:
        return tensorflow::TensorShape();
      case XlaExpression::Kind::kXlaOp:
        break;
      default:
        return tensorflow::PartialTensorShape();
    }
    TF_ASSIGN_OR_RETURN(xla::Shape shape, context_->InputXlaShape(input));
    std::vector<int64_t> dims(shape.dimensions().begin(), shape.dimensions().end());
    for (size_t d = 0; d < dims.size(); ++d) {
      if (shape.is_dynamic_dimension(d)) dims[d] = -1;  // the size is a bound
    }
    return KnownShape(dims);
  }

  // XLA evaluates what it has built so far to learn a value, so that is done only when the
  // expansion depends on one.
  absl::StatusOr<std::shared_ptr<const Expansion>> Expand(AttrSlice attrs) {
    auto expansion = GetExpansion(version_, attrs, facts_);
    if (!IsNotYet(expansion.status())) return expansion;
    for (int i = 0; i < context_->num_inputs(); ++i) {
      const int64_t elements = facts_[i].shape.num_elements();
      if (elements < 0 || elements > kMostConstantElements) continue;
      const XlaExpression& input = context_->InputExpression(i);
      if (input.kind() == XlaExpression::Kind::kResource) continue;
      TF_ASSIGN_OR_RETURN(constants_[i], input.ResolveConstant(context_->compiler()->client()));
      if (constants_[i].has_value()) facts_[i].constant = &*constants_[i];
    }
    return GetExpansion(version_, attrs, facts_);
  }

  // With loops, which XLA compiles once, if the body can have them: it takes minutes for hundreds
  // of trips.
  absl::StatusOr<std::shared_ptr<const Expansion>> ExpandWithLoops(tensorflow::NodeDef node) {
    (*node.mutable_attr())[kLoopsAttr].set_b(true);
    auto expansion = Expand(AttrSlice(node));
    return expansion.ok() ? expansion : Expand(attrs_);
  }

  // Unimplemented: a cluster that TensorFlow made on its own then runs without XLA.
  absl::Status NotConstant(const absl::Status& status) const {
    return absl::UnimplementedError(
        absl::StrCat(status.message(), " when XLA compiles ", version_->op_name,
                     "; it has to follow from constants and shapes, or the call has to stand "
                     "outside of what is compiled with jit_compile=True"));
  }

  absl::Status NoKernel(const std::string& op) const {
    return absl::UnimplementedError(
        absl::StrCat(op, " is not supported by XLA, and ", version_->op_name, " (", version_->place,
                     ") comes to it here; call it outside of what is compiled with "
                     "jit_compile=True"));
  }

  absl::Status MayGrow(const std::string& place) const {
    return absl::UnimplementedError(absl::StrCat(
        place, "dynamic_size is not supported by XLA, whose arrays never grow, and ",
        version_->op_name, " (", version_->place,
        ") comes to a TensorArray with dynamic_size=True here; give it its size alone, or call the "
        "op outside of what is compiled with jit_compile=True"));
  }

  // Whether a kernel is called in the place of the node.
  absl::StatusOr<bool> CallKernel(const Expansion& expansion, bool counted) {
    Signature call;
    if (!WhyNoKernelCalls(*context_).empty() || !SignatureForXla(context_, facts_, &call)) {
      return false;
    }
    TF_ASSIGN_OR_RETURN(const Options own, NodeOptions(attrs_));
    TF_ASSIGN_OR_RETURN(const Options process, ProcessOptions());
    TF_ASSIGN_OR_RETURN(auto compilation, Compilation::Of(context_->compiler()));
    const auto until = [&](absl::Duration most) {
      AskForCalls(context_, compilation.get());
      return compilation->Until(most);
    };
    TF_ASSIGN_OR_RETURN(const XlaChoice choice,
                        ChooseForXla({*version_, attrs_, call, expansion}, own.Or(process), until));
    VLOG(1) << "XLA compiles " << version_->op_name
            << (choice.kernel != nullptr ? " as a call of a kernel: " : " as its expansion: ")
            << choice.why;
    if (choice.kernel == nullptr) return false;
    TF_RETURN_IF_ERROR(CallKernelInXla(context_, *choice.kernel, counted));
    return true;
  }

  absl::Status Build(const Expansion& expansion, const tensorflow::FunctionBody& body) {
    XlaCompiler* compiler = context_->compiler();
    std::shared_ptr<const tensorflow::FunctionLibraryDefinition> library;
    std::unique_ptr<XlaCompiler> own;
    // Branches and bodies are compiled by name, and only a compiler of our own knows ours.
    if (expansion.library->num_functions() > 1) {
      XlaCompiler::Options options = compiler->options();
      TF_ASSIGN_OR_RETURN(library, MarkedLibrary(*options.flib_def, expansion));
      options.flib_def = library.get();
      TF_ASSIGN_OR_RETURN(auto compilation, Compilation::Of(compiler));
      own = std::make_unique<XlaCompiler>(std::move(options));
      compiler = own.get();
      TF_RETURN_IF_ERROR(compilation->Include(compiler));
    }
    tensorflow::Graph graph(tensorflow::OpRegistry::Global());
    graph.Copy(*body.graph);
    for (tensorflow::Node* node : graph.op_nodes()) {
      if (HasBodies(node->type_string())) node->AddAttr(kFindConstants, true);
    }
    auto* xla_context = new XlaContext(compiler, context_->builder(), &graph);
    const tensorflow::core::ScopedUnref unref(xla_context);
    std::vector<XlaExpression> arguments;
    for (int i = 0; i < context_->num_inputs(); ++i) {
      arguments.push_back(context_->InputExpression(i));
    }
    xla_context->set_args(std::move(arguments));
    TF_RETURN_IF_ERROR(Interpret(compiler, xla_context, &graph));
    for (int i = 0; i < context_->num_outputs(); ++i) {
      context_->SetOutputExpression(i, xla_context->retvals()[i]);
    }
    return absl::OkStatus();
  }

  // As XlaCompiler runs a graph: kernels find their XlaContext in a container of the step.
  static absl::Status Interpret(XlaCompiler* compiler, XlaContext* xla_context,
                                tensorflow::Graph* graph) {
    static std::atomic<int64_t> steps{0};
    tensorflow::FunctionLibraryRuntime* runtime = compiler->flib_runtime();
    auto* device = static_cast<tensorflow::XlaCompilationDevice*>(runtime->device());
    tensorflow::ResourceMgr* resources = device->resource_manager();
    tensorflow::ScopedStepContainer step(
        steps.fetch_add(1),
        [resources](const std::string& name) { resources->Cleanup(name).IgnoreError(); },
        "composite");
    xla_context->Ref();  // the container takes it
    TF_RETURN_IF_ERROR(step.Create(resources, XlaContext::kXlaContextResourceName, xla_context));
    return tensorflow::GraphCompiler(device, graph, runtime, &step).Compile();
  }

  XlaOpKernelContext* const context_;
  AttrSlice attrs_;
  absl::optional<tensorflow::NodeDef> renamed_;  // see LearnFunction
  std::shared_ptr<const OpVersion> version_;
  std::vector<InputFact> facts_;
  std::vector<std::optional<Tensor>> constants_;  // what the facts point to
};

class CompositeXlaOp : public tensorflow::XlaOpKernel {
 public:
  explicit CompositeXlaOp(tensorflow::OpKernelConstruction* context) : XlaOpKernel(context) {}

  void Compile(XlaOpKernelContext* context) override {
    // TensorFlow is built without exceptions: one that left this function would end the process.
    try {
      absl::Status status = Lowering(context, AttrSlice(def())).Run(def());
      if (!status.ok()) context->CtxFailure(status);
    } catch (const std::exception& error) {
      context->CtxFailure(absl::InternalError(absl::StrCat(type_string(), ": ", error.what())));
    }
  }
};

tensorflow::OpKernel* NewXlaKernel(tensorflow::OpKernelConstruction* context) {
  return new CompositeXlaOp(context);
}

// Whether XLA has been used: TensorFlow then has kernels of its own ops for it.
bool WasUsed(const std::string& device) {
  tensorflow::NodeDef node;
  node.set_name("any");
  node.set_op("NoOp");
  // Not FindKernelDef, whose error lists all kernels that there are: a millisecond each time.
  return KernelDefAvailable(tensorflow::DeviceType(device), node);
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

// Null for an op that takes no type of XLA's.
std::unique_ptr<tensorflow::KernelDef> KernelFor(const OpDef& op_def, const std::string& device) {
  auto kernel = std::make_unique<tensorflow::KernelDef>();
  kernel->set_op(op_def.name());
  kernel->set_device_type(device);
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    if (attr.type() != "type") continue;
    AddAllowedTypes(attr, kernel.get());
    if (kernel->constraint().rbegin()->allowed_values().list().type().empty()) return nullptr;
  }
  return kernel;
}

// Whether TensorFlow has one for the same calls. Asked of one call: to list an op's kernels takes
// TensorFlow a millisecond, whatever the op.
bool IsRegistered(const OpDef& op_def, const tensorflow::KernelDef& kernel) {
  tensorflow::NodeDef node;
  node.set_name("any");
  node.set_op(op_def.name());
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    if (attr.type() == "list(type)") (*node.mutable_attr())[attr.name()].mutable_list();
  }
  for (const auto& constraint : kernel.constraint()) {
    const auto type = constraint.allowed_values().list().type(0);
    (*node.mutable_attr())[constraint.name()].set_type(static_cast<tensorflow::DataType>(type));
  }
  return KernelDefAvailable(tensorflow::DeviceType(kernel.device_type()), node);
}

}  // namespace

void RegisterXlaKernels(const OpDef& op_def, const std::vector<std::string>& constant_inputs) {
  auto registration = tensorflow::XlaOpRegistrationBuilder::Name(op_def.name());
  for (const std::string& name : constant_inputs) {
    registration.CompileTimeConstantInput(name);
  }
  tensorflow::XlaOpRegistrar(registration.Build(NewXlaKernel));
  // TensorFlow makes kernels of all registrations when XLA is first used, and of none that comes
  // later. The call does no more than wait for a thread that is at it.
  for (const std::string& device : XlaOpRegistry::BackendNames()) {
    if (!WasUsed(device)) continue;
    XlaOpRegistry::RegisterCompilationKernels();
    std::unique_ptr<tensorflow::KernelDef> kernel = KernelFor(op_def, device);
    if (kernel == nullptr || IsRegistered(op_def, *kernel)) continue;
    tensorflow::kernel_factory::OpKernelRegistrar(kernel.release(), "CompositeXlaOp", NewXlaKernel);
  }
}

}  // namespace composite
