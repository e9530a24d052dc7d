#include "composite/runtime/api/explain.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "composite/runtime/kernels/kernel_table.h"
#include "composite/runtime/program/registry.h"

namespace composite {
namespace {

using tensorflow::NodeDef;

constexpr char kKernelPath[] = "kernel";
constexpr char kCompilingPath[] = "compiling";
constexpr char kExpansionPath[] = "expansion";

NodeDef Answer(const char* path, const std::string& reason) {
  NodeDef answer;
  (*answer.mutable_attr())["path"].set_s(path);
  (*answer.mutable_attr())["reason"].set_s(reason);
  return answer;
}

NodeDef Answer(const char* path, const std::string& reason, const KernelRecord& record,
               absl::Span<const int64_t> values) {
  NodeDef answer = Answer(path, reason);
  auto& attrs = *answer.mutable_attr();
  attrs["kernel"].set_s(record.name);
  attrs["target"].set_s(record.target);
  attrs["strategy"].set_s(record.strategy);
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
  return answer;
}

// "s0*s1", the size of a call of the kernel's class.
std::string SizeText(const KernelRecord& record) {
  std::string text;
  for (int i = 0; i < record.symbols(); ++i) absl::StrAppend(&text, i == 0 ? "s" : "*s", i);
  return text;
}

// "; the kernel below s0=182, the expansion from there", where the class is divided.
std::string Division(const KernelRecord& record) {
  const DecisionTable& decisions = record.decisions;
  bool kernel = decisions.first_wins();
  std::string text;
  for (int64_t turn : decisions.turns()) {
    absl::StrAppend(&text, text.empty() ? "; " : ", ", kernel ? "the kernel" : "the expansion",
                    " below ", SizeText(record), "=", turn);
    kernel = !kernel;
  }
  if (text.empty()) return "";
  return absl::StrCat(text, ", ", kernel ? "the kernel" : "the expansion", " from there on");
}

std::string Times(float kernel_us, float expansion_us) {
  return absl::StrFormat("%.3g us, against %.3g us for the expansion", kernel_us, expansion_us);
}

// What was measured for a call of these values, and how near the results are.
std::string Facts(const KernelRecord& record, absl::Span<const int64_t> values) {
  const std::string accuracy = record.Accuracy();
  const std::string last = accuracy.empty() ? "" : absl::StrCat("; ", accuracy);
  if (record.verdict == Verdict::kUnmeasured || record.kernel_us <= 0) {
    return absl::StrCat("not measured here", last);
  }
  const Measured* point = record.decisions.Nearest(values);
  if (point == nullptr || record.symbols() == 0) {
    return absl::StrCat(Times(record.kernel_us, record.expansion_us), last);
  }
  return absl::StrCat(Times(point->kernel_us, point->expansion_us), ", at ", SizeText(record), "=",
                      point->size, Division(record), last);
}

NodeDef OfClass(const ShapeClass& shape_class) {
  const std::string shapes = ToString(shape_class.shapes);
  const std::string reason =
      shape_class.reason.empty() ? "no reason was given" : shape_class.reason;
  switch (shape_class.state) {
    case ShapeClass::kPending:
      return Answer(kCompilingPath,
                    absl::StrCat("a kernel for shapes ", shapes, " is being compiled"));
    case ShapeClass::kNotCovered:
      return Answer(kExpansionPath,
                    absl::StrCat("the kernel compiler does not cover it: ", reason));
    case ShapeClass::kFailed:
      return Answer(kExpansionPath,
                    absl::StrCat("compiling a kernel for shapes ", shapes, " failed: ", reason));
    case ShapeClass::kExpansion:
      return Answer(kExpansionPath, absl::StrCat("the kernel was not faster: ", reason));
    case ShapeClass::kKernel:
      break;
  }
  return Answer(kExpansionPath,
                absl::StrCat("the kernel for shapes ", shapes, " is not installed"));
}

// Why no kernel can be compiled for any call of this version.
std::string WhyNever(const OpVersion& version) {
  constexpr char kNone[] = "no kernel covers this call, and none can be compiled: ";
  const auto ops = Registry::Global().OpsWithoutLowering(version);
  if (!ops.has_value()) return absl::StrCat(kNone, "this process has no compiler");
  return absl::StrCat(kNone, "not in the kernel table: ", absl::StrJoin(*ops, ", "));
}

// Why nobody has asked for a kernel.
NodeDef OfNothing(const OpVersion& version, const KernelSnapshot& snapshot, const Signature& call) {
  if (!version.kernel_possible.load()) {
    return Answer(kExpansionPath, WhyNever(version));
  }
  if (!JitAllowed()) {
    return Answer(kExpansionPath, "no kernel covers this call, and COMPOSITE_JIT=0");
  }
  if (!KernelTable::Global().worker_running()) {
    return Answer(kExpansionPath, "no kernel covers this call, and no compiler is running");
  }
  if (snapshot.full) {
    return Answer(kExpansionPath,
                  absl::StrCat("no kernel covers this call, and ", KernelTable::kMaxClasses,
                               " shape classes were compiled for this op already"));
  }
  if (call.has_empty_input()) {
    return Answer(kExpansionPath, "an input is empty; no kernel is compiled for that");
  }
  return Answer(kExpansionPath,
                "no call with these shapes was made yet; the first asks for a kernel");
}

NodeDef Decide(const OpVersion& version, const KernelSnapshot& snapshot, const Signature& call,
               const Options& options) {
  const Choice choice = Choose(snapshot, call, options.must());
  if (choice.kernel != nullptr) {
    const KernelRecord& record = choice.kernel->record;
    return Answer(kKernelPath,
                  absl::StrCat("kernel ", record.name, " for shapes ", ToString(record.in_shapes),
                               ": ", Facts(record, choice.values)),
                  record, choice.values);
  }
  if (choice.slower != nullptr) {
    const KernelRecord& record = choice.slower->record;
    return Answer(kExpansionPath,
                  absl::StrCat("the kernel was not faster: ", Facts(record, choice.values)), record,
                  choice.values);
  }
  if (choice.shape_class != nullptr) return OfClass(*choice.shape_class);
  return OfNothing(version, snapshot, call);
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

NodeDef Path(const OpVersion& version, tensorflow::AttrSlice attrs, const Signature& call,
             const Options& options) {
  if (options.backend == Backend::kTf) return Answer(kExpansionPath, "backend=\"tf\"");
  if (options.expansion_only()) return Answer(kExpansionPath, "numerics=\"strict\"");
  const KernelSnapshot& snapshot = KernelTable::Global().Group(version, attrs)->snapshot();
  NodeDef answer = Decide(version, snapshot, call, options);
  std::string& reason = *(*answer.mutable_attr())["reason"].mutable_s();
  if (!snapshot.rejection.empty()) absl::StrAppend(&reason, "; ", snapshot.rejection);
  if (options.must() && answer.attr().at("path").s() != kKernelPath) {
    absl::StrAppend(&reason, "; with backend=\"tvm\" the call waits for its kernel, or raises");
  }
  if (options.must()) {
    absl::StrAppend(&reason,
                    "; what XLA compiles (jit_compile=True) is the expansion all the same");
  }
  return answer;
}

}  // namespace

absl::StatusOr<NodeDef> Explain(const OpVersion& version, tensorflow::AttrSlice attrs,
                                const Signature& call, const Options& options) {
  if (options.must() && options.strict()) {
    const KernelSnapshot& snapshot = KernelTable::Global().Group(version, attrs)->snapshot();
    const Choice choice = Choose(snapshot, call, /*must=*/true);
    absl::Status exact =
        choice.kernel != nullptr ? CheckExact(choice.kernel->record) : absl::OkStatus();
    if (!exact.ok()) return exact;
  }
  NodeDef answer = Path(version, attrs, call, options);
  DescribeComposition(version, &answer);
  return answer;
}

}  // namespace composite
