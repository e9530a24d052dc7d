#include "composite/runtime/variables/uses.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/base/op_traits.h"
#include "composite/runtime/variables/update_node.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::DataTypeVector;
using tensorflow::FunctionDef;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::OpDef;

void Raise(Use* use, Use to) { *use = std::max(*use, to); }

bool ReadsAlone(absl::string_view op) {
  static const auto& kOps = *new absl::flat_hash_set<absl::string_view>{
      kReadOp,         kReadToUpdateOp,     "ResourceGather", "ResourceGatherNd",
      "VariableShape", "VarIsInitializedOp"};
  return kOps.contains(op);
}

// Ops whose state is neither a variable nor seen by others.
bool KeepsToItself(absl::string_view op) {
  static const auto& kOps = *new absl::flat_hash_set<absl::string_view>{
      "VarHandleOp",      "Multinomial",          "ParameterizedTruncatedNormal",
      "Placeholder",      "RandomGamma",          "RandomPoisson",
      "RandomPoissonV2",  "RandomShuffle",        "RandomUniform",
      "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal"};
  return kOps.contains(op);
}

// Ops whose resources are no variables, and that run nothing.
bool HasOtherResources(absl::string_view op) {
  return absl::StartsWith(op, "Iterator") || absl::StartsWith(op, "LookupTable") ||
         absl::EndsWith(op, "Summary") || absl::StartsWith(op, "SummaryWriter");
}

// Ops that run no code but their own, which knows no variables.
bool HasNoVariables(absl::string_view op) {
  static const auto& kOps = *new absl::flat_hash_set<absl::string_view>{
      "Assert", "CheckNumerics", "CheckNumericsV2", "Print", "PrintV2", "Timestamp"};
  return kOps.contains(op);
}

std::vector<std::string> FunctionsOf(const OpDef& op, AttrSlice attrs) {
  std::vector<std::string> functions;
  for (const OpDef::AttrDef& attr : op.attr()) {
    if (attr.type() != "func" && attr.type() != "list(func)") continue;
    const tensorflow::AttrValue* value = attrs.Find(attr.name());
    if (value == nullptr) continue;
    if (value->has_func()) functions.push_back(value->func().name());
    for (const auto& function : value->list().func()) functions.push_back(function.name());
  }
  return functions;
}

bool IsResource(tensorflow::DataType dtype) { return dtype == tensorflow::DT_RESOURCE; }

// What a node does of which nothing else is known.
Uses Anything(const DataTypeVector& inputs, bool is_stateful) {
  Uses uses;
  for (tensorflow::DataType dtype : inputs) {
    uses.inputs.push_back(IsResource(dtype) ? Use::kWrites : Use::kNone);
  }
  uses.others = is_stateful ? Use::kWrites : Use::kNone;
  uses.has_effects = is_stateful;
  return uses;
}

// The words of a function for its nodes and arguments.
class Names {
 public:
  explicit Names(const FunctionDef& function) {
    const auto& arguments = function.signature().input_arg();
    for (int i = 0; i < arguments.size(); ++i) argument_of_[arguments[i].name()] = i;
    for (const NodeDef& node : function.node_def()) {
      if (node.op() == "Identity" && node.input_size() > 0) given_to_[node.name()] = node.input(0);
    }
  }

  // The argument that a word stands for, behind nodes that give on what they are given; or -1.
  int ArgumentOf(absl::string_view word) const {
    for (size_t steps = 0; steps <= given_to_.size(); ++steps) {
      const absl::string_view name = word.substr(0, word.find(':'));
      if (const auto found = argument_of_.find(name); found != argument_of_.end()) {
        return found->second;
      }
      const auto given = given_to_.find(name);
      if (given == given_to_.end()) return -1;
      word = given->second;
    }
    return -1;
  }

 private:
  absl::flat_hash_map<std::string, int> argument_of_;
  absl::flat_hash_map<std::string, std::string> given_to_;
};

