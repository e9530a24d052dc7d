// Calls of TensorFlow ops by name on values, as Python writes them: which values become tensors of
// which dtype, which become attributes, what is derived and what has its default.
#ifndef COMPOSITE_RUNTIME_EMIT_EMITTER_H_
#define COMPOSITE_RUNTIME_EMIT_EMITTER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "composite/runtime/graph/facts.h"
#include "composite/runtime/graph/graph_builder.h"
#include "composite/runtime/value/value.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace composite {

// The arguments of a call, sorted out.
struct Binding {
  std::vector<std::vector<TensorValue>> inputs;  // by input arg; one tensor but for a list
  tensorflow::NodeDef def;                       // op and all attributes
};

class Emitter {
 public:
  Emitter(GraphBuilder* graph, FactReader* facts) : graph_(*graph), facts_(*facts) {}
  // Into the graph of a function inside of another's.
  Emitter(GraphBuilder* graph, const Emitter& outer) : graph_(*graph), facts_(outer.facts_) {}

  GraphBuilder& graph() { return graph_; }

  // A node of a TensorFlow op. The value of its output; None for no output; a list for several. A
  // list output is a list. `name` is that of the node, made unique; the op's by default.
  absl::StatusOr<Value> Call(const std::string& op, absl::Span<const std::string> keywords,
                             absl::Span<const Value> values, absl::string_view name = "");

  // The node of arguments that were bound; its value as of Call.
  absl::StatusOr<Value> AddBound(const tensorflow::OpDef& op_def, Binding binding);

  // Arguments of any op, by name; see above.
  absl::StatusOr<Binding> Bind(const tensorflow::OpDef& op_def,
                               absl::Span<const std::string> keywords,
                               absl::Span<const Value> values);

  // `value` as a tensor: a constant, a stack of tensors, a shape, a weak number cast. A tensor that
  // has a dtype must have this one.
  absl::StatusOr<TensorValue> ToTensor(const Value& value, tensorflow::DataType dtype);

  // `value` without tensors in it, for an attribute or a decision: shapes are read, an input's
  // value is read where it is known. NotYet names the fact that is missing.
  absl::StatusOr<Value> Known(const Value& value);

  // The dims of a shape: ints, and weak numbers for those that are not known. NotYet when the rank
  // is not known.
  absl::StatusOr<Value::List> Dims(const ShapeValue& shape);
  absl::StatusOr<int64_t> Rank(const ShapeValue& shape);
  absl::StatusOr<Value> Dim(const ShapeValue& shape, int index);
  // The rank of a tensor: an int, or a weak number where it is not known.
  absl::StatusOr<Value> RankOf(TensorValue tensor);

  // What has a shape and a dtype of its own: a tensor, or a number or list that stands for one.
  absl::StatusOr<TensorValue> AsTensor(const Value& value);
  // len(value), and value taken apart into `size` values, as Python has them.
  absl::StatusOr<Value> Length(const Value& value);
  absl::StatusOr<std::vector<Value>> Unpack(const Value& value, int size);
  // `value` as an output of these dtypes: one tensor, or a list of them.
  absl::StatusOr<std::vector<TensorValue>> ToTensors(const Value& value,
                                                     absl::Span<const tensorflow::DataType> types,
                                                     bool is_list);

 private:
  absl::StatusOr<TensorValue> Call1(const std::string& op, absl::Span<const std::string> keywords,
                                    absl::Span<const Value> values);
  absl::StatusOr<TensorValue> ShapeToTensor(const ShapeValue& shape, tensorflow::DataType dtype);
  absl::StatusOr<Value> KnownTensor(const TensorValue& tensor);
  std::string NameOf(const TensorValue& tensor) const;

  GraphBuilder& graph_;
  FactReader& facts_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EMIT_EMITTER_H_
