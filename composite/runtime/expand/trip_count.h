// How many trips a loop makes at most, where its functions show that: TensorFlow's gradient keeps
// what the trips leave behind in lists, which XLA must know the length of.
#ifndef COMPOSITE_RUNTIME_EXPAND_TRIP_COUNT_H_
#define COMPOSITE_RUNTIME_EXPAND_TRIP_COUNT_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/emit/inner_function.h"
#include "composite/runtime/value/value.h"

namespace composite {

// What counts the trips of a loop that runs while `predicate` holds: `parameters` are the variables
// in its condition, `entered` in its body, which gives `next`; they start as `started`.
struct LoopVariables {
  absl::Span<const TensorValue> parameters, entered, next, started;
};

// The limit of a variable that starts at 0 or more and is one more after each trip, an integer
// before the loop: there are no more trips than that. -1 when no such variable decides.
Value MaxIterations(const TensorValue& predicate, const LoopVariables& variables,
                    const GraphBuilder& condition);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EXPAND_TRIP_COUNT_H_
