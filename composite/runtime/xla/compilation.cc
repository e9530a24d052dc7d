#include "composite/runtime/xla/compilation.h"

#include "tensorflow/compiler/tf2xla/xla_compilation_device.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

constexpr char kName[] = "composite_compilation";

// Each compiler has a device of its own.
tensorflow::ResourceMgr* ResourcesOf(tensorflow::XlaCompiler* compiler) {
  return compiler->flib_runtime()->device()->resource_manager();
}

}  // namespace

absl::StatusOr<tensorflow::core::RefCountPtr<Compilation>> Compilation::Of(
    tensorflow::XlaCompiler* compiler) {
  tensorflow::ResourceMgr* resources = ResourcesOf(compiler);
  Compilation* found = nullptr;
  TF_RETURN_IF_ERROR(resources->LookupOrCreate<Compilation>(resources->default_container(), kName,
                                                            &found, [](Compilation** made) {
                                                              *made = new Compilation;
                                                              return absl::OkStatus();
                                                            }));
  return tensorflow::core::RefCountPtr<Compilation>(found);
}

absl::Status Compilation::Include(tensorflow::XlaCompiler* part) {
  tensorflow::ResourceMgr* resources = ResourcesOf(part);
  Ref();  // the manager takes it
  return resources->Create(resources->default_container(), kName, this);
}

absl::Time Compilation::Until(absl::Duration most) {
  if (!first_wait_.has_value()) first_wait_ = absl::Now();
  return *first_wait_ + most;
}

}  // namespace composite
