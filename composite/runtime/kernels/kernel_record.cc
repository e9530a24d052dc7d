#include "composite/runtime/kernels/kernel_record.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "composite/runtime/base/record_check.h"
#include "composite/runtime/program/node_attrs.h"
#include "tensorflow/core/framework/allocator.h"

namespace composite {
namespace {

using tensorflow::AttrValue;
using tensorflow::NodeDef;

constexpr char kCudaDevices[] = "cuda:";

absl::Status Malformed(absl::string_view attr, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(attr, ": ", why));
}

const AttrValue* Find(const NodeDef& record, const std::string& attr) {
  auto it = record.attr().find(attr);
  return it == record.attr().end() ? nullptr : &it->second;
}

std::string Text(const NodeDef& record, const std::string& attr) {
  const AttrValue* value = Find(record, attr);
  return value != nullptr ? value->s() : "";
}

float Number(const NodeDef& record, const std::string& attr, float missing = 0) {
  const AttrValue* value = Find(record, attr);
  return value != nullptr ? value->f() : missing;
}

absl::Status ParseMeasured(const NodeDef& node, KernelRecord* record) {
  record->kernel_us = Number(node, kKernelUsField);
  record->expansion_us = Number(node, kExpansionUsField);
  absl::StatusOr<DecisionTable> decisions = DecisionTable::Parse(node);
  if (!decisions.ok()) return decisions.status();
  record->decisions = *std::move(decisions);
  record->error = Number(node, kErrorField, -1);
  record->error_unit = Text(node, kErrorUnitField);
  const AttrValue* exact = Find(node, kExactField);
  record->exact = exact != nullptr && exact->b();
  record->max_error = Text(node, kMaxErrorField);
  return absl::OkStatus();
}

absl::StatusOr<Verdict> ParseVerdict(const std::string& text) {
  if (text.empty() || text == "unmeasured") return Verdict::kUnmeasured;
  if (text == "kernel") return Verdict::kKernel;
  if (text == "expansion") return Verdict::kExpansion;
  if (text == "unchecked") return Verdict::kUnchecked;
  return Malformed(kVerdictField,
                   absl::StrCat("\"", text, "\" is not kernel, expansion, unmeasured, unchecked"));
}

absl::Status ParseOutShapes(const NodeDef& node, KernelRecord* record) {
  for (const std::string& shape : Find(node, kOutShapesField)->list().s()) {
    std::vector<DimExpression>& dims = record->out_shapes.emplace_back();
    if (shape.empty()) continue;  // a scalar
    for (absl::string_view dim : absl::StrSplit(shape, ',')) {
      absl::StatusOr<DimExpression> parsed = DimExpression::Parse(dim, record->symbols());
      if (!parsed.ok()) return Malformed(kOutShapesField, parsed.status().message());
      dims.push_back(*std::move(parsed));
    }
  }
  return absl::OkStatus();
}

// One value for each symbol; `fallback` for those that the record does not give.
absl::Status ParseBounds(const NodeDef& node, const std::string& attr, int symbols,
                         int64_t fallback, std::vector<int64_t>* bounds) {
  bounds->assign(symbols, fallback);
  const AttrValue* given = Find(node, attr);
  if (given == nullptr) return absl::OkStatus();
  if (given->list().i_size() > symbols) return Malformed(attr, "more values than symbols");
  for (int i = 0; i < given->list().i_size(); ++i) {
    (*bounds)[i] = given->list().i(i);
    if ((*bounds)[i] < fallback) return Malformed(attr, "too small");
  }
  return absl::OkStatus();
}

absl::Status ParseShapes(const NodeDef& node, KernelRecord* record) {
  absl::StatusOr<Signature> signature =
      ParseSignature(*Find(node, kInShapesField), Find(node, kSizeInputsField));
  if (!signature.ok()) return signature.status();
  record->in_shapes = *std::move(signature);
  const int symbols = SymbolCount(record->in_shapes);
  if (symbols > static_cast<int>(record->in_shapes.dims.size())) {
    return Malformed(kInShapesField, "symbols are not numbered from 0");
  }
  absl::Status status = ParseBounds(node, kMinimumsField, symbols, 0, &record->minimums);
  if (!status.ok()) return status;
  status = ParseBounds(node, kDivisorsField, symbols, 1, &record->divisors);
  if (!status.ok()) return status;
  return ParseOutShapes(node, record);
}

absl::Status ParsePacked(const NodeDef& node, KernelRecord* record) {
  if (const AttrValue* constants = Find(node, kConstantsAttr)) record->constants = *constants;
  const AttrValue* sources = Find(node, kPackedSourcesField);
  if (sources == nullptr) return absl::OkStatus();
  const AttrValue* elements = Find(node, kPackedElementsField);
  const AttrValue* dtypes = Find(node, kPackedDtypesField);
  const int count = sources->list().i_size();
  if (elements == nullptr || elements->list().i_size() != count || dtypes == nullptr ||
      dtypes->list().type_size() != count) {
    return Malformed(kPackedSourcesField, "its elements and dtypes are not as many");
  }
  const int inputs = static_cast<int>(record->in_shapes.ranks.size());
  for (int i = 0; i < count; ++i) {
    const int64_t source = sources->list().i(i);
    if (source < 0 || source >= inputs) return Malformed(kPackedSourcesField, "names no input");
    if (elements->list().i(i) < 1) return Malformed(kPackedElementsField, "too small");
    record->packed.push_back(
        {static_cast<int>(source), elements->list().i(i), dtypes->list().type(i)});
  }
  return absl::OkStatus();
}

absl::Status ParseForwards(const NodeDef& node, KernelRecord* record) {
  const AttrValue* inputs = Find(node, kForwardInputsField);
  const AttrValue* outputs = Find(node, kForwardOutputsField);
  const int count = inputs == nullptr ? 0 : inputs->list().i_size();
  if (count != (outputs == nullptr ? 0 : outputs->list().i_size())) {
    return Malformed(kForwardInputsField, "not as many as outputs");
  }
  for (int i = 0; i < count; ++i) {
    const int64_t input = inputs->list().i(i), output = outputs->list().i(i);
    if (input < 0 || input >= static_cast<int64_t>(record->in_shapes.ranks.size())) {
      return Malformed(kForwardInputsField, "names no input");
    }
    if (output < 0 || output >= static_cast<int64_t>(record->out_shapes.size())) {
      return Malformed(kForwardOutputsField, "names no output");
    }
    record->forwards.push_back({static_cast<int>(input), static_cast<int>(output)});
  }
  return absl::OkStatus();
}

absl::Status ParseAlignment(const NodeDef& node, KernelRecord* record) {
  const AttrValue* alignment = Find(node, kAlignmentField);
  if (alignment == nullptr || alignment->i() == 0) return absl::OkStatus();
  const int64_t bytes = alignment->i();
  // TensorFlow allocates tensors at multiples of this.
  constexpr int64_t kMost = tensorflow::Allocator::kAllocatorAlignment;
  if (bytes < 1 || bytes > kMost || kMost % bytes != 0) {
    return Malformed(kAlignmentField,
                     absl::StrCat(bytes, " bytes, and tensors lie at multiples of ", kMost));
  }
  record->alignment = static_cast<size_t>(bytes);
  return absl::OkStatus();
}

absl::Status ParseLaunches(const NodeDef& node, KernelRecord* record) {
  if (!absl::StartsWith(record->device, kCudaDevices)) return absl::OkStatus();
  const LaunchOperands operands{static_cast<int>(record->in_shapes.ranks.size()),
                                static_cast<int>(record->out_shapes.size()), record->symbols()};
  absl::StatusOr<LaunchPlan> plan = ParseLaunchPlan(node, operands);
  if (!plan.ok()) return plan.status();
  record->launches = *std::move(plan);
  return absl::OkStatus();
}

}  // namespace

