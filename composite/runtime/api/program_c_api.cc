#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "composite/runtime/api/c_api_reply.h"
#include "composite/runtime/api/request.h"
#include "composite/runtime/c_api.h"
#include "composite/runtime/expand/expand.h"
#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/graph/not_yet.h"
#include "composite/runtime/kernels/dtypes.h"
#include "composite/runtime/program/function_digest.h"
#include "composite/runtime/program/function_versions.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/op_def_text.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/regions/function_regions.h"
#include "composite/runtime/regions/refused_nodes.h"
#include "composite/runtime/regions/region_options.h"
#include "composite/runtime/tensorflow/composition.h"
#include "composite/runtime/tensorflow/region_pass.h"
#include "composite/runtime/tensorflow/registration.h"
#include "composite/runtime/variables/uses.h"
#include "composite/runtime/xla/xla_constants.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::FunctionDefLibrary;
using tensorflow::NodeDef;

// Raised with every change of a message that an older Python side would misread.
constexpr int64_t kAbi = 2;

std::vector<std::string> Strings(const NodeDef& record, const char* name) {
  const tensorflow::AttrValue* value = tensorflow::AttrSlice(record).Find(name);
  if (value == nullptr) return {};
  return {value->list().s().begin(), value->list().s().end()};
}

absl::StatusOr<tensorflow::OpDef> ParseDeclarationRequest(const char* request, size_t size) {
  TF_ASSIGN_OR_RETURN(NodeDef record, ParseRequest<NodeDef>(request, size));
  return ParseDeclaration(record.op(), Strings(record, "inputs"), Strings(record, "attrs"),
                          Strings(record, "outputs"));
}

absl::StatusOr<tensorflow::OpDef> DeclareComposition(const char* request, size_t size) {
  TF_ASSIGN_OR_RETURN(NodeDef record, ParseRequest<NodeDef>(request, size));
  return CompositionDeclaration(record.op());
}

absl::Status AddProgram(const char* request, size_t size) {
  TF_ASSIGN_OR_RETURN(FunctionDefLibrary program, ParseRequest<FunctionDefLibrary>(request, size));
  return RegisterProgram(program);
}

absl::Status AddFunction(const char* request, size_t size) {
  TF_ASSIGN_OR_RETURN(FunctionDefLibrary library, ParseRequest<FunctionDefLibrary>(request, size));
  return RegisterFunction(library);
}

absl::StatusOr<NodeDef> DigestOfFunction(const char* request, size_t size) {
  TF_ASSIGN_OR_RETURN(FunctionDefLibrary library, ParseRequest<FunctionDefLibrary>(request, size));
  if (library.function().empty()) return absl::InvalidArgumentError("there is no function");
  NodeDef answer;
  (*answer.mutable_attr())["digest"].set_s(FunctionDigest(std::move(library)));
  return answer;
}

absl::StatusOr<NodeDef> ConstantArguments(const char* request, size_t size) {
  TF_ASSIGN_OR_RETURN(FunctionDefLibrary library, ParseRequest<FunctionDefLibrary>(request, size));
  TF_ASSIGN_OR_RETURN(std::vector<int> arguments, XlaConstantArguments(library));
  NodeDef answer;
  auto* list = (*answer.mutable_attr())["arguments"].mutable_list();
  for (int argument : arguments) list->add_i(argument);
  return answer;
}

absl::StatusOr<FunctionDefLibrary> FindRegions(const char* request, size_t size) {
  TF_ASSIGN_OR_RETURN(FunctionDefLibrary library, ParseRequest<FunctionDefLibrary>(request, size));
  if (library.function().empty()) return absl::InvalidArgumentError("there is no function");
  tensorflow::FunctionLibraryDefinition known(tensorflow::OpRegistry::Global());
  TF_RETURN_IF_ERROR(known.AddLibrary(library));
  // The graph pass finds them in the names of functions, see region_options.h.
  const auto attr = library.function(0).attr().find("_composite_denied");
  Selection denied;
  if (attr != library.function(0).attr().end()) {
    const auto& entries = attr->second.list().s();
    denied = Selection({entries.begin(), entries.end()});
  }
  const auto may_join = [](const tensorflow::Node&) { return true; };
  TF_ASSIGN_OR_RETURN(const FunctionWithRegions made,
                      WithRegions(library.function(0), &known, denied,
                                  {may_join, true, MayHaveTwice(&library.function(0), known)}));
  FunctionDefLibrary answer;
  *answer.add_function() = made.function;
  std::set<std::string> added;
  for (const NodeDef& node : made.function.node_def()) {
    if (node.op() != kFunctionOp) continue;
    const std::string name(VersionOf(tensorflow::AttrSlice(node).Find(kFunctionAttr)));
    const tensorflow::FunctionDef* region = known.Find(name);
    if (region == nullptr) continue;
    FunctionDefLibrary reached = ReachedFrom(known, *region);
    for (tensorflow::FunctionDef& function : *reached.mutable_function()) {
      if (added.insert(function.signature().name()).second) {
        *answer.add_function() = std::move(function);
      }
    }
  }
  return answer;
}

