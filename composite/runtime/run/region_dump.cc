#include "composite/runtime/run/region_dump.h"

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "composite/runtime/base/fingerprint.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/expand/expand.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/public/version.h"

namespace composite {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::OpKernelContext;
using tensorflow::PartialTensorShape;

constexpr size_t kMostShapes = 4;                 // of one region
constexpr int64_t kMostBytes = int64_t{1} << 30;  // of inputs; a proto has no more than twice that

const std::string& Folder() {
  static const std::string& folder = *[] {
    const char* value = std::getenv("COMPOSITE_REGIONS_DUMP");
    return new std::string(value != nullptr ? value : "");
  }();
  return folder;
}

struct Dumped {
  ForkMutex mutex;
  std::map<std::string, std::set<std::string>> shapes ABSL_GUARDED_BY(mutex);  // by function
};

// Whether a region with these shapes was not dumped yet, and is to be.
bool IsNew(const std::string& function, const std::string& shapes) {
  static Dumped& dumped = *new Dumped();
  absl::MutexLock lock(dumped.mutex);
  std::set<std::string>& known = dumped.shapes[function];
  return known.size() < kMostShapes && known.insert(shapes).second;
}

absl::Status AddInputs(OpKernelContext* context, tensorflow::AttrValue* inputs) {
  inputs->mutable_list();
  int64_t bytes = 0;
  for (int i = 0; i < context->num_inputs(); ++i) {
    const tensorflow::Tensor& tensor = context->input(i);
    bytes += tensor.TotalBytes();
    if (!tensorflow::DataTypeCanUseMemcpy(tensor.dtype()) || bytes > kMostBytes) {
      return absl::FailedPreconditionError(bytes > kMostBytes ? "its inputs have more than 1 GB"
                                                              : "an input is no plain tensor");
    }
    tensor.AsProtoTensorContent(inputs->mutable_list()->add_tensor());
  }
  return absl::OkStatus();
}

// Files appear complete, and equal names have equal regions and shapes.
absl::Status Write(const GraphDef& dump, const std::string& path) {
  tensorflow::Env* env = tensorflow::Env::Default();
  TF_RETURN_IF_ERROR(env->RecursivelyCreateDir(Folder()));
  std::string temporary = absl::StrCat(path, ".");
  if (!env->CreateUniqueFileName(&temporary, ".part")) {
    return absl::UnavailableError(absl::StrCat("no new file can be made beside ", path));
  }
  TF_RETURN_IF_ERROR(tensorflow::WriteBinaryProto(env, temporary, dump));
  return env->RenameFile(temporary, path);
}

// The region's function with the bodies of its composites in their places: whoever replays it may
// not have these. One that has no such expansion is dumped as it is.
tensorflow::FunctionDefLibrary FunctionOf(const NodeDef& node, const OpVersion& version,
                                          OpKernelContext* context, std::string* name) {
  *name = version.digest;
  std::vector<InputFact> facts;
  for (int i = 0; i < context->num_inputs(); ++i) {
    const tensorflow::Tensor& input = context->input(i);
    facts.push_back({input.dtype(), PartialTensorShape(input.shape().dim_sizes()), nullptr});
  }
  NodeDef inlined = node;
  (*inlined.mutable_attr())[kInlinedAttr].set_b(true);
  const auto shared = Registry::Global().Find(kFunctionOp, version.digest);
  if (!shared.ok()) return version.function->ToProto();
  const auto expansion = GetExpansion(*shared, tensorflow::AttrSlice(inlined), facts);
  if (!expansion.ok()) return version.function->ToProto();
  *name = (*expansion)->name;
  return (*expansion)->library->ToProto();
}

absl::Status Dump(const NodeDef& node, const OpVersion& version, const std::string& path,
                  OpKernelContext* context) {
  GraphDef dump;
  dump.mutable_versions()->set_producer(TF_GRAPH_DEF_VERSION);
  std::string name;
  *dump.mutable_library() = FunctionOf(node, version, context, &name);
  NodeDef* dumped = dump.add_node();
  *dumped = node;
  dumped->clear_input();
  (*dumped->mutable_attr())[kFunctionAttr].mutable_func()->set_name(name);
  TF_RETURN_IF_ERROR(AddInputs(context, &(*dumped->mutable_attr())[kDumpedInputs]));
  return Write(dump, path);
}

}  // namespace

bool RegionsAreDumped() { return !Folder().empty(); }

void DumpRegion(const tensorflow::OpKernel& node, const OpVersion& version, const Signature& call,
                OpKernelContext* context) {
  const std::string shapes = ToString(call);
  if (!IsNew(version.digest, shapes)) return;
  const std::string digits = version.digest.substr(version.digest.size() - 8);
  const std::string path = absl::StrFormat("%s/%s-%08x.pb", Folder(), digits,
                                           static_cast<uint32_t>(Fingerprint(shapes)));
  absl::Status status = Dump(node.def(), version, path, context);
  if (status.ok()) {
    LOG(INFO) << "Composite: region " << version.digest << " is in " << path;
  } else {
    LOG(WARNING) << "Composite: region " << version.digest << " is not dumped: " << status;
  }
}

}  // namespace composite
