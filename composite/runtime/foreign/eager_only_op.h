// Ops that are registered while the process runs, for eager calls alone. TensorFlow finds the
// kernel of an eager call by all of its attributes, which takes as long as a small call; such an op
// has none.
#ifndef COMPOSITE_RUNTIME_FOREIGN_EAGER_ONLY_OP_H_
#define COMPOSITE_RUNTIME_FOREIGN_EAGER_ONLY_OP_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/types.h"

namespace composite {

// How many ops of a kind there are: each takes some kilobytes, and stays.
constexpr size_t kMostEagerOps = 1024;

struct EagerOnlyOp {
  std::string name;
  bool is_stateful = true;
  tensorflow::DataTypeVector inputs;
  tensorflow::DataTypeVector outputs;
};

// With a kernel on CPUs, which `make` makes.
absl::Status Register(
    const EagerOnlyOp& op,
    std::function<absl::Status(tensorflow::shape_inference::InferenceContext*)> shapes,
    std::function<tensorflow::OpKernel*(tensorflow::OpKernelConstruction*)> make);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_FOREIGN_EAGER_ONLY_OP_H_
