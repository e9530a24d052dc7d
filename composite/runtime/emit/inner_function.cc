#include "composite/runtime/emit/inner_function.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {

std::vector<TensorValue> AllCaptures(absl::Span<InnerFunction* const> functions) {
  std::vector<TensorValue> all;
  for (const InnerFunction* function : functions) {
    for (TensorValue& tensor : function->graph.captures()) {
      auto same = [&](const TensorValue& known) {
        return known.node == tensor.node && known.index == tensor.index;
      };
      if (absl::c_none_of(all, same)) all.push_back(std::move(tensor));
    }
  }
  return all;
}

absl::StatusOr<tensorflow::AttrValue> FinishInner(const std::string& stem,
                                                  absl::Span<const TensorValue> arguments,
                                                  absl::Span<const TensorValue> results,
                                                  InnerFunction* function) {
  std::vector<std::string> names;
  for (size_t i = 0; i < results.size(); ++i) names.push_back(absl::StrCat("result_", i));
  TF_ASSIGN_OR_RETURN(
      tensorflow::FunctionDef def,
      function->graph.Finish(absl::StrCat("__composite_", stem, "_"), arguments, results, names));
  tensorflow::AttrValue attr;
  attr.mutable_func()->set_name(def.signature().name());
  std::vector<tensorflow::FunctionDef> made = function->graph.TakeFunctions();
  made.push_back(std::move(def));
  function->outer.graph().AddFunctions(std::move(made));
  return attr;
}

absl::StatusOr<std::vector<TensorValue>> AddControlNode(
    tensorflow::NodeDef def, absl::Span<const TensorValue> inputs,
    absl::Span<InnerFunction* const> functions) {
  auto stateful = [](const InnerFunction* function) { return function->graph.is_stateful(); };
  if (absl::c_none_of(functions, stateful)) def.set_op(absl::StrCat("Stateless", def.op()));
  // TensorFlow turns it into a dataflow of Switch and Merge where the expansion is inlined.
  (*def.mutable_attr())["_lower_using_switch_merge"].set_b(true);
  const tensorflow::OpDef* op_def = nullptr;
  TF_RETURN_IF_ERROR(tensorflow::OpRegistry::Global()->LookUpOpDef(def.op(), &op_def));
  return functions[0]->outer.graph().AddNode(std::move(def), *op_def, inputs);
}

}  // namespace composite
