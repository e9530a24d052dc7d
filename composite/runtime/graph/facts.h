// What is known of an op's inputs, with a record of what was looked at.
#ifndef COMPOSITE_RUNTIME_GRAPH_FACTS_H_
#define COMPOSITE_RUNTIME_GRAPH_FACTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace composite {

// What is known of one input tensor. Inputs are flattened: each element of a list input has one.
struct InputFact {
  tensorflow::DataType dtype;
  tensorflow::PartialTensorShape shape;          // unknown rank by default
  const tensorflow::Tensor* constant = nullptr;  // not owned; null when the value is not known
};

// Inputs of more elements are no shapes, axes or sizes: their values are not asked for.
inline constexpr int64_t kMostConstantElements = 1024;

// One thing that an evaluation looked at: what it was is part of an expansion's key.
struct ReadFact {
  static constexpr int kRank = -1;
  static constexpr int kConstant = -2;

  int input;                  // of the flattened inputs
  int what;                   // a dim (>= 0), kRank or kConstant
  int64_t value = -1;         // size of the dim or rank; -1: it was not known
  tensorflow::Tensor tensor;  // kConstant, when value >= 0
};

// The value of one fact. -1 when it is not known; a constant that is known counts as 0.
int64_t FactValue(absl::Span<const InputFact> facts, int input, int what);

class FactReader {
 public:
  // Both must outlive the reader; names[i] is that of facts[i].
  FactReader(absl::Span<const InputFact> facts, absl::Span<const std::string> names)
      : facts_(facts), names_(names) {}

  int size() const { return static_cast<int>(facts_.size()); }
  const std::string& name(int input) const { return names_[input]; }
  const InputFact& fact(int input) const { return facts_[input]; }  // reads nothing

  int64_t Rank(int input) { return Read(input, ReadFact::kRank); }
  int64_t Dim(int input, int dim) { return Read(input, dim); }
  // Null when the value is not known.
  const tensorflow::Tensor* Constant(int input) {
    Read(input, ReadFact::kConstant);
    return facts_[input].constant;
  }

  std::vector<ReadFact> Reads() const;

 private:
  int64_t Read(int input, int what);

  absl::Span<const InputFact> facts_;
  absl::Span<const std::string> names_;
  std::map<std::pair<int, int>, int64_t> reads_;
};

// Bytes that are equal exactly for equal facts, of the given reads; for keys.
std::string ReadsKey(absl::Span<const ReadFact> reads, absl::Span<const InputFact> facts);

// Whether `facts` are what was read. Takes no lock.
bool Match(absl::Span<const ReadFact> reads, absl::Span<const InputFact> facts);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_GRAPH_FACTS_H_
