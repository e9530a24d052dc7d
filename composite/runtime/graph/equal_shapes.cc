#include "composite/runtime/graph/equal_shapes.h"

#include <algorithm>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace composite {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// Whether shapes of known ranks have, aligned at the end, two dims that are unknown and not known
// to be the same.
bool MayNotFit(ShapeHandle x, ShapeHandle y, InferenceContext* context) {
  const int common = std::min(context->Rank(x), context->Rank(y));
  for (int d = 1; d <= common; ++d) {
    const DimensionHandle one = context->Dim(x, -d), other = context->Dim(y, -d);
    if (!context->ValueKnown(one) && !context->ValueKnown(other) && !one.SameHandle(other)) {
      return true;
    }
  }
  return false;
}

}  // namespace

void ForgetUncertainShape(const tensorflow::Node* node, tensorflow::ShapeRefiner* refiner) {
  if (node->type_string() != "Equal" && node->type_string() != "NotEqual") return;
  bool must_fit = true;
  if (!TryGetNodeAttr(node->attrs(), "incompatible_shape_error", &must_fit) || must_fit) return;
  InferenceContext* context = refiner->GetContext(node);
  const ShapeHandle x = context->input(0), y = context->input(1);
  if (context->RankKnown(x) && context->RankKnown(y) && MayNotFit(x, y, context)) {
    context->set_output(0, context->UnknownShape());
  }
}

}  // namespace composite
