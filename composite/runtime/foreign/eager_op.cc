#include "composite/runtime/foreign/eager_op.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/foreign/eager_only_op.h"
#include "composite/runtime/foreign/call_op.h"
#include "composite/runtime/foreign/shape_rules.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::NodeDef;

absl::Status RegisterEagerOp(const std::string& name, const NodeDef& call) {
  const tensorflow::OpDef* called = nullptr;
  TF_RETURN_IF_ERROR(tensorflow::OpRegistry::Global()->LookUpOpDef(call.op(), &called));
  EagerOnlyOp op;
  op.name = name;
  op.is_stateful = called->is_stateful();
  TF_RETURN_IF_ERROR(GetNodeAttr(call, "Tin", &op.inputs));
  TF_RETURN_IF_ERROR(GetNodeAttr(call, "Tout", &op.outputs));
  ShapeRules rules;
  TF_RETURN_IF_ERROR(rules.Read(AttrSlice(call)));
  return Register(
      op,
      [rules](tensorflow::shape_inference::InferenceContext* c) { return InferShapes(rules, c); },
      [call](tensorflow::OpKernelConstruction* context) {
        return new TvmCallOp(context, AttrSlice(call));
      });
}

}  // namespace

absl::StatusOr<std::string> EagerOpFor(const NodeDef& call) {
  static auto* const mu = new ForkMutex;
  static auto* const names = new std::map<std::string, std::string>;
  absl::MutexLock lock(mu);
  std::string key;
  tensorflow::SerializeToStringDeterministic(call, &key);
  if (const auto known = names->find(key); known != names->end()) return known->second;
  if (names->size() == kMostEagerOps) return std::string();
  const std::string name = absl::StrCat("CompositeEagerTvmCall", names->size());
  TF_RETURN_IF_ERROR(RegisterEagerOp(name, call));
  (*names)[key] = name;
  return name;
}

}  // namespace composite
