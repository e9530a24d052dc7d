#include "composite/runtime/api/kernel_c_api.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "composite/runtime/api/c_api_reply.h"
#include "composite/runtime/api/explain.h"
#include "composite/runtime/api/model_kernels.h"
#include "composite/runtime/base/record_check.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/instantiate/optimized_expansion.h"
#include "composite/runtime/kernels/kernel_record.h"
#include "composite/runtime/kernels/kernel_table.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/kernels/timings.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/regions/refused_nodes.h"
#include "composite/runtime/regions/region_counts.h"
#include "composite/runtime/regions/region_options.h"
#include "composite/runtime/run/kernel_view.h"
#include "composite/runtime/tensorflow/registration.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::AttrValue;
using tensorflow::FunctionDefLibrary;
using tensorflow::NodeDef;

static_assert(sizeof(composite_kernel) == 4 * sizeof(void*), "built libraries have this layout");

// `built`: the functions of a built library's kernel, or null.
absl::Status Install(const NodeDef& node, const composite_kernel* built) {
  InstalledKernel kernel;
  TF_ASSIGN_OR_RETURN(kernel.record, ParseKernelRecord(node));
  if (built != nullptr) {
    kernel.function = reinterpret_cast<tvm_abi::Function>(built->function);
    for (size_t i = 0; built->packers != nullptr && i < kernel.record.packed.size(); ++i) {
      kernel.packers.push_back(reinterpret_cast<tvm_abi::Function>(built->packers[i]));
    }
  }
  return KernelTable::Global().Install(std::move(kernel));
}

NodeDef ReadStats(bool reset) {
  NodeDef answer;
  for (const auto& [name, counter] : AllCounters()) {
    (*answer.mutable_attr())[name].set_i(reset ? counter->exchange(0) : counter->load());
  }
  return answer;
}

absl::StatusOr<NodeDef> ExplainRequest(const NodeDef& request) {
  absl::Status status = CheckFields("call", kCallFields, request);
  if (!status.ok()) return status;
  auto version = Registry::Global().Resolve(request.op(), AttrSlice(request));
  if (!version.ok()) return version.status();
  absl::StatusOr<Signature> call = ParseSignature(Attr(request, kInShapesField));
  if (!call.ok()) return call.status();
  const auto& values = Attr(request, kConstantsField).list().tensor();
  for (int i = 0; i < std::min<int>(values.size(), call->ranks.size()); ++i) {
    tensorflow::Tensor value;
    if (call->ranks[i] == 0 && value.FromProto(values[i])) call->NoteValue(i, value);
  }
  if (SymbolCount(*call) > 0) {
    return absl::InvalidArgumentError(
        "explain needs the shapes of a call; a dim is unknown, so the path is not decided yet");
  }
  absl::StatusOr<Options> options = NodeOptions(AttrSlice(request));
  if (!options.ok()) return options.status();
  absl::StatusOr<Options> process = ProcessOptions();
  if (!process.ok()) return process.status();
  const Options merged = options->Or(ThreadOptions()).Or(*process);
  TF_ASSIGN_OR_RETURN(NodeDef answer, Explain(**version, AttrSlice(request), *call, merged));
  TF_ASSIGN_OR_RETURN(const CallRecord record, ReadCall(request));
  (*answer.mutable_attr())["xla"].set_s(ExplainXla(record, AttrSlice(request), *call, merged));
  return answer;
}

tensorflow::GraphDef RegionCountsOf(bool reset) {
  tensorflow::GraphDef answer;
  for (const RegionCount& count : ReadRegionCounts(reset)) {
    NodeDef* node = answer.add_node();
    node->set_name(count.function);
    auto& attrs = *node->mutable_attr();
    attrs["kernel"].set_i(count.kernel);
    attrs["expansion"].set_i(count.expansion);
    attrs["saved_us"].set_f(static_cast<float>(count.saved_us));
    attrs["why"].set_s(count.why);
  }
  return answer;
}

