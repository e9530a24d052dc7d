// What the graph pass asks of the kernel table.
#include <algorithm>

#include "composite/runtime/kernels/kernel_table.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/run/kernel_call.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {
namespace {

absl::optional<Signature> KnownSignature(absl::Span<const tensorflow::PartialTensorShape> shapes) {
  Signature call;
  for (const tensorflow::PartialTensorShape& shape : shapes) {
    if (!shape.IsFullyDefined()) return absl::nullopt;
    call.ranks.push_back(shape.dims());
    for (int i = 0; i < shape.dims(); ++i) call.dims.push_back(shape.dim_size(i));
  }
  return call;
}

// Whether kernels can take the node's inputs and outputs. Dtypes are attributes.
bool HasKernelDtypes(const OpVersion& version, tensorflow::AttrSlice attrs) {
  tensorflow::NodeDef node;
  node.set_op(version.op_name);
  for (const auto& [name, value] : attrs) (*node.mutable_attr())[name] = value;
  tensorflow::DataTypeVector dtypes, outputs;
  absl::Status status = tensorflow::InOutTypesForNode(node, version.op_def, &dtypes, &outputs);
  dtypes.insert(dtypes.end(), outputs.begin(), outputs.end());
  return !status.ok() || std::all_of(dtypes.begin(), dtypes.end(), IsKernelDtype);
}

bool MayCompile(const OpVersion& version, tensorflow::AttrSlice attrs) {
  return JitAllowed() && version.kernel_possible.load(std::memory_order_relaxed) &&
         HasKernelDtypes(version, attrs);
}

// Whether a node with what `snapshot` knows will run its expansion for good; empty where the
// snapshot has no say, since no kernel of its kind will come.
absl::optional<bool> Decide(const KernelSnapshot& snapshot, const absl::optional<Signature>& call,
                            bool may_compile) {
  if (!call.has_value()) {
    const bool any = std::any_of(
        snapshot.kernels.begin(), snapshot.kernels.end(),
        [](const InstalledKernel* kernel) { return kernel->record.verdict == Verdict::kKernel; });
    return any || may_compile ? absl::make_optional(false) : absl::nullopt;
  }
  const Choice choice = Choose(snapshot, *call, /*must=*/false);
  if (choice.kernel != nullptr) return false;
  if (choice.ones.has_value()) return !may_compile;
  if (choice.shape_class != nullptr && choice.shape_class->state == ShapeClass::kPending) {
    return false;
  }
  if (choice.slower != nullptr) return true;
  if (choice.shape_class != nullptr) return absl::nullopt;
  return may_compile && !snapshot.full ? absl::make_optional(false) : absl::nullopt;
}

}  // namespace

bool FinalVerdictIsExpansion(const OpVersion& version, tensorflow::AttrSlice attrs,
                             absl::Span<const tensorflow::PartialTensorShape> shapes) {
  const absl::StatusOr<Options> own = NodeOptions(attrs);
  const absl::StatusOr<Options> process = ProcessOptions();
  // Wrong options are an error, and the node's kernel reports it.
  if (!own.ok() || !process.ok()) return false;
  const Options options = own->Or(*process);
  if (options.expansion_only()) return true;
  if (options.must()) return false;
  const absl::optional<Signature> call = KnownSignature(shapes);
  const bool may_compile = MayCompile(version, attrs);
  KernelTable& table = KernelTable::Global();
  if (const auto* constants = attrs.Find(kConstantsAttr)) {
    const auto verdict =
        Decide(table.Group(version, attrs, constants)->snapshot(), call, may_compile);
    if (verdict.has_value()) return *verdict;
  }
  return Decide(table.Group(version, attrs)->snapshot(), call, may_compile).value_or(true);
}

}  // namespace composite
