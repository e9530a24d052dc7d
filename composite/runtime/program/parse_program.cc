#include "composite/runtime/program/parse_program.h"

#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/base/text.h"
#include "composite/runtime/program/op_def_text.h"
#include "composite/runtime/program/region_check.h"
#include "composite/runtime/program/signature.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::AttrValue;
using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
using tensorflow::NodeDef;

// One node kind: how many inputs it takes (-1: any number) and what it has beside them.
struct KindRule {
  NodeKind kind;
  int inputs;
  const char* symbol;  // the attribute that becomes ProgramNode::symbol, or null
  bool sized = false;  // the attribute `size` counts the results
  const char* regions[2] = {nullptr, nullptr};
};

const KindRule* FindKind(absl::string_view op) {
  static const auto* rules = new absl::flat_hash_map<absl::string_view, KindRule>({
      {"tfr.constant", {NodeKind::kConstant, 0, nullptr}},
      {"tfr.list", {NodeKind::kList, -1, nullptr}},
      {"tfr.item", {NodeKind::kItem, 2, nullptr}},
      {"tfr.unpack", {NodeKind::kUnpack, 1, nullptr, true}},
      {"tfr.call", {NodeKind::kCall, -1, "op"}},
      {"tfr.unary", {NodeKind::kUnary, 1, "operator"}},
      {"tfr.binary", {NodeKind::kBinary, 2, "operator"}},
      {"tfr.compare", {NodeKind::kCompare, 2, "operator"}},
      {"tfr.if", {NodeKind::kIf, -1, nullptr, true, {"then", "else"}}},
      {"tfr.while", {NodeKind::kWhile, -1, nullptr, true, {"condition", "body"}}},
      {"tfr.apply", {NodeKind::kApply, -1, nullptr, true, {"region", nullptr}}},
      {"tfr.shape", {NodeKind::kShape, 1, nullptr}},
      {"tfr.rank", {NodeKind::kRank, 1, nullptr}},
      {"tfr.dtype", {NodeKind::kDtype, 1, nullptr}},
      {"tfr.length", {NodeKind::kLength, 1, nullptr}},
      {"tfr.builtin", {NodeKind::kBuiltin, -1, "function"}},
      {"tfr.subscript", {NodeKind::kSubscript, -1, "spec"}},
      {"tfr.raise", {NodeKind::kRaise, -1, "error"}},
  });
  auto it = rules->find(op);
  return it == rules->end() ? nullptr : &it->second;
}

const AttrValue* FindAttr(const NodeDef& node, const std::string& name) {
  auto it = node.attr().find(name);
  return it == node.attr().end() ? nullptr : &it->second;
}

std::string StringAttr(const NodeDef& node, const std::string& name) {
  const AttrValue* value = FindAttr(node, name);
  return value == nullptr ? "" : value->s();
}

std::string StringAttr(const FunctionDef& function, const std::string& name) {
  auto it = function.attr().find(name);
  return it == function.attr().end() ? "" : it->second.s();
}

class RegionParser {
 public:
  RegionParser(const FunctionDef& function, const absl::flat_hash_map<std::string, int>& regions)
      : function_(function), regions_(regions) {}

  absl::StatusOr<ProgramRegion> Parse(const std::vector<std::string>& parameters) {
    region_.name = function_.signature().name();
    region_.parameters = static_cast<int>(parameters.size());
    for (const std::string& name : parameters) {
      if (!slots_.emplace(name, region_.slots++).second) {
        return Malformed(absl::StrCat("the value '", name, "' is defined twice"));
      }
    }
    for (const NodeDef& node : function_.node_def()) TF_RETURN_IF_ERROR(AddNode(node));
    for (const auto& output : function_.signature().output_arg()) {
      auto it = function_.ret().find(output.name());
      if (it == function_.ret().end()) {
        return Malformed(absl::StrCat("nothing is returned for '", output.name(), "'"));
      }
      TF_ASSIGN_OR_RETURN(int slot, Slot(it->second));
      region_.results.push_back(slot);
    }
    return std::move(region_);
  }

