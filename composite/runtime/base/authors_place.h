// Where the author wrote a node of an expansion.
#ifndef COMPOSITE_RUNTIME_BASE_AUTHORS_PLACE_H_
#define COMPOSITE_RUNTIME_BASE_AUTHORS_PLACE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

// "ops.py:12:5: " of a node that GraphBuilder named "MatMul (ops.py:12:5)", else "".
inline std::string AuthorsPlace(const tensorflow::NodeDef& node) {
  const auto& names = node.experimental_debug_info().original_node_names();
  if (names.empty()) return "";
  const std::string& name = names[0];
  const size_t open = name.rfind(" (");
  if (open == std::string::npos || name.back() != ')') return "";
  return absl::StrCat(name.substr(open + 2, name.size() - open - 3), ": ");
}

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_BASE_AUTHORS_PLACE_H_