absl::StatusOr<NodeDef> SetOptions(const NodeDef& request) {
  absl::StatusOr<Options> next = ParseOptions(
      Attr(request, "backend").s(), Attr(request, "numerics").s(), Attr(request, "xla").s());
  if (!next.ok()) return next.status();
  Options previous;
  if (Attr(request, "thread").b()) {
    TF_ASSIGN_OR_RETURN(ThreadRegions(), ParseRegions(Attr(request, "regions").s()));
    previous = std::exchange(ThreadOptions(), *next);
  } else {
    absl::StatusOr<Options> process = ProcessOptions();
    if (process.ok()) previous = *process;
    SetProcessOptions(*next);
  }
  NodeDef answer;
  (*answer.mutable_attr())["backend"].set_s(Name(previous.backend));
  (*answer.mutable_attr())["numerics"].set_s(Name(previous.numerics));
  (*answer.mutable_attr())["xla"].set_s(XlaWaitText(previous.xla_wait));
  return answer;
}

// A kernel for another machine: the table keeps the reason for explain, the expansion serves.
absl::Status OrForOthers(absl::Status status) {
  return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
}

absl::Status RegisterOps(const char* program, size_t size, const composite_kernel* kernels,
                         size_t count) {
  auto library = ParseRequest<FunctionDefLibrary>(program, size);
  if (!library.ok()) return library.status();
  absl::Status status = RegisterProgram(*library);
  for (size_t i = 0; status.ok() && i < count; ++i) {
    auto record = ParseRequest<NodeDef>(kernels[i].record, kernels[i].size);
    if (!record.ok()) return record.status();
    status = OrForOthers(Install(*record, &kernels[i]));
  }
  return status;
}

absl::Status RegisterGpuKernel(const char* record, size_t size, absl::string_view image) {
  auto node = ParseRequest<NodeDef>(record, size);
  if (!node.ok()) return node.status();
  InstalledKernel kernel;
  TF_ASSIGN_OR_RETURN(kernel.record, ParseKernelRecord(*node));
  if (!kernel.record.launches.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", kernel.record.name, " comes as machine code, and is for no GPU"));
  }
  kernel.image =
      std::make_shared<const CudaImage>(std::string(image), kernel.record.launches->Functions());
  if (kernel.record.verdict == Verdict::kUnchecked) {
    kernel.unchecked = std::make_shared<const NodeDef>(*std::move(node));
  }
  return OrForOthers(KernelTable::Global().Install(std::move(kernel)));
}

absl::Status RegisterTimings(const composite_kernel& kernel, const char* timings) {
  auto record = ParseRequest<NodeDef>(kernel.record, kernel.size);
  if (!record.ok()) return record.status();
  absl::Status status = AddTimings(timings, &*record);
  if (!status.ok()) return status;
  return OrForOthers(Install(*record, &kernel));
}

}  // namespace
}  // namespace composite

using composite::KernelTable;
using composite::Serve;
using tensorflow::NodeDef;

namespace {

// The code of `work()`, whose message goes to error[].
template <typename Work>
int Tell(Work work, char* error, size_t error_size) {
  composite_buffer message = {nullptr, 0};
  const int code = composite::Reply(&message, work);
  if (code != 0 && error != nullptr && error_size > 0) {
    std::snprintf(error, error_size, "%.*s", static_cast<int>(message.size), message.data);
  }
  composite_free(&message);
  return code;
}

}  // namespace

extern "C" {

int composite_install(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply,
               [](const NodeDef& node) { return composite::Install(node, nullptr); });
}

int composite_next_request(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply, [](const NodeDef& node) -> absl::StatusOr<NodeDef> {
    const int64_t timeout = composite::Attr(node, "timeout_ms").i();
    return KernelTable::Global().NextRequest(absl::Milliseconds(timeout)).value_or(NodeDef());
  });
}

int composite_finish(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply, [](const NodeDef& node) {
    const auto& sizes = composite::Attr(node, "sizes").list().i();
    if (const std::string& refused = composite::Attr(node, "node").s(); !refused.empty()) {
      composite::RefuseNode(composite::Attr(node, "function").s(), refused);
    }
    return KernelTable::Global().Finish(node.name(), composite::Attr(node, "status").s(),
                                        composite::Attr(node, "reason").s(),
                                        std::vector<int>(sizes.begin(), sizes.end()));
  });
}

