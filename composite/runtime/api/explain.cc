#include "composite/runtime/api/explain.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "composite/runtime/base/record_tables.h"
#include "composite/runtime/expand/expand.h"
#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/kernels/decision_text.h"
#include "composite/runtime/kernels/kernel_record.h"
#include "composite/runtime/kernels/kernel_table.h"
#include "composite/runtime/kernels/node_groups.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/run/gpu_device.h"
#include "composite/runtime/xla/kernel_choice.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::NodeDef;

const char* PathOf(const Decision& decision) {
  if (decision.route == Route::kKernel) return "kernel";
  return decision.why == Why::kPending ? "compiling" : "expansion";
}

// What is known of the kernel that covers a call of these values of its symbols.
void DescribeKernel(const KernelRecord& record, absl::Span<const int64_t> values, NodeDef* answer) {
  auto& attrs = *answer->mutable_attr();
  attrs["kernel"].set_s(record.name);
  attrs["target"].set_s(record.target);
  attrs["strategy"].set_s(record.strategy);
  attrs["proof"].set_s(record.proof);
  attrs["algebra"].set_s(record.algebra);
  attrs["accuracy"].set_s(record.Accuracy());
  attrs["exact"].set_b(record.exact);
  if (record.error >= 0) attrs["error"].set_f(record.error);
  attrs["error_unit"].set_s(record.error_unit);
  attrs["library"].set_s(record.library);
  const Measured* point = record.decisions.Nearest(values);
  attrs["kernel_us"].set_f(point != nullptr ? point->kernel_us : record.kernel_us);
  attrs["expansion_us"].set_f(point != nullptr ? point->expansion_us : record.expansion_us);
  for (const Measured& measured : record.decisions.points()) {
    attrs["sizes"].mutable_list()->add_i(measured.size);
    attrs["kernel_times"].mutable_list()->add_f(measured.kernel_us);
    attrs["expansion_times"].mutable_list()->add_f(measured.expansion_us);
    attrs["kernel_wins"].mutable_list()->add_b(measured.kernel_wins);
  }
}

// The type of device that the call is placed on; "" where it does not say.
std::string PlacedOn(AttrSlice attrs) {
  const auto* placed = attrs.Find(kDeviceField);
  return placed != nullptr ? placed->s() : "";
}

// When the kernel of variables at rest runs.
std::string AtRestText(AttrSlice attrs) {
  const std::vector<int> inputs = VariableInputs(attrs);
  const bool one = inputs.size() == 1;
  return absl::StrCat("; while input", one ? " " : "s ", absl::StrJoin(inputs, ", "),
                      one ? ", which a variable holds, is" : ", which variables hold, are",
                      " not written to");
}

// Why the last record of a group was refused.
std::string Rejections(GroupSnapshots* snapshots) {
  std::string text;
  for (size_t i = 0; i < snapshots->size(); ++i) {
    const std::string& rejection = snapshots->At(i, /*must=*/false)->rejection;
    if (!rejection.empty()) absl::StrAppend(&text, "; ", rejection);
  }
  return text;
}

// Why a call that no kernel was asked for asks for none; empty if it asks.
std::string LaterText(const OpVersion& version, GroupSnapshots* snapshots) {
  for (size_t i = 0; i < snapshots->size(); ++i) {
    if (snapshots->NeedsOf(i) == Needs::kRest) continue;
    return KernelTable::Global().WhyLater(version, snapshots->group(i));
  }
  return "";
}

std::string Reason(const OpVersion& version, AttrSlice attrs, const Caller& caller,
                   const Options& options, const Decision& decision, GroupSnapshots* snapshots) {
  const bool must = options.must();
  std::string reason = Sentence(decision, version, caller);
  if (decision.why == Why::kFirstCall) {
    if (std::string later = LaterText(version, snapshots); !later.empty()) reason = later;
  }
  if (decision.why == Why::kBackendTf || decision.why == Why::kStrict) return reason;
  if (decision.why == Why::kDevice) {
    const std::string why = WhyWithoutKernels(PlacedOn(attrs));
    if (!why.empty()) absl::StrAppend(&reason, ": ", why);
  }
  const bool kernel = decision.route == Route::kKernel;
  if (kernel && snapshots->NeedsOf(decision.group) == Needs::kRest) {
    absl::StrAppend(&reason, AtRestText(attrs));
  }
  absl::StrAppend(&reason, Rejections(snapshots));
  if (options.invariant()) {
    absl::StrAppend(&reason, kernel ? "; its rows have the same bits in any batch"
                             : decision.is_final
                                 ? "; the rows of TensorFlow's ops may depend on their batch"
                                 : "; with numerics=\"invariant\" the call waits for its kernel");
  } else if (!must && snapshots->Deterministic()) {
    absl::StrAppend(&reason, "; with deterministic ops a node keeps the path of its first call");
  }
  if (must && !kernel) {
    absl::StrAppend(&reason, "; with backend=\"tvm\" the call waits for its kernel, or raises");
  }
  return reason;
}

// Which nodes of TensorFlow's own op the composition runs.
void DescribeComposition(const OpVersion& version, NodeDef* answer) {
  const std::string& tf_op = version.program.composes;
  if (tf_op.empty()) return;
  const auto replacement = Registry::Global().Replacement(tf_op);
  const bool replaces = replacement != nullptr && replacement->op_name == version.op_name;
  auto& attrs = *answer->mutable_attr();
  attrs["composes"].set_s(tf_op);
  attrs["replaces"].set_b(replaces);
  absl::StrAppend(attrs["reason"].mutable_s(), "; ",
                  replaces ? absl::StrCat("it takes the place of ", tf_op, " nodes")
                           : absl::StrCat(tf_op, " nodes stay TensorFlow's where it has a kernel"));
}

}  // namespace

absl::StatusOr<NodeDef> Explain(const OpVersion& version, AttrSlice attrs, const Signature& call,
                                const Options& options) {
  const bool measuring = attrs.Find(kUncountedAttr) != nullptr;
  const Caller caller = CallerOf(version, NodeDtypes(version, attrs), measuring);
  const Device device = DeviceOfType(PlacedOn(attrs));
  GroupSnapshots snapshots(version, attrs, device, options.invariant(), call);
  const Decision decision = Decide(snapshots, caller, options, device);
  const Choice& choice = decision.choice;
  if (decision.why == Why::kNotExact) return CheckExact(choice.kernel->record);
  NodeDef answer;
  auto& fields = *answer.mutable_attr();
  fields["path"].set_s(PathOf(decision));
  fields["final"].set_b(IsReplaced(decision, snapshots));
  const Options own = OptionsOf(caller, options);
  fields["reason"].set_s(Reason(version, attrs, caller, own, decision, &snapshots));
  const InstalledKernel* covers = choice.kernel != nullptr ? choice.kernel : choice.slower;
  if (covers != nullptr) DescribeKernel(covers->record, choice.values, &answer);
  DescribeComposition(version, &answer);
  return answer;
}

std::string ExplainXla(const CallRecord& call, AttrSlice attrs, const Signature& signature,
                       const Options& options) {
  const auto expansion = GetExpansion(call.version, attrs, call.facts);
  if (!expansion.ok()) return "";
  if (signature.has_empty_input()) return "expansion: an input is empty";
  const auto choice = ChooseForXla({*call.version, attrs, signature, **expansion}, options);
  if (!choice.ok()) return absl::StrCat("error: ", choice.status().message());
  return absl::StrCat(choice->kernel != nullptr ? "kernel: " : "expansion: ", choice->why);
}

}  // namespace composite
