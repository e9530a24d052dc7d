// What is known of the inputs of a node that is running, and whether their shapes fit its body.
#ifndef COMPOSITE_RUNTIME_INSTANTIATE_INPUT_FACTS_H_
#define COMPOSITE_RUNTIME_INSTANTIATE_INPUT_FACTS_H_

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/graph/facts.h"
#include "composite/runtime/request/kernel_shapes.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

// Dtypes and shapes, without values.
absl::InlinedVector<InputFact, 8> ShapeFacts(tensorflow::OpKernelContext* context);

// Whether an input has no elements. oneDNN's ops, which optimizers rewrite graphs to on some
// machines, end the process in TF 2.21 when an inner product is empty.
bool HasEmptyInput(tensorflow::OpKernelContext* context);

// The shapes alone, as kernels are chosen by.
Signature SignatureOf(tensorflow::OpKernelContext* context);

// InvalidArgument with the author's place if the shapes do not fit: what the kernels of the nodes
// say then has neither the line nor its op, and some say nothing.
absl::Status CheckShapes(const Expansion& expansion, absl::Span<const InputFact> facts);

// Whether what the optimizers made of the body may run: the shapes fit, and no product in the body
// is known to be empty (see HasEmptyInput).
bool MayRunOptimized(const Expansion& expansion, absl::Span<const InputFact> facts);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_INSTANTIATE_INPUT_FACTS_H_
