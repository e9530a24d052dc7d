#include "composite/runtime/cuda/launch_plan.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "composite/runtime/base/record_tables.h"

namespace composite {
namespace {

using tensorflow::AttrValue;
using tensorflow::NodeDef;

// Threads that a multiprocessor runs at a time: more blocks than they fill need not be launched.
constexpr int kMostThreads = 2048;
constexpr int64_t kMostThreadsOfABlock = 1024;
constexpr int64_t kMostSharedBytes = 48 << 10;  // that a function may declare

absl::Status Malformed(absl::string_view field, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", why));
}

const AttrValue::ListValue& List(const NodeDef& record, const std::string& field) {
  auto found = record.attr().find(field);
  return (found == record.attr().end() ? AttrValue::default_instance() : found->second).list();
}

absl::StatusOr<LaunchArgument> ParseArgument(absl::string_view field, absl::string_view word,
                                             const LaunchOperands& operands, int workspaces) {
  const struct {
    absl::string_view name;
    LaunchArgument::Kind kind;
    int count;
  } kinds[] = {{"in", LaunchArgument::kInput, operands.inputs},
               {"out", LaunchArgument::kOutput, operands.outputs},
               {"work", LaunchArgument::kWorkspace, workspaces},
               {"size", LaunchArgument::kSize, operands.symbols}};
  for (const auto& one : kinds) {
    absl::string_view number = word;
    int index = 0;
    if (!absl::ConsumePrefix(&number, one.name) || !absl::SimpleAtoi(number, &index)) continue;
    if (index < 0 || index >= one.count) {
      return Malformed(field, absl::StrCat(word, ", and there are ", one.count));
    }
    return LaunchArgument{one.kind, index};
  }
  return Malformed(field, absl::StrCat("\"", word, "\" is no argument of a launch"));
}

absl::StatusOr<int> Bounded(absl::string_view field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return static_cast<int>(value);
  return Malformed(field, absl::StrCat(value, " is not from ", least, " to ", most));
}

absl::StatusOr<KernelLaunch> ParseLaunch(const NodeDef& record, int i,
                                         const LaunchOperands& operands, int workspaces) {
  KernelLaunch launch;
  launch.function = List(record, kLaunchFunctionsField).s(i);
  if (launch.function.empty()) return Malformed(kLaunchFunctionsField, "a function has no name");
  auto work = DimExpression::Parse(List(record, kLaunchWorkField).s(i), operands.symbols);
  if (!work.ok()) return Malformed(kLaunchWorkField, work.status().message());
  launch.work = *std::move(work);
  launch.share = List(record, kLaunchShareField).i(i);
  if (launch.share < 1) return Malformed(kLaunchShareField, "a block does less than one unit");
  const auto threads =
      Bounded(kLaunchThreadsField, List(record, kLaunchThreadsField).i(i), 1, kMostThreadsOfABlock);
  if (!threads.ok()) return threads.status();
  launch.threads = *threads;
  const auto shared =
      Bounded(kLaunchSharedField, List(record, kLaunchSharedField).i(i), 0, kMostSharedBytes);
  if (!shared.ok()) return shared.status();
  launch.shared = *shared;
  const std::string& words = List(record, kLaunchArgumentsField).s(i);
  for (absl::string_view word : absl::StrSplit(words, ' ', absl::SkipEmpty())) {
    auto argument = ParseArgument(kLaunchArgumentsField, word, operands, workspaces);
    if (!argument.ok()) return argument.status();
    launch.arguments.push_back(*argument);
  }
  return launch;
}

}  // namespace

absl::StatusOr<unsigned> KernelLaunch::Blocks(absl::Span<const int64_t> symbols,
                                              int multiprocessors) const {
  absl::StatusOr<int64_t> units = work.Evaluate(symbols);
  if (!units.ok()) return units.status();
  const int64_t needed = *units / share + (*units % share != 0);
  const int64_t fit = int64_t{multiprocessors} * std::max(1, kMostThreads / threads);
  return static_cast<unsigned>(std::min(needed, fit));
}

std::vector<std::string> LaunchPlan::Functions() const {
  std::vector<std::string> names;
  for (const KernelLaunch& launch : launches) names.push_back(launch.function);
  return names;
}

absl::StatusOr<LaunchPlan> ParseLaunchPlan(const NodeDef& record, const LaunchOperands& operands) {
  LaunchPlan plan;
  for (const std::string& bytes : List(record, kWorkspacesField).s()) {
    auto parsed = DimExpression::Parse(bytes, operands.symbols);
    if (!parsed.ok()) return Malformed(kWorkspacesField, parsed.status().message());
    plan.workspaces.push_back(*std::move(parsed));
  }
  const int workspaces = static_cast<int>(plan.workspaces.size());
  const int count = List(record, kLaunchFunctionsField).s_size();
  for (const char* field : {kLaunchWorkField, kLaunchArgumentsField}) {
    if (List(record, field).s_size() != count) return Malformed(field, "not one a launch");
  }
  for (const char* field : {kLaunchShareField, kLaunchThreadsField, kLaunchSharedField}) {
    if (List(record, field).i_size() != count) return Malformed(field, "not one a launch");
  }
  for (int i = 0; i < count; ++i) {
    auto launch = ParseLaunch(record, i, operands, workspaces);
    if (!launch.ok()) return launch.status();
    plan.launches.push_back(*std::move(launch));
  }
  for (const std::string& word : List(record, kAlignedField).s()) {
    auto argument = ParseArgument(kAlignedField, word, operands, workspaces);
    if (!argument.ok()) return argument.status();
    if (argument->kind != LaunchArgument::kInput && argument->kind != LaunchArgument::kOutput) {
      return Malformed(kAlignedField, absl::StrCat(word, " is no input and no output"));
    }
    plan.aligned.push_back(*argument);
  }
  return plan;
}

}  // namespace composite
