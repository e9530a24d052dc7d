#include "composite/runtime/program/node_attrs.h"

namespace composite {

const char* VersionAttr(absl::string_view op_name) {
  return op_name == kFunctionOp ? kFunctionAttr : kProgramAttr;
}

absl::string_view VersionOf(const tensorflow::AttrValue* version_attr) {
  if (version_attr == nullptr) return "";
  return version_attr->has_func() ? version_attr->func().name() : version_attr->s();
}

}  // namespace composite
