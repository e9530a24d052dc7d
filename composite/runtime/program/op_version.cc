#include "composite/runtime/program/op_version.h"

#include "absl/strings/str_cat.h"

namespace composite {

std::string DefinitionOf(const OpVersion& version) {
  if (version.program.module.empty()) return version.place;
  return absl::StrCat(version.place, " (module ", version.program.module, ")");
}

}  // namespace composite