 private:
  absl::Status Malformed(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("Malformed program, function '", function_.signature().name(), "': ", what));
  }

  absl::StatusOr<int> Slot(const std::string& name) const {
    auto it = slots_.find(name);
    if (it == slots_.end()) return Malformed(absl::StrCat("no value is named '", name, "'"));
    return it->second;
  }

  absl::Status AddNode(const NodeDef& def) {
    ProgramNode node;
    node.place = StringAttr(def, "_loc");
    const KindRule* rule = FindKind(def.op());
    if (rule == nullptr) {
      return Malformed(absl::StrCat("node ", def.name(), " at ", node.place, " has the kind '",
                                    def.op(),
                                    "', which this version of the runtime does not know"));
    }
    node.kind = rule->kind;
    TF_RETURN_IF_ERROR(ReadInputs(def, *rule, &node));
    TF_RETURN_IF_ERROR(ReadAttrs(def, *rule, &node));
    TF_RETURN_IF_ERROR(CheckTexts(def, node));
    TF_RETURN_IF_ERROR(NameResults(def, &node));
    region_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status ReadInputs(const NodeDef& def, const KindRule& rule, ProgramNode* node) {
    for (const std::string& input : def.input()) {
      TF_ASSIGN_OR_RETURN(int slot, Slot(input));
      node->inputs.push_back(slot);
    }
    const int least = rule.kind == NodeKind::kIf ? 1 : 0;
    if ((rule.inputs >= 0 && def.input_size() != rule.inputs) || def.input_size() < least) {
      return Malformed(
          absl::StrCat("node ", def.name(), " (", def.op(), ") has ", def.input_size(), " inputs"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadAttrs(const NodeDef& def, const KindRule& rule, ProgramNode* node) {
    if (rule.symbol != nullptr) {
      node->symbol = StringAttr(def, rule.symbol);
      if (node->symbol.empty()) {
        return Malformed(absl::StrCat("node ", def.name(), " (", def.op(), ") has no attribute '",
                                      rule.symbol, "'"));
      }
    }
    if (rule.kind == NodeKind::kList) {
      node->symbol = StringAttr(def, "kind");
      if (!node->symbol.empty() && node->symbol != "tuple") {
        return Malformed(absl::StrCat("node ", def.name(), " is a list of the kind '", node->symbol,
                                      "', which this version of the runtime does not know"));
      }
    }
    if (rule.sized) {
      const AttrValue* size = FindAttr(def, "size");
      if (size == nullptr || size->i() < 0 || size->i() > kMostTensors) {
        return Malformed(absl::StrCat("node ", def.name(), " (", def.op(), ") has no valid size"));
      }
      node->results = static_cast<int>(size->i());
    }
    if (const AttrValue* names = FindAttr(def, "_names"); names != nullptr) {
      node->names.assign(names->list().s().begin(), names->list().s().end());
    }
    if (rule.kind == NodeKind::kRaise) node->results = 0;
    if (const AttrValue* value = FindAttr(def, "value"); value != nullptr) node->constant = *value;
    for (const char* name : rule.regions) {
      if (name != nullptr) TF_RETURN_IF_ERROR(ReadRegion(def, name, node));
    }
    return rule.kind == NodeKind::kCall ? ReadCall(def, node) : absl::OkStatus();
  }

  absl::Status ReadRegion(const NodeDef& def, const char* attr, ProgramNode* node) {
    const std::string name = StringAttr(def, attr);
    auto it = regions_.find(name);
    if (it == regions_.end()) {
      return Malformed(absl::StrCat("node ", def.name(), " names the region '", name,
                                    "', which is not in the program"));
    }
    node->regions.push_back(it->second);
    return absl::OkStatus();
  }

  absl::Status ReadCall(const NodeDef& def, ProgramNode* node) {
    node->callee_digest = StringAttr(def, "_composite_program");
    node->name = StringAttr(def, "_name");
    if (const AttrValue* keywords = FindAttr(def, "keywords"); keywords != nullptr) {
      node->keywords.assign(keywords->list().s().begin(), keywords->list().s().end());
    }
    if (node->keywords.size() != node->inputs.size()) {
      return Malformed(absl::StrCat("node ", def.name(), " calls ", node->symbol, " with ",
                                    node->inputs.size(), " values and ", node->keywords.size(),
                                    " names for them"));
    }
    return absl::OkStatus();
  }

  // They become names and places of nodes, which protobuf has as strings.
  absl::Status CheckTexts(const NodeDef& def, const ProgramNode& node) const {
    const bool texts = IsUtf8(node.place) && IsUtf8(node.symbol) && IsUtf8(node.name) &&
                       absl::c_all_of(node.keywords, IsUtf8) && absl::c_all_of(node.names, IsUtf8);
    return texts ? absl::OkStatus()
                 : Malformed(absl::StrCat("node ", def.name(), " has a text that is not UTF-8"));
  }

  absl::Status NameResults(const NodeDef& def, ProgramNode* node) {
    node->first_slot = region_.slots;
    region_.slots += node->results;
    for (int i = 0; i < node->results; ++i) {
      std::string name = i == 0 ? def.name() : absl::StrCat(def.name(), ":", i);
      if (!slots_.emplace(std::move(name), node->first_slot + i).second) {
        return Malformed(absl::StrCat("the node '", def.name(), "' is defined twice"));
      }
    }
    return absl::OkStatus();
  }

  const FunctionDef& function_;
  const absl::flat_hash_map<std::string, int>& regions_;
  absl::flat_hash_map<std::string, int> slots_;
  ProgramRegion region_;
};

std::vector<std::string> ParameterNames(const FunctionDef& function, bool is_body) {
  std::vector<std::string> names;
  for (const auto& arg : function.signature().input_arg()) names.push_back(arg.name());
  if (is_body) {
    for (const auto& attr : function.signature().attr()) names.push_back(attr.name());
  }
  return names;
}

}  // namespace

absl::StatusOr<Program> ParseProgram(const FunctionDefLibrary& library) {
  if (library.function_size() == 0) {
    return absl::InvalidArgumentError("Malformed program: it has no function");
  }
  Program program;
  program.op_def = library.function(0).signature();
  TF_RETURN_IF_ERROR(CheckOpDef(program.op_def));
  program.digest = StringAttr(library.function(0), "_digest");
  program.place = StringAttr(library.function(0), "_place");
  program.module = StringAttr(library.function(0), "_module");
  program.origin = StringAttr(library.function(0), "_origin");
  program.composes = StringAttr(library.function(0), "_composes");
  auto replaces = library.function(0).attr().find("_replaces");
  program.replaces = replaces != library.function(0).attr().end() && replaces->second.b();
  if (program.digest.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Malformed program: the op ", program.op_def.name(), " carries no digest"));
  }
  absl::flat_hash_map<std::string, int> regions;
  for (int i = 1; i < library.function_size(); ++i) {
    if (!regions.emplace(library.function(i).signature().name(), i).second) {
      return absl::InvalidArgumentError(absl::StrCat("Malformed program: two regions are named '",
                                                     library.function(i).signature().name(), "'"));
    }
  }
  for (int i = 0; i < library.function_size(); ++i) {
    RegionParser parser(library.function(i), regions);
    TF_ASSIGN_OR_RETURN(ProgramRegion region,
                        parser.Parse(ParameterNames(library.function(i), i == 0)));
    program.regions.push_back(std::move(region));
  }
  TF_RETURN_IF_ERROR(CheckRegions(program.regions));
  return program;
}

}  // namespace composite
