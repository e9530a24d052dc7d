#include "composite/runtime/program/function_digest.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/sha256.h"
#include "composite/runtime/program/node_attrs.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"

namespace composite {
namespace {

using tensorflow::AttrValue;
using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
using tensorflow::NameAttrList;
using tensorflow::NodeDef;
using Named = absl::flat_hash_map<std::string, std::string>;

constexpr size_t kDigits = 32;
const std::string kHere(1, '\0');  // stands for the name of function[0], with a number for another

// The functions that an attribute names.
std::vector<NameAttrList*> FunctionsIn(AttrValue* value) {
  std::vector<NameAttrList*> found;
  if (value->has_func()) found.push_back(value->mutable_func());
  if (value->has_list()) {
    for (NameAttrList& one : *value->mutable_list()->mutable_func()) found.push_back(&one);
  }
  return found;
}

// The names of functions that a node calls or names: of its op, then of its attributes, by theirs.
std::vector<std::string*> NamesIn(NodeDef* node) {
  std::vector<std::string*> names = {node->mutable_op()};
  std::map<std::string, AttrValue*> attrs;
  for (auto& [name, value] : *node->mutable_attr()) attrs[name] = &value;
  for (auto& [name, value] : attrs) {
    for (NameAttrList* function : FunctionsIn(value)) names.push_back(function->mutable_name());
  }
  return names;
}

// function[0] and those that it reaches, as they are first met.
std::vector<FunctionDef*> Reached(FunctionDefLibrary* library) {
  absl::flat_hash_map<std::string, FunctionDef*> unmet;
  for (FunctionDef& function : *library->mutable_function()) {
    unmet.emplace(function.signature().name(), &function);
  }
  std::vector<FunctionDef*> found = {library->mutable_function(0)};
  unmet.erase(found[0]->signature().name());
  for (size_t i = 0; i < found.size(); ++i) {
    for (NodeDef& node : *found[i]->mutable_node_def()) {
      for (const std::string* name : NamesIn(&node)) {
        auto met = unmet.find(*name);
        if (met == unmet.end()) continue;
        found.push_back(met->second);
        unmet.erase(met);
      }
    }
  }
  return found;
}

// Leaves of a node what its meaning is made of.
void Strip(const Named& named, NodeDef* node) {
  node->clear_experimental_debug_info();
  node->clear_experimental_type();  // inferred wherever a graph is read
  const tensorflow::OpDef* op_def = nullptr;
  if (tensorflow::OpRegistry::Global()->LookUpOpDef(node->op(), &op_def).ok()) {
    tensorflow::AddDefaultsToNodeDef(*op_def, node);
  }
  for (const char* noted : {"_class", "_output_shapes"}) node->mutable_attr()->erase(noted);
  for (std::string* name : NamesIn(node)) {
    if (auto other = named.find(*name); other != named.end()) *name = other->second;
  }
}

}  // namespace

std::string FunctionDigest(FunctionDefLibrary library) {
  const std::vector<FunctionDef*> reached = Reached(&library);
  Named named;
  for (size_t i = 0; i < reached.size(); ++i) {
    named[reached[i]->signature().name()] = i == 0 ? kHere : absl::StrCat(kHere, i);
  }
  FunctionDefLibrary plain;
  for (FunctionDef* function : reached) {
    function->clear_attr();
    function->clear_arg_attr();
    function->mutable_signature()->clear_description();
    function->mutable_signature()->set_name(named.at(function->signature().name()));
    for (NodeDef& node : *function->mutable_node_def()) Strip(named, &node);
    *plain.add_function() = std::move(*function);
  }
  std::string bytes;
  tensorflow::SerializeToStringDeterministic(plain, &bytes);
  Sha256 hash;
  hash.Update(bytes.data(), bytes.size());
  return hash.HexDigest().substr(0, kDigits);
}

FunctionDefLibrary ReachedFrom(const tensorflow::FunctionLibraryDefinition& library,
                               const FunctionDef& function) {
  FunctionDefLibrary found;
  *found.add_function() = function;
  const tensorflow::FunctionLibraryDefinition reachable = library.ReachableDefinitions(function);
  for (const std::string& other : reachable.ListFunctionNames()) {
    if (other != function.signature().name()) *found.add_function() = *reachable.Find(other);
  }
  return found;
}

absl::Status AddIfMissing(const tensorflow::FunctionDef& function,
                          tensorflow::FunctionLibraryDefinition* library) {
  // Not Contains(): a tf.function's graph has that of its caller as the default registry of its own
  // library, which refuses a name that is known there.
  const tensorflow::OpRegistrationData* known = nullptr;
  if (library->LookUp(function.signature().name(), &known).ok()) return absl::OkStatus();
  return library->AddFunctionDef(function);
}

absl::string_view DigestInName(absl::string_view name) {
  const size_t underscore = name.rfind('_');
  if (!absl::StartsWith(name, kMadePrefix) || underscore == name.npos) return "";
  const absl::string_view digits = name.substr(underscore + 1);
  const bool is_hash = digits.size() == kDigits && absl::c_all_of(digits, [](char c) {
                         return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
                       });
  return is_hash ? digits : "";
}

}  // namespace composite