const char* Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kUnchecked:
      return "unchecked";
    case Verdict::kUnmeasured:
      return "unmeasured";
    case Verdict::kKernel:
      return "kernel";
    case Verdict::kExpansion:
      return "expansion";
  }
  return "";
}

std::string KernelRecord::PackerName(size_t i) const { return absl::StrCat(name, "_pack", i); }

bool KernelRecord::Admits(absl::Span<const int64_t> values) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < minimums[i] || values[i] % divisors[i] != 0) return false;
  }
  return true;
}

std::string KernelRecord::Accuracy() const {
  if (exact) return "equal to the expansion, bit for bit";
  if (error < 0) return max_error;
  if (error == 0) return "equal to the expansion on the inputs of its check";
  return absl::StrFormat("within %.2g of %s", error, error_unit);
}

absl::Status KernelRecord::OutputDims(int i, absl::Span<const int64_t> values,
                                      absl::InlinedVector<int64_t, 8>* dims) const {
  dims->clear();
  for (const DimExpression& expression : out_shapes[i]) {
    absl::StatusOr<int64_t> dim = expression.Evaluate(values);
    if (!dim.ok()) return dim.status();
    dims->push_back(*dim);
  }
  return absl::OkStatus();
}

absl::StatusOr<KernelRecord> ParseKernelRecord(const NodeDef& node) {
  absl::Status status = CheckFields("kernel record", kKernelRecordFields, node);
  if (!status.ok()) return status;
  KernelRecord record;
  record.name = node.name();
  record.op = node.op();
  record.program = Text(node, kCompositeProgramField);
  if (record.name.empty()) return Malformed("name", "a kernel record without the kernel's name");
  if (record.program.empty()) return Malformed(kCompositeProgramField, "empty");
  for (const auto& [name, value] : node.attr()) {
    if (!name.empty() && name[0] != '_') record.attrs[name] = value;
  }
  status = ParseShapes(node, &record);
  if (!status.ok()) return status;
  status = ParsePacked(node, &record);
  if (!status.ok()) return status;
  status = ParseForwards(node, &record);
  if (!status.ok()) return status;
  record.library = Text(node, kLibraryField);
  record.library_sha256 = Text(node, kLibrarySha256Field);
  const AttrValue* barriers = Find(node, kBarriersField);
  record.barriers = barriers == nullptr || barriers->b();
  record.isa = Text(node, kIsaField);
  record.target = Text(node, kTargetField);
  record.device = Text(node, kDeviceField);
  const AttrValue* invariant = Find(node, kInvariantField);
  record.invariant = invariant != nullptr && invariant->b();
  status = ParseAlignment(node, &record);
  if (!status.ok()) return status;
  status = ParseLaunches(node, &record);
  if (!status.ok()) return status;
  status = ParseMeasured(node, &record);
  if (!status.ok()) return status;
  record.strategy = Text(node, kStrategyField);
  record.proof = Text(node, kProofField);
  record.algebra = Text(node, kAlgebraField);
  absl::StatusOr<Verdict> verdict = ParseVerdict(Text(node, kVerdictField));
  if (!verdict.ok()) return verdict.status();
  record.verdict = *verdict;
  return record;
}

absl::Status CheckExact(const KernelRecord& record) {
  if (record.exact) return absl::OkStatus();
  const std::string accuracy = record.Accuracy();
  return absl::InvalidArgumentError(absl::StrCat(
      "backend=\"tvm\" asks for the compiled kernel and numerics=\"strict\" for the bits of the "
      "TensorFlow ops, which kernel ",
      record.name, " of ", record.op, " does not promise",
      accuracy.empty() ? "" : absl::StrCat(" (", accuracy, ")"), "; drop one of them"));
}

}  // namespace composite
