#include "composite/runtime/expand/expand.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "composite/runtime/base/fingerprint.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/expand/evaluator.h"
#include "composite/runtime/expand/expansion_cache.h"
#include "composite/runtime/expand/inline_composites.h"
#include "composite/runtime/graph/facts.h"
#include "composite/runtime/graph/graph_builder.h"
#include "composite/runtime/program/signature.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::AttrValue;
using tensorflow::OpDef;

// Everything that an evaluation depends on whatever it reads. The dtypes follow from the
// attributes.
std::string BaseKey(const OpVersion& version, AttrSlice attrs) {
  std::string key = absl::StrCat(version.op_name, "\n", version.digest, "\n");
  for (const OpDef::AttrDef& attr : version.op_def.attr()) {
    const AttrValue* value = attrs.Find(attr.name());
    AppendDeterministic(value != nullptr ? *value : attr.default_value(), &key);
  }
  if (const AttrValue* whole = attrs.Find(kWholeAttr)) AppendDeterministic(*whole, &key);
  if (const AttrValue* inlined = attrs.Find(kInlinedAttr)) AppendDeterministic(*inlined, &key);
  if (attrs.Find(kLoopsAttr) != nullptr) absl::StrAppend(&key, kLoopsAttr);
  return key;
}

absl::Status CheckFacts(const OpVersion& version, const std::vector<tensorflow::DataType>& types,
                        absl::Span<const InputFact> facts) {
  if (types.size() != facts.size()) {
    return absl::InvalidArgumentError(absl::StrCat(version.op_name, " takes ", types.size(),
                                                   " tensors, was given ", facts.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == facts[i].dtype) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        version.op_name, ": input ", i, " is ", tensorflow::DataTypeString(facts[i].dtype),
        ", the attributes say ", tensorflow::DataTypeString(types[i])));
  }
  return absl::OkStatus();
}

std::shared_ptr<const tensorflow::FunctionLibraryDefinition> LibraryOf(
    const tensorflow::FunctionDef& function, std::vector<tensorflow::FunctionDef> inner) {
  tensorflow::FunctionDefLibrary library;
  *library.add_function() = function;
  for (tensorflow::FunctionDef& one : inner) *library.add_function() = std::move(one);
  return std::make_shared<const tensorflow::FunctionLibraryDefinition>(
      tensorflow::OpRegistry::Global(), library);
}

// A function is its own expansion, whatever the shapes.
absl::StatusOr<std::shared_ptr<const Expansion>> OfFunction(const OpVersion& version,
                                                            AttrSlice attrs,
                                                            absl::Span<const InputFact> facts) {
  auto expansion = std::make_shared<Expansion>();
  expansion->name = version.digest;
  expansion->library = version.function;
  expansion->fdef = *version.function->Find(version.digest);
  for (const bool inputs : {true, false}) {
    const OpDef& declared = version.op_def;
    const OpDef& own = expansion->fdef.signature();
    TF_ASSIGN_OR_RETURN(std::vector<FlatArg> node,
                        Flatten(inputs ? declared.input_arg() : declared.output_arg(), attrs));
    std::vector<tensorflow::DataType> types;
    for (const auto& arg : inputs ? own.input_arg() : own.output_arg()) types.push_back(arg.type());
    if (types == FlatTypes(node)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        version.op_name, ": its attributes do not fit the signature of ", version.digest));
  }
  TF_ASSIGN_OR_RETURN(std::vector<FlatArg> inputs, Flatten(version.op_def.input_arg(), attrs));
  TF_RETURN_IF_ERROR(CheckFacts(version, FlatTypes(inputs), facts));
  return expansion;
}

