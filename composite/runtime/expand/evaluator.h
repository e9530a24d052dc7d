// Runs a program over values: the partial evaluation behind expand.h. One object for one expansion.
#ifndef COMPOSITE_RUNTIME_EXPAND_EVALUATOR_H_
#define COMPOSITE_RUNTIME_EXPAND_EVALUATOR_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/program/op_version.h"
#include "composite/runtime/program/program.h"
#include "composite/runtime/value/value.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace composite {

class CarriedValues;
struct InnerFunction;
struct Trip;

// What the author calls a result of an `if` or a loop: "`y`", or "a value" when it has no name.
std::string NameOf(const ProgramNode& node, int result);

// Whether the body raised the error itself, by `raise` or `assert`.
bool IsRaised(const absl::Status& status);

class Evaluator {
 public:
  // The emitter must outlive the evaluator. `whole`: versions of composites that are not expanded
  // where the program calls them. `keeps_loops`: see kLoopsAttr.
  explicit Evaluator(Emitter* emitter, std::vector<std::string> whole = {},
                     bool keeps_loops = false)
      : emitter_(emitter), whole_(std::move(whole)), keeps_loops_(keeps_loops) {}

  // The op's outputs, flattened, of their declared dtypes. `inputs` are flattened, too, and `attrs`
  // are complete. `scope` begins the names of nodes: "Outer/", or nothing. Errors carry the
  // author's place.
  absl::StatusOr<std::vector<TensorValue>> Run(const OpVersion& version,
                                               absl::Span<const TensorValue> inputs,
                                               tensorflow::AttrSlice attrs,
                                               const std::string& scope = "");

 private:
  // Which op's program is evaluated, how many composites deep.
  struct Frame {
    const OpVersion& version;
    int depth;
    std::string scope;  // of node names: "Outer/Inner/"
  };

  absl::StatusOr<std::vector<std::vector<TensorValue>>> RunOp(const Frame& frame,
                                                              std::vector<Value> arguments,
                                                              tensorflow::AttrSlice attrs);
  absl::StatusOr<std::vector<Value>> RunRegion(const Frame& frame, int region,
                                               std::vector<Value> arguments);
  absl::StatusOr<std::vector<Value>> RunNodes(const Frame& frame, const ProgramRegion& region,
                                              std::vector<Value> slots);
  absl::StatusOr<std::vector<Value>> RunNode(const Frame& frame, const ProgramNode& node,
                                             std::vector<Value> inputs);
  absl::StatusOr<Value> RunSimple(const ProgramNode& node, const std::vector<Value>& inputs);
  // Evaluates a region into the graph of an inner function.
  absl::StatusOr<std::vector<Value>> RunInside(InnerFunction* function, const Frame& frame,
                                               int region, std::vector<Value> arguments);

  // evaluator_if.cc: one branch, or both into an If.
  absl::StatusOr<std::vector<Value>> RunIf(const Frame& frame, const ProgramNode& node,
                                           std::vector<Value> inputs);
  absl::StatusOr<std::vector<Value>> RunBoth(const Frame& frame, const ProgramNode& node,
                                             const TensorValue& condition,
                                             std::vector<Value> inputs);
  absl::Status Assert(const TensorValue& condition, bool raised_when, const absl::Status& error);

  // evaluator_while.cc: the trips of a loop whose conditions are known, one after the other; from
  // the first trip on that a tensor decides, or loops are kept from, a While.
  absl::StatusOr<std::vector<Value>> RunWhile(const Frame& frame, const ProgramNode& node,
                                              std::vector<Value> inputs);
  absl::StatusOr<absl::optional<bool>> Predicate(const Frame& frame, const ProgramNode& node,
                                                 const std::vector<Value>& inputs);
  absl::StatusOr<std::vector<Value>> RunLoop(const Frame& frame, const ProgramNode& node,
                                             std::vector<Value> inputs);
  absl::Status RunTrip(const Frame& frame, const ProgramNode& node,
                       const std::vector<Value>& invariant, CarriedValues* carried, Trip* trip);
  absl::StatusOr<std::vector<Value>> FinishLoop(const Frame& frame, const ProgramNode& node,
                                                const CarriedValues& carried, Trip* trip);

  absl::StatusOr<Value> RunCall(const Frame& frame, const ProgramNode& node,
                                const std::vector<Value>& inputs);
  absl::StatusOr<Value> RunComposite(const Frame& frame, const ProgramNode& node,
                                     absl::Span<const std::string> keywords,
                                     absl::Span<const Value> values);

  Emitter* emitter_;  // of the graph or the inner function that is being made
  const std::vector<std::string> whole_;
  const bool keeps_loops_;
  int64_t steps_ = 0;
  int nesting_ = 0;  // of regions, through all composites: the depth of the C++ stack
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EXPAND_EVALUATOR_H_
