#include "composite/runtime/kernels/decision_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "composite/runtime/program/registry.h"

namespace composite {
namespace {

constexpr char kNone[] = "no kernel covers this call";
constexpr char kNever[] = "no kernel covers this call, and none can be compiled: ";

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

// composite/measuring/measure.py tells no smaller times apart.
constexpr float kLeastUs = 0.01f;

std::string Time(float us) {
  return us <= kLeastUs ? absl::StrFormat("less than %g us", kLeastUs)
                        : absl::StrFormat("%.3g us", us);
}

std::string Times(float kernel_us, float expansion_us) {
  return absl::StrCat(Time(kernel_us), ", against ", Time(expansion_us), " for the expansion");
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

// Why no kernel can be compiled for any call of this version.
std::string OfLowering(const OpVersion& version) {
  const auto ops = Registry::Global().OpsWithoutLowering(version);
  if (!ops.has_value()) return absl::StrCat(kNever, "this process has no compiler");
  return absl::StrCat(kNever, "not in the kernel table: ", absl::StrJoin(*ops, ", "));
}

std::string OfKernel(const KernelRecord& record, const SymbolValues& values) {
  return absl::StrCat("kernel ", record.name, " for shapes ", ToString(record.in_shapes), ": ",
                      Facts(record, values));
}

std::string OfClass(Why why, const ShapeClass& shape_class) {
  const std::string shapes = ToString(shape_class.shapes);
  const std::string reason =
      shape_class.reason.empty() ? "no reason was given" : shape_class.reason;
  switch (why) {
    case Why::kPending:
      return absl::StrCat("a kernel for shapes ", shapes, " is being compiled");
    case Why::kNotCovered:
      return absl::StrCat("the kernel compiler does not cover it: ", reason);
    case Why::kFailed:
      return absl::StrCat("compiling a kernel for shapes ", shapes, " failed: ", reason);
    case Why::kNotFaster:
      return absl::StrCat("the kernel was not faster: ", reason);
    default:
      return absl::StrCat("the kernel for shapes ", shapes, " is not installed");
  }
}

// Of the reasons that need nothing else.
std::string Plain(Why why) {
  switch (why) {
    case Why::kBackendTf:
      return "backend=\"tf\"";
    case Why::kStrict:
      return "numerics=\"strict\"";
    case Why::kDevice:
      return "no kernels run on the device that this node is placed on";
    case Why::kDtypes:
      return "no kernel takes its dtypes";
    case Why::kUnchecked:
      return "its library was built where no such GPU was, and nobody checks the kernel in this "
             "process: the thread that does is off (COMPOSITE_JIT=0) or not running";
    case Why::kJitOff:
      return absl::StrCat(kNone, ", and COMPOSITE_JIT=0");
    case Why::kNoWorker:
      return absl::StrCat(kNone, ", and no compiler is running");
    case Why::kEmptyInput:
      return "an input is empty; no kernel is compiled for that";
    case Why::kUnknownSize:
      return "the value of a scalar input, which its kernels take for a size, is not known or not "
             "above 0";
    case Why::kFirstCall:
      return "no call with these shapes was made yet; the first asks for a kernel";
    case Why::kUnknownShapes:
      return "a dim is unknown, so that the path is decided when the call is made";
    case Why::kMeasuring:
      return "the kernel to measure does not cover it";
    default:
      return "what its kernels pack is another constant in every call";
  }
}

}  // namespace

std::string Sentence(const Decision& decision, const OpVersion& version, const Caller& caller) {
  const Choice& choice = decision.choice;
  switch (decision.why) {
    case Why::kKernel:
    case Why::kNotExact:
      return OfKernel(choice.kernel->record, choice.values);
    case Why::kSlower:
      return absl::StrCat("the kernel was not faster: ",
                          Facts(choice.slower->record, choice.values));
    case Why::kPending:
    case Why::kNotInstalled:
    case Why::kNotFaster:
    case Why::kNotCovered:
    case Why::kFailed:
      return OfClass(decision.why, *decision.shape_class);
    case Why::kNoLowering:
      return OfLowering(version);
    case Why::kNotCompiledDtypes:
      return absl::StrCat(
          kNever, "not a dtype of kernels: ", caller.dtypes.Without(caller.compiler.dtypes));
    default:
      return Plain(decision.why);
  }
}

}  // namespace composite
