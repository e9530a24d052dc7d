#include "composite/runtime/tensorflow/resolve_calls.h"

#include <cstddef>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/op_traits.h"
#include "composite/runtime/emit/operators.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::OpDef;
using tensorflow::OpRegistry;

absl::Status CheckTfOp(const ProgramNode& node, const Program& program) {
  const OpDef* op_def = nullptr;
  if (!OpRegistry::Global()->LookUpOpDef(node.symbol, &op_def).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.place, ": ", program.op_def.name(), " calls ", node.symbol,
                     ", which is neither an op of this TensorFlow nor a composite"));
  }
  // A random op with hidden state draws again when a body is recomputed, as a gradient does.
  if (absl::string_view twin = TraitsOf(node.symbol).stateless_twin; !twin.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.place, ": ", node.symbol,
                     " keeps hidden state, so a gradient that computes ", program.op_def.name(),
                     " again would draw other numbers; use ", twin, " with a seed input"));
  }
  for (const auto* args : {&op_def->input_arg(), &op_def->output_arg()}) {
    for (const OpDef::ArgDef& arg : *args) {
      if (!arg.is_ref()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(node.place, ": ", node.symbol,
                       " takes or gives a Ref tensor; use its resource variable twin"));
    }
  }
  if (op_def->is_stateful() && !program.op_def.is_stateful()) {
    return absl::InvalidArgumentError(absl::StrCat(node.place, ": ", node.symbol,
                                                   " is stateful, but ", program.op_def.name(),
                                                   " is not declared stateful"));
  }
  return absl::OkStatus();
}

absl::Status CheckOperator(const ProgramNode& node) {
  const bool unary = node.kind == NodeKind::kUnary;
  const bool binary = node.kind == NodeKind::kBinary || node.kind == NodeKind::kCompare;
  if (unary ? IsUnaryOperator(node.symbol) : !binary || IsBinaryOperator(node.symbol)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(node.place, ": this runtime has no operator '", node.symbol, "'"));
}

// The regions that every call goes through. A branch is left out: its condition may be one of
// dtypes and attributes. A loop is not: to run no trip is rare, and to be answered at once, when an
// op has no lowering, is worth more.
std::vector<bool> UnconditionalRegions(const Program& program) {
  std::vector<bool> found(program.regions.size());
  std::vector<int> to_visit = {0};
  while (!to_visit.empty()) {
    const int region = to_visit.back();
    to_visit.pop_back();
    if (found[region]) continue;
    found[region] = true;
    for (const ProgramNode& node : program.regions[region].nodes) {
      if (node.kind == NodeKind::kIf) continue;
      to_visit.insert(to_visit.end(), node.regions.begin(), node.regions.end());
    }
  }
  return found;
}

bool IsSum(absl::string_view op) { return TraitsOf(op).work == Work::kSums; }

// One call: to a composite, whose ops are added, or to a TF op.
absl::Status Visit(const FindComposite& find, const Program& program, ProgramNode* node,
                   std::set<std::string>* ops, bool* has_sums) {
  TF_ASSIGN_OR_RETURN(auto callee, find(node->symbol, node->callee_digest));
  if (callee == nullptr) {
    ops->insert(node->symbol);
    *has_sums |= IsSum(node->symbol);
    return CheckTfOp(*node, program);
  }
  node->callee_digest = callee->digest;
  *has_sums |= callee->has_sums;
  ops->insert(callee->unconditional_ops.begin(), callee->unconditional_ops.end());
  if (callee->op_def.is_stateful() && !program.op_def.is_stateful()) {
    return absl::InvalidArgumentError(absl::StrCat(node->place, ": ", node->symbol,
                                                   " is stateful, but ", program.op_def.name(),
                                                   " is not declared stateful"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ResolvedCalls> ResolveCalls(const FindComposite& find, Program* program) {
  const std::vector<bool> unconditional = UnconditionalRegions(*program);
  std::set<std::string> ops, conditional;
  ResolvedCalls calls;
  for (size_t i = 0; i < program->regions.size(); ++i) {
    for (ProgramNode& node : program->regions[i].nodes) {
      TF_RETURN_IF_ERROR(CheckOperator(node));
      if (node.kind == NodeKind::kBinary) calls.has_sums |= IsSum(TfOpOf(node.symbol));
      if (node.kind != NodeKind::kCall) continue;
      TF_RETURN_IF_ERROR(
          Visit(find, *program, &node, unconditional[i] ? &ops : &conditional, &calls.has_sums));
    }
  }
  calls.unconditional_ops.assign(ops.begin(), ops.end());
  return calls;
}

}  // namespace composite
