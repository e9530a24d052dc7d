#include "composite/runtime/tensorflow/region_pass.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/program/function_digest.h"
#include "composite/runtime/regions/library_regions.h"
#include "composite/runtime/regions/region_options.h"
#include "composite/runtime/tensorflow/composition.h"
#include "composite/runtime/xla/xla_region.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Node;

// The functions that get regions, apart: XLA's have others.
struct Wanted {
  DeniedOf of_tensorflow, of_xla;
};

void AddReached(const FunctionLibraryDefinition& library, const FunctionDef& function,
                DeniedOf* names) {
  const std::vector<std::string> denied = DeniedIn(function.signature().name());
  const FunctionDefLibrary all = ReachedFrom(library, function);
  for (const FunctionDef& reached : all.function()) {
    (*names)[reached.signature().name()].insert(denied.begin(), denied.end());
  }
}

Options OptionsHere() {
  const absl::StatusOr<Options> process = ProcessOptions();
  return process.ok() ? ThreadOptions().Or(*process) : ThreadOptions();
}

bool XlaMayCallKernels() { return OptionsHere().xla_wait != kXlaNever; }

// `function` is where the graph comes from, null for a session's.
Wanted FunctionsWithRegions(const FunctionLibraryDefinition& library, const FunctionDef* function) {
  DeniedOf names;
  if (function != nullptr && (RegionsAreOn() || IsAccelerated(function->signature().name()))) {
    AddReached(library, *function, &names);
  }
  for (const std::string& name : library.ListFunctionNames()) {
    if (!IsAccelerated(name) && (!RegionsAreOn() || names.count(name) != 0)) continue;
    auto record = library.FindRecord(name);
    if (record != nullptr) AddReached(library, record->fdef(), &names);
  }
  Wanted wanted;
  if (names.empty()) return wanted;
  const absl::flat_hash_set<std::string> of_xla = FunctionsOfXla(library);
  const auto add = [&](const std::string& name, const FunctionDef& body, const auto& denied) {
    if (of_xla.contains(name)) {
      if (!IsMade(body) && XlaMayCallKernels()) wanted.of_xla.emplace(name, denied);
    } else if (!KeepsTfOps(body) && !IsEagerWrapper(body)) {
      wanted.of_tensorflow.emplace(name, denied);
    }
  };
  for (const auto& [name, denied] : names) {
    auto record = library.FindRecord(name);
    if (record != nullptr) {
      add(name, record->fdef(), denied);
    } else if (function != nullptr && name == function->signature().name()) {
      add(name, *function, denied);
    }
  }
  // Its graph is run by TensorFlow, whatever else runs the function.
  if (function != nullptr) wanted.of_xla.erase(function->signature().name());
  return wanted;
}

// Whether a region that is formed now can be anything but its expansion: it may get a kernel, or
// say why it has none, where kernels are a must.
bool RegionsMatter() {
  if (RegionsCanHaveKernels()) return true;
  return !ProcessOptions().ok() || OptionsHere().must();
}

// Not in the trips of loops, in which verdicts do not hold: XLA moves what it makes of weights out
// of a loop of its own code, and not what a kernel makes of them. A loop may be a region as a
// whole.
absl::StatusOr<int64_t> AddXlaRegions(DeniedOf wanted,
                                      absl::FunctionRef<bool(const Node&)> may_join,
                                      FunctionLibraryDefinition* library) {
  for (const std::string& name : FunctionsOfLoops(*library)) wanted.erase(name);
  const auto may_join_xla = [&](const Node& node) {
    return MayJoinXlaRegion(node) && may_join(node);
  };
  Joining joining{may_join_xla, /*writes_in_place=*/false};
  joining.may_be = &MayBeXlaRegion;
  return FormRegions(wanted, joining, nullptr, library, nullptr);
}

}  // namespace

absl::StatusOr<int64_t> AddRegions(const tensorflow::GraphOptimizationPassOptions& options,
                                   const Devices& devices) {
  if (options.flib_def == nullptr || !RegionsMatter()) return 0;
  const FunctionDef* function = options.function_def;
  const auto may_join = [&](const Node& node) {
    return PlacedOn(node.requested_device(), devices).has_kernels();
  };
  const Wanted wanted = FunctionsWithRegions(*options.flib_def, function);
  TF_ASSIGN_OR_RETURN(int64_t count,
                      FormRegions(wanted.of_tensorflow, {may_join, AreHostCpus(devices)}, function,
                                  options.flib_def, options.graph));
  TF_ASSIGN_OR_RETURN(const int64_t of_xla,
                      AddXlaRegions(wanted.of_xla, may_join, options.flib_def));
  count += of_xla;
  Count(GlobalStats().regions, count);
  return count;
}

absl::StatusOr<FunctionDefLibrary> WithRegionsForXla(const FunctionDefLibrary& library) {
  FunctionDefLibrary changed;
  if (library.function().empty()) return absl::InvalidArgumentError("there is no function");
  const FunctionDef& function = library.function(0);
  const bool is_wanted = RegionsAreOn() || IsAccelerated(function.signature().name());
  if (!is_wanted || !RegionsMatter() || !XlaMayCallKernels()) return changed;
  FunctionLibraryDefinition known(tensorflow::OpRegistry::Global());
  TF_RETURN_IF_ERROR(known.AddLibrary(library));
  DeniedOf wanted;
  AddReached(known, function, &wanted);
  std::map<std::string, std::string> before;
  for (const FunctionDef& one : library.function()) {
    const std::string& name = one.signature().name();
    before[name] = one.SerializeAsString();
    if (IsMade(one)) wanted.erase(name);
  }
  const auto may_join = [&](const Node& node) {
    return PlacedOn(node.requested_device(), Devices()).has_kernels();
  };
  TF_ASSIGN_OR_RETURN(const int64_t count, AddXlaRegions(wanted, may_join, &known));
  Count(GlobalStats().regions, count);
  if (count == 0) return changed;
  const FunctionDefLibrary after = ReachedFrom(known, *known.Find(function.signature().name()));
  for (const FunctionDef& one : after.function()) {
    const auto was = before.find(one.signature().name());
    if (was != before.end() && was->second == one.SerializeAsString()) continue;
    *changed.add_function() = one;
  }
  return changed;
}

}  // namespace composite
