// What is known of TensorFlow's lists of tensors, which a graph knows as variants without a shape:
// how many tensors there are, and the shape of each. TensorFlow's own inference loses both in a
// While, and the number everywhere.
#ifndef COMPOSITE_RUNTIME_GRAPH_LIST_SHAPES_H_
#define COMPOSITE_RUNTIME_GRAPH_LIST_SHAPES_H_

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/common_runtime/shape_refiner.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

struct ListShape {
  bool known = false;  // by its maker; nothing else says anything if it is not
  int64_t length = -1;
  bool written = false;
  tensorflow::PartialTensorShape bound;  // what the list was made for
  tensorflow::PartialTensorShape items;  // what all that was written has in common

  const tensorflow::PartialTensorShape& element() const { return written ? items : bound; }
  bool operator==(const ListShape& other) const;
};

// What holds for a list that is one or the other.
ListShape Common(const ListShape& a, const ListShape& b);

class ListShapes {
 public:
  ListShape Of(const tensorflow::Node* node, int output) const;
  void Set(const tensorflow::Node* node, int output, ListShape list);

  // Follows a node whose shapes were inferred: notes what list it gives, or says of the tensor that
  // it takes from one what is known of that.
  absl::Status Follow(const tensorflow::Node* node, tensorflow::ShapeRefiner* refiner);

 private:
  absl::flat_hash_map<std::pair<const tensorflow::Node*, int>, ListShape> lists_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_GRAPH_LIST_SHAPES_H_
