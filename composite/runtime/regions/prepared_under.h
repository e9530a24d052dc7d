// Under which choices a function was prepared: composite.options of the thread that called it
// first.
#ifndef COMPOSITE_RUNTIME_REGIONS_PREPARED_UNDER_H_
#define COMPOSITE_RUNTIME_REGIONS_PREPARED_UNDER_H_

#include "composite/runtime/kernels/options.h"
#include "composite/runtime/regions/region_options.h"
#include "tensorflow/core/framework/function.pb.h"

namespace composite {

// While a function is prepared, its thread has the choices that it was prepared under before, where
// the thread makes none itself; those it does make are remembered. TensorFlow prepares functions
// anew when its caches were cleared, as tf.random.set_seed does: none loses its regions by that.
class PreparedUnder {
 public:
  // Null for a graph that is no function's, of which nothing is remembered.
  explicit PreparedUnder(const tensorflow::FunctionDef* function);
  ~PreparedUnder();
  PreparedUnder(const PreparedUnder&) = delete;
  PreparedUnder& operator=(const PreparedUnder&) = delete;

 private:
  const RegionsOption own_regions_;
  const Options own_options_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_PREPARED_UNDER_H_
