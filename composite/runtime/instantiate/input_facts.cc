#include "composite/runtime/instantiate/input_facts.h"

#include "composite/runtime/expand/body_shapes.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {

absl::InlinedVector<InputFact, 8> ShapeFacts(tensorflow::OpKernelContext* context) {
  absl::InlinedVector<InputFact, 8> facts(context->num_inputs());
  for (int i = 0; i < context->num_inputs(); ++i) {
    facts[i].dtype = context->input_dtype(i);
    facts[i].shape = context->input(i).shape();
  }
  return facts;
}

bool HasEmptyInput(tensorflow::OpKernelContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (context->input(i).NumElements() == 0) return true;
  }
  return false;
}

Signature SignatureOf(tensorflow::OpKernelContext* context) {
  Signature call;
  for (int i = 0; i < context->num_inputs(); ++i) {
    const tensorflow::TensorShape& shape = context->input(i).shape();
    call.ranks.push_back(shape.dims());
    for (int d = 0; d < shape.dims(); ++d) call.dims.push_back(shape.dim_size(d));
  }
  return call;
}

absl::Status CheckShapes(const Expansion& expansion, absl::Span<const InputFact> facts) {
  TF_ASSIGN_OR_RETURN(const tensorflow::FunctionBody* body, expansion.Body());
  return BodyShapes(expansion, *body, facts).Run();
}

bool MayRunOptimized(const Expansion& expansion, absl::Span<const InputFact> facts) {
  const absl::StatusOr<const tensorflow::FunctionBody*> body = expansion.Body();
  if (!body.ok()) return false;
  BodyShapes shapes(expansion, **body, facts);
  return shapes.Run().ok() && !shapes.has_empty_product();
}

}  // namespace composite
