#include "composite/runtime/expand/expand.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "composite/runtime/base/fingerprint.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/expand/evaluator.h"
#include "composite/runtime/expand/expansion_cache.h"
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

// The values of input args and attributes, as the body sees them; `tensors` are all inputs.
absl::StatusOr<std::vector<Value>> Arguments(const OpDef& op_def,
                                             const std::vector<FlatArg>& inputs, AttrSlice attrs,
                                             GraphBuilder* graph,
                                             std::vector<TensorValue>* tensors) {
  std::vector<Value> arguments;
  int next = 0;
  for (const FlatArg& input : inputs) {
    Value::List list;
    for (size_t i = 0; i < input.types.size(); ++i) {
      TF_ASSIGN_OR_RETURN(TensorValue tensor, graph->AddInput(next++));
      tensors->push_back(tensor);
      list.push_back(Value::Tensor(std::move(tensor)));
    }
    arguments.push_back(input.is_list ? Value::MakeList(std::move(list)) : std::move(list[0]));
  }
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    TF_ASSIGN_OR_RETURN(Value value, FromAttr(*attrs.Find(attr.name())));
    arguments.push_back(std::move(value));
  }
  return arguments;
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
  std::vector<TensorValue> tensors;
  TF_ASSIGN_OR_RETURN(std::vector<Value> arguments,
                      Arguments(op_def, inputs, attrs, &graph, &tensors));
  std::vector<std::string> whole;
  if (const AttrValue* digests = given.Find(kWholeAttr)) {
    whole.assign(digests->list().s().begin(), digests->list().s().end());
  }
  Evaluator evaluator(&emitter, std::move(whole));
  TF_ASSIGN_OR_RETURN(auto lists, evaluator.Run(version, std::move(arguments), attrs));
  std::vector<TensorValue> outputs;
  for (auto& list : lists) outputs.insert(outputs.end(), list.begin(), list.end());
  TF_ASSIGN_OR_RETURN(std::vector<FlatArg> results, Flatten(op_def.output_arg(), attrs));
  auto expansion = std::make_shared<Expansion>();
  expansion->reads = reader.Reads();
  std::string key = base;
  for (const ReadFact& read : expansion->reads) {
    absl::StrAppend(&key, read.input, ",", read.what, ";");
  }
  absl::StrAppend(&key, "\n", ReadsKey(expansion->reads, facts));
  expansion->name = absl::StrFormat("__composite_%s_%016x", version.op_name, Fingerprint(key));
  TF_ASSIGN_OR_RETURN(expansion->fdef,
                      graph.Finish(expansion->name, tensors, outputs, FlatNames(results)));
  expansion->library = LibraryOf(expansion->fdef, graph.TakeFunctions());
  GlobalStats().expansions.fetch_add(1, std::memory_order_relaxed);
  return expansion;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Expansion>> GetExpansion(
    const std::shared_ptr<const OpVersion>& version, AttrSlice attrs,
    absl::Span<const InputFact> facts) {
  const std::string base = BaseKey(*version, attrs);
  if (auto found = ExpansionCache::Global().Find(base, facts); found != nullptr) return found;
  auto expansion = version->function != nullptr ? OfFunction(*version, attrs, facts)
                                                : Evaluate(*version, base, attrs, facts);
  if (!expansion.ok()) return expansion.status();
  return ExpansionCache::Global().Insert(base, *std::move(expansion), facts);
}

}  // namespace composite
