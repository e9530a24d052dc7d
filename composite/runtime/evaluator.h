// Runs a program over values: the partial evaluation behind expand.h. One object for one expansion.
#ifndef COMPOSITE_RUNTIME_EVALUATOR_H_
#define COMPOSITE_RUNTIME_EVALUATOR_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/emitter.h"
#include "composite/runtime/program.h"
#include "composite/runtime/registry.h"
#include "composite/runtime/value.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace composite {

class Evaluator {
 public:
  // The emitter must outlive the evaluator.
  explicit Evaluator(Emitter* emitter) : emitter_(*emitter) {}

  // The op's outputs in declared order, each a tensor (or a list of them) of its declared dtype.
  // `arguments`: the values of the input args (a tensor, or a list of them) and of all attributes.
  // Errors carry the author's place.
  absl::StatusOr<std::vector<std::vector<TensorValue>>> Run(const OpVersion& version,
                                                            std::vector<Value> arguments,
                                                            tensorflow::AttrSlice attrs);

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
  absl::StatusOr<std::vector<Value>> RunIf(const Frame& frame, const ProgramNode& node,
                                           std::vector<Value> inputs);
  // The trips of a loop whose conditions are known, one after the other.
  absl::StatusOr<std::vector<Value>> RunWhile(const Frame& frame, const ProgramNode& node,
                                              std::vector<Value> inputs);
  // The truth of a condition; NotYet names the fact that is missing.
  absl::StatusOr<bool> Decide(Value condition);
  absl::StatusOr<Value> RunCall(const Frame& frame, const ProgramNode& node,
                                const std::vector<Value>& inputs);
  absl::StatusOr<Value> RunComposite(const Frame& frame, const ProgramNode& node,
                                     const std::vector<Value>& inputs);

  Emitter& emitter_;
  int64_t steps_ = 0;
  int nesting_ = 0;  // of regions, through all composites: the depth of the C++ stack
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EVALUATOR_H_
