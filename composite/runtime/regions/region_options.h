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

namespace composite {

enum class RegionsOption : signed char { kUnset, kOn, kOff };

// Of "on", "off" and "", which is kUnset. InvalidArgument for anything else.
absl::StatusOr<RegionsOption> ParseRegions(absl::string_view value);

// Of the calling thread.
RegionsOption& ThreadRegions();

// Whether the graphs that this thread has TensorFlow instantiate get regions: what the thread says,
// or else whether COMPOSITE_REGIONS=1.
bool RegionsAreOn();

// Whether a function, and what it calls, gets regions unless the thread says no. It says so by its
// name, which a saved model keeps.
bool IsAccelerated(absl::string_view function);

// The ops that such a function, and what it calls, has outside of its regions. Its name has them:
// "composite_accelerated_without.Softmax.Erf..f".
std::vector<std::string> DeniedOps(absl::string_view function);

// Whether nodes of an op may be in regions of this process: unless COMPOSITE_REGIONS_DENY lists it,
// or COMPOSITE_REGIONS_ALLOW is set and does not. Ops are separated by commas.
bool IsAllowed(absl::string_view op);

// Whether there may be a region of this name: of COMPOSITE_REGIONS_FUEL=n, the first n names that
// this process asks for. Equal regions have one name.
bool HasFuel(absl::string_view region);

// The only regions that the calling thread forms, by their names; all of them while it is empty.
using RegionNames = absl::flat_hash_set<std::string>;
absl::optional<RegionNames>& ThreadOnlyRegions();

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_REGION_OPTIONS_H_
