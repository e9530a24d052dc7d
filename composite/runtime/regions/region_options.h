// Which functions get regions: composite.options(regions=), COMPOSITE_REGIONS, and the functions
// that composite.accelerate made.
#ifndef COMPOSITE_RUNTIME_REGIONS_REGION_OPTIONS_H_
#define COMPOSITE_RUNTIME_REGIONS_REGION_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

enum class RegionsOption : signed char { kUnset, kOn, kOff };

// Of "on", "off" and "", which is kUnset. InvalidArgument for anything else.
absl::StatusOr<RegionsOption> ParseRegions(absl::string_view value);

// Whether a region can have a kernel in this process: its kernels are compiled here, or a model
// brought some.
bool RegionsCanHaveKernels();
void SetRegionsAreCompiled(bool are_compiled);
void NoteKernelsOfRegions();

// Of the calling thread.
RegionsOption& ThreadRegions();

// Whether the graphs that this thread has TensorFlow instantiate get regions: what the thread says,
// or else whether COMPOSITE_REGIONS=1.
bool RegionsAreOn();

// Whether a function, and what it calls, gets regions unless the thread says no. It says so by its
// name, which a saved model keeps.
bool IsAccelerated(absl::string_view function);

// What such a function, and what it calls, has outside of its regions, as a Selection takes it. Its
// name has it: "composite_accelerated_without.Softmax.Erf..f".
std::vector<std::string> DeniedIn(absl::string_view function);

// Whether a node may be in regions of this process, and there may be a region of this name: unless
// COMPOSITE_REGIONS_DENY has it, or COMPOSITE_REGIONS_ALLOW names others alone. Both are Selections
// whose entries are separated by commas.
bool IsAllowed(const tensorflow::Node& node);
bool IsAllowedRegion(absl::string_view region);

// How many ops that compute a region of this process has at least: COMPOSITE_REGIONS_MIN_OPS.
int LeastOps();

// Whether there may be a region of this name: of COMPOSITE_REGIONS_FUEL=n, the first n names that
// this process asks for. Equal regions have one name.
bool HasFuel(absl::string_view region);

// The only regions that the calling thread forms, by their names; all of them while it is empty.
using RegionNames = absl::flat_hash_set<std::string>;
absl::optional<RegionNames>& ThreadOnlyRegions();

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_REGION_OPTIONS_H_
