#include "composite/runtime/api/foreign_c_api.h"

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "composite/runtime/api/c_api_reply.h"
#include "composite/runtime/foreign/library.h"
#include "composite/runtime/foreign/tvm_device.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::NodeDef;

tvm_ffi::Libraries LibrariesOf(const NodeDef& request) {
  return {Attr(request, "ffi").s(), Attr(request, "runtime").s(), Attr(request, "cuda").s()};
}

absl::StatusOr<NodeDef> Answer(const absl::StatusOr<Loaded>& loaded) {
  if (!loaded.ok()) return loaded.status();
  NodeDef answer;
  (*answer.mutable_attr())["library"].set_s(loaded->id);
  auto* functions = (*answer.mutable_attr())["functions"].mutable_list();
  for (const std::string& name : loaded->library->names()) functions->add_s(name);
  return answer;
}

absl::StatusOr<NodeDef> LoadLibrary(const NodeDef& node) {
  return Answer(
      LoadForeignLibrary(Attr(node, "path").s(), Attr(node, "sha256").s(), LibrariesOf(node)));
}

absl::StatusOr<NodeDef> LoadObject(const NodeDef& node) {
  void* object = reinterpret_cast<void*>(static_cast<intptr_t>(Attr(node, "object").i()));
  if (object == nullptr) return absl::InvalidArgumentError("object: a null pointer");
  return Answer(LoadForeignObject(object, Attr(node, "serial").b(), Attr(node, "returns").b(),
                                  LibrariesOf(node)));
}

absl::StatusOr<NodeDef> FindFunction(const NodeDef& node) {
  TF_ASSIGN_OR_RETURN(auto library, FindForeignLibrary(Attr(node, "library").s()));
  TF_ASSIGN_OR_RETURN(ForeignLibrary::Found found, library->Find(Attr(node, "function").s()));
  const std::string& device = Attr(node, "device").s();
  if (!device.empty()) TF_RETURN_IF_ERROR(FindTvmDevice(device, LibrariesOf(node)).status());
  NodeDef answer;
  (*answer.mutable_attr())["returns"].set_b(found.returns);
  return answer;
}

}  // namespace
}  // namespace composite

extern "C" {

int composite_load_foreign_library(const char* request, size_t size, composite_buffer* reply) {
  return composite::Serve(request, size, reply, composite::LoadLibrary);
}

int composite_load_foreign_object(const char* request, size_t size, composite_buffer* reply) {
  return composite::Serve(request, size, reply, composite::LoadObject);
}

int composite_find_foreign_function(const char* request, size_t size, composite_buffer* reply) {
  return composite::Serve(request, size, reply, composite::FindFunction);
}

}  // extern "C"
