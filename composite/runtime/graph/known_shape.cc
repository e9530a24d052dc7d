#include "composite/runtime/graph/known_shape.h"

#include <vector>

namespace composite {

using tensorflow::PartialTensorShape;

PartialTensorShape KnownShape(absl::Span<const int64_t> sizes) {
  PartialTensorShape shape;
  if (PartialTensorShape::BuildPartialTensorShape(sizes, &shape).ok()) return shape;
  return PartialTensorShape(std::vector<int64_t>(sizes.size(), -1));
}

PartialTensorShape KnownShape(tensorflow::shape_inference::InferenceContext* context,
                              tensorflow::shape_inference::ShapeHandle shape) {
  if (!context->RankKnown(shape)) return PartialTensorShape();
  std::vector<int64_t> sizes;
  for (int i = 0; i < context->Rank(shape); ++i) {
    sizes.push_back(context->Value(context->Dim(shape, i)));  // -1 where it is not known
  }
  return KnownShape(sizes);
}

}  // namespace composite