absl::StatusOr<std::vector<TensorValue>> AddInputs(size_t count, GraphBuilder* graph) {
  std::vector<TensorValue> tensors;
  for (size_t i = 0; i < count; ++i) {
    TF_ASSIGN_OR_RETURN(TensorValue tensor, graph->AddInput(static_cast<int>(i)));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// The expansion that a graph of a version's meaning is.
absl::StatusOr<std::shared_ptr<const Expansion>> Finished(const OpVersion& version, std::string key,
                                                          absl::Span<const InputFact> facts,
                                                          const FactReader& reader,
                                                          absl::Span<const TensorValue> inputs,
                                                          absl::Span<const TensorValue> outputs,
                                                          absl::Span<const std::string> names,
                                                          GraphBuilder* graph) {
  auto expansion = std::make_shared<Expansion>();
  expansion->reads = reader.Reads();
  for (const ReadFact& read : expansion->reads) {
    absl::StrAppend(&key, read.input, ",", read.what, ";");
  }
  absl::StrAppend(&key, "\n", ReadsKey(expansion->reads, facts));
  expansion->name = absl::StrFormat("__composite_%s_%016x", version.op_name, Fingerprint(key));
  TF_ASSIGN_OR_RETURN(expansion->fdef, graph->Finish(expansion->name, inputs, outputs, names));
  expansion->library = LibraryOf(expansion->fdef, graph->TakeFunctions());
  GlobalStats().expansions.fetch_add(1, std::memory_order_relaxed);
  return expansion;
}

absl::StatusOr<std::shared_ptr<const Expansion>> Evaluate(const OpVersion& version,
                                                          const std::string& base, AttrSlice given,
                                                          absl::Span<const InputFact> facts) {
  const OpDef& op_def = version.op_def;
  TF_ASSIGN_OR_RETURN(tensorflow::NodeDef complete, CompleteAttrs(op_def, given));
  const AttrSlice attrs(complete);
  TF_ASSIGN_OR_RETURN(std::vector<FlatArg> inputs, Flatten(op_def.input_arg(), attrs));
  TF_RETURN_IF_ERROR(CheckFacts(version, FlatTypes(inputs), facts));
  const std::vector<std::string> names = FlatNames(inputs);
  FactReader reader(facts, names);
  GraphBuilder graph(&reader);
  Emitter emitter(&graph, &reader);
  TF_ASSIGN_OR_RETURN(const std::vector<TensorValue> tensors, AddInputs(facts.size(), &graph));
  std::vector<std::string> whole;
  if (const AttrValue* digests = given.Find(kWholeAttr)) {
    whole.assign(digests->list().s().begin(), digests->list().s().end());
  }
  Evaluator evaluator(&emitter, std::move(whole), given.Find(kLoopsAttr) != nullptr);
  TF_ASSIGN_OR_RETURN(const auto outputs, evaluator.Run(version, tensors, attrs));
  TF_ASSIGN_OR_RETURN(std::vector<FlatArg> results, Flatten(op_def.output_arg(), attrs));
  return Finished(version, base, facts, reader, tensors, outputs, FlatNames(results), &graph);
}

// A function with the bodies of composites in the places of their nodes.
absl::StatusOr<std::shared_ptr<const Expansion>> Inlined(const OpVersion& version,
                                                         const std::string& base, AttrSlice attrs,
                                                         absl::Span<const InputFact> facts) {
  TF_ASSIGN_OR_RETURN(auto function, OfFunction(version, attrs, facts));
  if (!HasComposites(function->fdef)) return function;
  std::vector<std::string> names, results;
  for (const auto& arg : function->fdef.signature().input_arg()) names.push_back(arg.name());
  for (const auto& arg : function->fdef.signature().output_arg()) results.push_back(arg.name());
  FactReader reader(facts, names);
  GraphBuilder graph(&reader);
  Emitter emitter(&graph, &reader);
  TF_ASSIGN_OR_RETURN(const std::vector<TensorValue> tensors, AddInputs(facts.size(), &graph));
  TF_ASSIGN_OR_RETURN(const auto outputs, InlineComposites(*function, tensors, &emitter));
  return Finished(version, base, facts, reader, tensors, outputs, results, &graph);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Expansion>> GetExpansion(
    const std::shared_ptr<const OpVersion>& version, AttrSlice attrs,
    absl::Span<const InputFact> facts) {
  const std::string base = BaseKey(*version, attrs);
  if (auto found = ExpansionCache::Global().Find(base, facts); found != nullptr) return found;
  const bool is_inlined = attrs.Find(kInlinedAttr) != nullptr;
  auto expansion = version->function == nullptr ? Evaluate(*version, base, attrs, facts)
                   : is_inlined                 ? Inlined(*version, base, attrs, facts)
                                                : OfFunction(*version, attrs, facts);
  if (!expansion.ok()) return expansion.status();
  return ExpansionCache::Global().Insert(base, *std::move(expansion), facts);
}

}  // namespace composite
