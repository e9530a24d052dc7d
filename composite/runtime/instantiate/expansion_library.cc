#include "composite/runtime/instantiate/expansion_library.h"

#include <string>
#include <utility>

#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using Library = tensorflow::FunctionLibraryDefinition;

bool NamesUnknown(const tensorflow::AttrValue& attr, const Library& library) {
  for (const auto& function : attr.list().func()) {
    if (!library.Contains(function.name())) return true;
  }
  return attr.has_func() && !library.Contains(attr.func().name());
}

// Whether a function of a library names one that is not in it.
bool NeedsOthers(const Library& library) {
  for (const std::string& name : library.ListFunctionNames()) {
    for (const tensorflow::NodeDef& node : library.Find(name)->node_def()) {
      for (const auto& [attr, value] : node.attr()) {
        if (NamesUnknown(value, library)) return true;
      }
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Library>> LibraryFor(const Library& caller,
                                                          const Expansion& expansion) {
  if (!NeedsOthers(*expansion.library)) return expansion.library;
  auto all = std::make_shared<Library>(caller);
  TF_RETURN_IF_ERROR(all->AddLibrary(*expansion.library));
  return std::shared_ptr<const Library>(std::move(all));
}

}  // namespace composite
