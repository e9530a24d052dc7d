#include "composite/runtime/xla/xla_constants.h"

#include <memory>
#include <unordered_set>

#include "composite/runtime/instantiate/private_runtime.h"
#include "tensorflow/compiler/tf2xla/const_analysis.h"
#include "tensorflow/compiler/tf2xla/xla_op_registry.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::OpDef;
using tensorflow::XlaOpRegistry;

// Walks the regions backwards until nothing is marked any more. A region that several nodes run is
// looked at once for all of them, so the time is bounded whatever the program is.
class ConstantSlots {
 public:
  explicit ConstantSlots(const Program& program) : program_(program) {
    for (const ProgramRegion& region : program.regions) marked_.emplace_back(region.slots, false);
    do {
      changed_ = false;
      for (size_t i = 0; i < program.regions.size(); ++i) VisitRegion(static_cast<int>(i));
    } while (changed_);
  }

  bool marked(int region, int slot) const { return marked_[region][slot]; }

 private:
  void Mark(int region, int slot) {
    if (marked_[region][slot]) return;
    marked_[region][slot] = true;
    changed_ = true;
  }

  void VisitRegion(int region) {
    const std::vector<ProgramNode>& nodes = program_.regions[region].nodes;
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) VisitNode(region, *node);
  }

  void VisitNode(int region, const ProgramNode& node) {
    switch (node.kind) {
      case NodeKind::kShape:
      case NodeKind::kRank:
      case NodeKind::kDtype:
      case NodeKind::kLength:
      case NodeKind::kRaise:
        return;  // they look at no value
      case NodeKind::kIf:
      case NodeKind::kWhile:
      case NodeKind::kApply:
        return VisitRegions(region, node);
      case NodeKind::kCall:
        return VisitCall(region, node);
      case NodeKind::kItem:       // of a list, by a number
      case NodeKind::kSubscript:  // of a tensor: StridedSlice, whose bounds are constants
        return MarkInputs(region, node, AnyResult(region, node) ? 0 : 1);
      case NodeKind::kBuiltin:
        return MarkInputs(region, node, node.symbol == "range" || AnyResult(region, node) ? 0 : -1);
      default:
        return MarkInputs(region, node, AnyResult(region, node) ? 0 : -1);
    }
  }

  bool AnyResult(int region, const ProgramNode& node) const {
    for (int i = 0; i < node.results; ++i) {
      if (marked(region, node.first_slot + i)) return true;
    }
    return false;
  }

  // All inputs from `first` on; none for -1.
  void MarkInputs(int region, const ProgramNode& node, int first) {
    if (first < 0) return;
    for (size_t i = first; i < node.inputs.size(); ++i) Mark(region, node.inputs[i]);
  }

  void VisitCall(int region, const ProgramNode& node) {
    if (XlaOpRegistry::IsMetadataOp(node.symbol)) return;
    if (AnyResult(region, node)) return MarkInputs(region, node, 0);
    // A composite that the body calls is registered with XLA as well.
    const std::unordered_set<std::string>& constants =
        *XlaOpRegistry::CompileTimeConstantInputArgNames(node.symbol);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (constants.count(node.keywords[i]) > 0 || !IsInput(node.symbol, node.keywords[i])) {
        Mark(region, node.inputs[i]);
      }
    }
  }

  // Else it is an attribute, which an input may be given for if its value is known.
  static bool IsInput(const std::string& op, const std::string& name) {
    const OpDef* op_def = nullptr;
    if (!tensorflow::OpRegistry::Global()->LookUpOpDef(op, &op_def).ok()) return true;
    for (const OpDef::ArgDef& arg : op_def->input_arg()) {
      if (arg.name() == name) return true;
    }
    return false;
  }

  void VisitRegions(int region, const ProgramNode& node) {
    const size_t first = node.kind == NodeKind::kIf ? 1 : 0;  // after the condition
    for (size_t k = 0; k < node.regions.size(); ++k) {
      const int inner = node.regions[k];
      const bool is_condition = node.kind == NodeKind::kWhile && k == 0;
      for (int i = 0; i < node.results && !is_condition; ++i) {
        // What a loop carries goes round: an input of the next trip is a result of this one.
        const bool carried = node.kind == NodeKind::kWhile && marked(region, node.inputs[i]);
        if (!carried && !marked(region, node.first_slot + i)) continue;
        Mark(inner, program_.regions[inner].results[i]);
        if (node.kind == NodeKind::kWhile) Mark(region, node.inputs[i]);
      }
      for (size_t i = first; i < node.inputs.size(); ++i) {
        if (marked(inner, static_cast<int>(i - first))) Mark(region, node.inputs[i]);
      }
    }
  }

  const Program& program_;
  std::vector<std::vector<bool>> marked_;  // of each region: its slots
  bool changed_ = false;
};

}  // namespace

std::vector<std::string> XlaConstantInputs(const Program& program) {
  const ConstantSlots slots(program);
  std::vector<std::string> names;
  for (int i = 0; i < program.op_def.input_arg_size(); ++i) {
    if (slots.marked(0, i)) names.push_back(program.op_def.input_arg(i).name());
  }
  return names;
}

absl::StatusOr<std::vector<int>> XlaConstantArguments(
    const tensorflow::FunctionDefLibrary& library) {
  if (library.function().empty()) return absl::InvalidArgumentError("there is no function");
  // A copy of a runtime that knows no functions: the analysis follows calls and branches by name.
  tensorflow::FunctionLibraryRuntime* base = PrivateRuntime();
  std::unique_ptr<tensorflow::FunctionLibraryDefinition> functions;
  std::unique_ptr<tensorflow::ProcessFunctionLibraryRuntime> process;
  tensorflow::FunctionLibraryRuntime* runtime = nullptr;
  TF_RETURN_IF_ERROR(base->Clone(&functions, &process, &runtime));
  TF_RETURN_IF_ERROR(functions->AddLibrary(library));
  std::unique_ptr<tensorflow::FunctionBody> body;
  TF_RETURN_IF_ERROR(tensorflow::FunctionDefToBodyHelper(
      library.function(0), tensorflow::AttrSlice(), functions.get(), &body));
  std::vector<bool> constant(library.function(0).signature().input_arg_size());
  TF_RETURN_IF_ERROR(tensorflow::BackwardsConstAnalysis(*body->graph, &constant, nullptr, runtime));
  std::vector<int> arguments;
  for (size_t i = 0; i < constant.size(); ++i) {
    if (constant[i]) arguments.push_back(static_cast<int>(i));
  }
  return arguments;
}

}  // namespace composite