// Whether the variables that a trip of a loop is given are those that it gives the next one.
bool PassesOn(const FunctionDef& body) {
  const Names names(body);
  const auto& signature = body.signature();
  for (int i = 0; i < signature.input_arg_size(); ++i) {
    if (!IsResource(signature.input_arg(i).type())) continue;
    if (i >= signature.output_arg_size()) return false;
    const auto given = body.ret().find(signature.output_arg(i).name());
    if (given == body.ret().end() || names.ArgumentOf(given->second) != i) return false;
  }
  return true;
}

// Whether the argument is one that the caller gives, and no capture: TensorFlow 2.21 calls it by
// the name that the author gave it, and a capture by the node that has it and that node's input.
bool IsGiven(const FunctionDef& function, int argument) {
  const auto without_number = [](absl::string_view name) {
    const size_t end = name.find_last_not_of("0123456789");
    const bool has_number = end != absl::string_view::npos && name[end] == '_';
    return has_number ? name.substr(0, end) : name;
  };
  const auto attrs = function.arg_attr().find(argument);
  if (attrs == function.arg_attr().end()) return true;
  const auto named = attrs->second.attr().find("_user_specified_name");
  if (named == attrs->second.attr().end() || named->second.s().empty()) return true;
  const std::string& name = function.signature().input_arg(argument).name();
  return absl::EqualsIgnoreCase(without_number(name), without_number(named->second.s()));
}

}  // namespace

bool Uses::any() const {
  return others != Use::kNone || has_effects ||
         absl::c_any_of(inputs, [](Use use) { return use != Use::kNone; });
}

bool MayHaveTwice(const FunctionDef* root, const tensorflow::FunctionLibraryDefinition& library) {
  VariableUses uses(library);
  if (root == nullptr || uses.MayHaveTwice(*root) || uses.GivesTwice(*root)) return true;
  return absl::c_any_of(library.ListFunctionNames(), [&](const std::string& name) {
    const FunctionDef* function = library.Find(name);
    return function != nullptr && uses.GivesTwice(*function);
  });
}

bool IsGivenValue(const Node& node) { return node.IsArg() && !IsResource(node.output_type(0)); }

bool RunsFunctions(const Node& node) { return !FunctionsOf(node.op_def(), node.attrs()).empty(); }

Uses VariableUses::Of(const Node& node) {
  if (!node.IsOp() || node.IsArg() || node.IsRetval()) return {};
  return OfDescribed({node.type_string(), node.op_def(), node.attrs(), node.input_types()});
}

Uses VariableUses::OfDescribed(const Described& node) {
  const std::vector<std::string> functions = FunctionsOf(node.op_def, node.attrs);
  if (!functions.empty()) return OfRun(node, functions);
  const bool is_stateful = node.op_def.is_stateful();
  if (absl::StrContains(node.op, "PyFunc")) return Anything(node.inputs, true);
  if (KeepsToItself(node.op)) return {};
  if (HasOtherResources(node.op) || HasNoVariables(node.op)) {
    Uses uses;
    uses.has_effects = is_stateful;
    return uses;
  }
  if (!absl::c_any_of(node.inputs, IsResource)) {
    return is_stateful ? Anything(node.inputs, true) : Uses();
  }
  Uses uses = Anything(node.inputs, false);  // an op has no variables but those that it is given
  if (ReadsAlone(node.op)) {
    for (Use& use : uses.inputs) use = std::min(use, Use::kReads);
  }
  return uses;
}

Uses VariableUses::OfRun(const Described& node, const std::vector<std::string>& functions) {
  const Runs runs = TraitsOf(node.op).runs;
  const int first = runs == Runs::kBranch ? 1 : 0;  // the input that is the first argument
  const bool has_resources = absl::c_any_of(node.inputs, IsResource);
  Uses uses;
  uses.inputs.resize(node.inputs.size(), Use::kNone);
  for (const std::string& name : functions) {
    const FunctionDef* function = library_.Find(name);
    const bool is_known = function != nullptr && (runs != Runs::kNothing || !has_resources) &&
                          (runs != Runs::kLoop || name != functions.back() || PassesOn(*function));
    if (!is_known) return Anything(node.inputs, true);
    const Uses& own = OfFunction(name);
    Raise(&uses.others, own.others);
    uses.has_effects |= own.has_effects;
    for (size_t i = 0; has_resources && i < own.inputs.size(); ++i) {
      if (i + first < uses.inputs.size()) Raise(&uses.inputs[i + first], own.inputs[i]);
    }
  }
  return uses;
}