int composite_refused_nodes(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply, [](const NodeDef&) -> absl::StatusOr<tensorflow::GraphDef> {
    return composite::Refusals();
  });
}

int composite_refuse_nodes(const char* request, size_t size, composite_buffer* reply) {
  return Serve<tensorflow::GraphDef>(request, size, reply, [](const tensorflow::GraphDef& graph) {
    composite::Refuse(graph);
    return absl::OkStatus();
  });
}

int composite_region_counts(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply,
               [](const NodeDef& node) -> absl::StatusOr<tensorflow::GraphDef> {
                 return composite::RegionCountsOf(composite::Attr(node, "reset").b());
               });
}

int composite_load_kernels(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply, [](const NodeDef& node) {
    const bool native_code = composite::Attr(node, "native_code").b();
    return composite::LoadModelKernels(
        composite::Attr(node, "folder").s(), composite::Attr(node, "digest").s(),
        native_code ? composite::NativeCode::kYes : composite::NativeCode::kNo);
  });
}

int composite_count_compile(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply, [](const NodeDef&) -> absl::StatusOr<NodeDef> {
    composite::Count(composite::GlobalStats().compiles);
    return NodeDef();
  });
}

int composite_pending(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply, [](const NodeDef&) -> absl::StatusOr<NodeDef> {
    NodeDef answer;
    (*answer.mutable_attr())["pending"].set_i(KernelTable::Global().Pending());
    return answer;
  });
}

int composite_worker(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply, [](const NodeDef& node) {
    KernelTable::Global().SetWorker(composite::Attr(node, "running").b());
    return absl::OkStatus();
  });
}

int composite_presume_rest(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply, [](const NodeDef& node) {
    composite::Attr(node, "begin").b() ? composite::BeginToPresumeStable()
                                       : composite::EndToPresumeStable();
    return absl::OkStatus();
  });
}

int composite_stats(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply, [](const NodeDef& node) -> absl::StatusOr<NodeDef> {
    return composite::ReadStats(composite::Attr(node, "reset").b());
  });
}

int composite_explain(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply, composite::ExplainRequest);
}

int composite_set_options(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply, composite::SetOptions);
}

int composite_only_regions(const char* request, size_t size, composite_buffer* reply) {
  return Serve(request, size, reply, [](const NodeDef& node) {
    const auto& names = composite::Attr(node, "names").list().s();
    auto& only = composite::ThreadOnlyRegions();
    only.reset();
    if (composite::Attr(node, "limited").b()) only.emplace(names.begin(), names.end());
    return absl::OkStatus();
  });
}

int composite_set_rewriter_options(const char* request, size_t size, composite_buffer* reply) {
  using Options = tensorflow::RewriterConfig;
  return Serve<Options>(request, size, reply, [](const Options& options) {
    composite::SetRewriterOptions(options);
    return absl::OkStatus();
  });
}

void composite_bind_slots(void** parallel_launch, void** parallel_barrier, void** alloc_workspace,
                          void** free_workspace) {
  composite::tvm_abi::FillSlots(
      {parallel_launch, parallel_barrier, alloc_workspace, free_workspace});
}

int composite_register_ops(const char* program, size_t size, const composite_kernel* kernels,
                           size_t count, char* error, size_t error_size) {
  return Tell([&] { return composite::RegisterOps(program, size, kernels, count); }, error,
              error_size);
}

int composite_register_gpu_kernel(const char* record, size_t size, const char* image,
                                  size_t image_size, char* error, size_t error_size) {
  return Tell([&] { return composite::RegisterGpuKernel(record, size, {image, image_size}); },
              error, error_size);
}

void composite_register_timings(const composite_kernel* kernel, const char* timings) {
  if (timings == nullptr) return;
  composite_buffer message = {nullptr, 0};
  const int code =
      composite::Reply(&message, [&] { return composite::RegisterTimings(*kernel, timings); });
  // A kernel that was not measured is no fault, and a library without timings works.
  if (code != 0) VLOG(1) << "composite_register_timings: " << message.data;
  composite_free(&message);
}

}  // extern "C"
