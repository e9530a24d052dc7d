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
#include "composite/runtime/expand/expand.h"

namespace composite {

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

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_GRAPH_FACTS_H_