const Uses& VariableUses::OfFunction(const std::string& name) {
  const FunctionDef& function = *library_.Find(name);
  const auto known = functions_.find(name);
  if (known != functions_.end()) return known->second;
  DataTypeVector arguments;
  for (const auto& argument : function.signature().input_arg()) {
    arguments.push_back(argument.type());
  }
  functions_[name] = Anything(arguments, true);  // where it runs itself
  Uses uses = OfBody(function);
  return functions_[name] = std::move(uses);
}

Uses VariableUses::OfBody(const FunctionDef& function) {
  const Names names(function);
  Uses uses;
  uses.inputs.resize(function.signature().input_arg_size(), Use::kNone);
  for (const NodeDef& node : function.node_def()) {
    const OpDef* op = nullptr;
    DataTypeVector inputs;
    if (!library_.LookUpOpDef(node.op(), &op).ok() ||
        !tensorflow::InputTypesForNode(node, *op, &inputs).ok()) {
      absl::c_fill(uses.inputs, Use::kWrites);
      uses.others = Use::kWrites;
      uses.has_effects = true;
      return uses;
    }
    const Uses own = OfDescribed({node.op(), *op, AttrSlice(node), inputs});
    Raise(&uses.others, own.others);
    uses.has_effects |= own.has_effects;
    for (size_t i = 0; i < own.inputs.size(); ++i) {
      if (own.inputs[i] == Use::kNone) continue;
      const int argument = names.ArgumentOf(node.input(static_cast<int>(i)));
      Raise(argument < 0 ? &uses.others : &uses.inputs[argument], own.inputs[i]);
    }
  }
  return uses;
}

bool VariableUses::MayHaveTwice(const FunctionDef& function) {
  if (function.attr().count(kMayHaveTwiceAttr) != 0) return true;
  const Uses uses = OfBody(function);
  absl::flat_hash_set<uint32_t> ids;
  int variables = 0, given = 0;
  for (int i = 0; i < function.signature().input_arg_size(); ++i) {
    if (uses.inputs[i] == Use::kNone) continue;
    variables += 1;
    given += IsGiven(function, i);
    const auto id = function.resource_arg_unique_id().find(i);
    const bool has_id = id != function.resource_arg_unique_id().end();
    if (has_id && !ids.insert(id->second).second) return true;
  }
  return given > 0 && variables > 1;
}

bool VariableUses::GivesTwice(const FunctionDef& function) {
  const Names names(function);
  for (const NodeDef& node : function.node_def()) {
    const OpDef* op = nullptr;
    DataTypeVector inputs;
    if (!library_.LookUpOpDef(node.op(), &op).ok() || FunctionsOf(*op, AttrSlice(node)).empty() ||
        !tensorflow::InputTypesForNode(node, *op, &inputs).ok()) {
      continue;
    }
    const Uses uses = OfDescribed({node.op(), *op, AttrSlice(node), inputs});
    absl::flat_hash_set<int> seen;
    int variables = 0;
    bool are_arguments = true;
    for (size_t i = 0; i < uses.inputs.size(); ++i) {
      if (uses.inputs[i] == Use::kNone || !IsResource(inputs[i])) continue;
      const int argument = names.ArgumentOf(node.input(static_cast<int>(i)));
      variables += 1;
      are_arguments &= argument >= 0;
      if (!seen.insert(argument).second) return true;
    }
    if (variables > 1 && !are_arguments) return true;
  }
  return false;
}

}  // namespace composite