absl::StatusOr<FunctionDefLibrary> FormXlaRegions(const char* request, size_t size) {
  TF_ASSIGN_OR_RETURN(FunctionDefLibrary library, ParseRequest<FunctionDefLibrary>(request, size));
  return WithRegionsForXla(library);
}

absl::Status SetKernelOps(const char* request, size_t size) {
  TF_ASSIGN_OR_RETURN(NodeDef record, ParseRequest<NodeDef>(request, size));
  auto dtypes = record.attr().find("dtypes");
  DtypeSet compiled = DtypeSet::All();
  if (dtypes != record.attr().end()) {
    compiled = DtypeSet();
    for (int dtype : dtypes->second.list().type()) {
      compiled.Add(static_cast<tensorflow::DataType>(dtype));
    }
  }
  const std::vector<std::string> ops = Strings(record, "ops");
  SetCompiledDtypes(compiled);
  SetRegionsAreCompiled(!ops.empty());
  Registry::Global().SetKernelOps(ops);
  return absl::OkStatus();
}

absl::StatusOr<FunctionDefLibrary> Expand(const char* request, size_t size) {
  TF_ASSIGN_OR_RETURN(NodeDef record, ParseRequest<NodeDef>(request, size));
  TF_ASSIGN_OR_RETURN(CallRecord call, ReadCall(record));
  auto made = GetExpansion(call.version, tensorflow::AttrSlice(record), call.facts);
  if (!made.ok()) {
    // Whatever the sizes are, the composite has no expansion inside of this region.
    const auto node = made.status().GetPayload(kNodePayload);
    if (node.has_value() && !IsNotYet(made.status())) {
      RefuseNode(call.version->digest, std::string(*node));
    }
    return made.status();
  }
  const std::shared_ptr<const Expansion> expansion = *std::move(made);
  FunctionDefLibrary answer;
  *answer.add_function() = expansion->fdef;
  const std::vector<std::string> listed = expansion->library->ListFunctionNames();
  for (const std::string& name : std::set<std::string>(listed.begin(), listed.end())) {
    if (name != expansion->name) *answer.add_function() = *expansion->library->Find(name);
  }
  return answer;
}

}  // namespace
}  // namespace composite

extern "C" {

void composite_free(composite_buffer* buffer) {
  if (buffer == nullptr) return;
  std::free(buffer->data);
  buffer->data = nullptr;
  buffer->size = 0;
}

int composite_version(const char* request, size_t size, composite_buffer* reply) {
  return composite::Reply(reply, [] {
    tensorflow::NodeDef record;
    (*record.mutable_attr())["tensorflow"].set_s(COMPOSITE_TF_VERSION);
    (*record.mutable_attr())["abi"].set_i(composite::kAbi);
    return absl::StatusOr<tensorflow::NodeDef>(std::move(record));
  });
}

int composite_parse_declaration(const char* request, size_t size, composite_buffer* reply) {
  return composite::Reply(reply, [&] { return composite::ParseDeclarationRequest(request, size); });
}

int composite_composition_declaration(const char* request, size_t size, composite_buffer* reply) {
  return composite::Reply(reply, [&] { return composite::DeclareComposition(request, size); });
}

int composite_register(const char* request, size_t size, composite_buffer* reply) {
  return composite::Reply(reply, [&] { return composite::AddProgram(request, size); });
}

int composite_register_function(const char* request, size_t size, composite_buffer* reply) {
  return composite::Reply(reply, [&] { return composite::AddFunction(request, size); });
}

int composite_function_digest(const char* request, size_t size, composite_buffer* reply) {
  return composite::Reply(reply, [&] { return composite::DigestOfFunction(request, size); });
}

int composite_constant_arguments(const char* request, size_t size, composite_buffer* reply) {
  return composite::Reply(reply, [&] { return composite::ConstantArguments(request, size); });
}

int composite_find_regions(const char* request, size_t size, composite_buffer* reply) {
  return composite::Reply(reply, [&] { return composite::FindRegions(request, size); });
}

int composite_form_xla_regions(const char* request, size_t size, composite_buffer* reply) {
  return composite::Reply(reply, [&] { return composite::FormXlaRegions(request, size); });
}

int composite_set_kernel_ops(const char* request, size_t size, composite_buffer* reply) {
  return composite::Reply(reply, [&] { return composite::SetKernelOps(request, size); });
}

int composite_expand(const char* request, size_t size, composite_buffer* reply) {
  return composite::Reply(reply, [&] { return composite::Expand(request, size); });
}

}  // extern "C"
