#include "composite/runtime/api/test_c_api.h"

#include "absl/status/status.h"
#include "composite/runtime/api/c_api_reply.h"
#include "composite/runtime/checking/broken_graph.h"
#include "composite/runtime/xla/kernel_choice.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

absl::Status BreakGraphs(const char* request, size_t size) {
  TF_ASSIGN_OR_RETURN(const auto record, ParseRequest<tensorflow::NodeDef>(request, size));
  TF_ASSIGN_OR_RETURN(ThreadBreaking(), ParseBreaking(Attr(record, "how").s()));
  return absl::OkStatus();
}

absl::Status ForceXlaKernels(const char* request, size_t size) {
  TF_ASSIGN_OR_RETURN(const auto record, ParseRequest<tensorflow::NodeDef>(request, size));
  XlaKernelsAreForced() = Attr(record, "on").b();
  return absl::OkStatus();
}

}  // namespace
}  // namespace composite

extern "C" int composite_test_break_graphs(const char* request, size_t size,
                                           composite_buffer* reply) {
  return composite::Reply(reply, [&] { return composite::BreakGraphs(request, size); });
}

extern "C" int composite_test_force_xla_kernels(const char* request, size_t size,
                                                composite_buffer* reply) {
  return composite::Reply(reply, [&] { return composite::ForceXlaKernels(request, size); });
}
