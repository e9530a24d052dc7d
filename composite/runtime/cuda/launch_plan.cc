#include "composite/runtime/cuda/launch_plan.h"

#include <algorithm>
#include <cstring>
#include <limits>
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

constexpr int64_t kMostThreadsOfABlock = 1024;
constexpr int64_t kMostSharedBytes = 48 << 10;    // that a function may declare
constexpr int64_t kMostDynamicBytes = 227 << 10;  // that a launch may give, on the largest GPUs
constexpr int64_t kMostBlocks[] = {std::numeric_limits<int32_t>::max(), 65535, 65535};

absl::Status Malformed(absl::string_view field, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", why));
}

const AttrValue::ListValue& List(const NodeDef& record, const std::string& field) {
  auto found = record.attr().find(field);
  return (found == record.attr().end() ? AttrValue::default_instance() : found->second).list();
}

// The bits of "int=1", "float=0.5" or "double=0.5"; false for other words.
bool ParseNumber(absl::string_view word, int64_t* bits) {
  double value = 0;
  *bits = 0;
  if (absl::ConsumePrefix(&word, "int=")) return absl::SimpleAtoi(word, bits);
  const bool is_float = absl::ConsumePrefix(&word, "float=");
  if (!is_float && !absl::ConsumePrefix(&word, "double=")) return false;
  if (!absl::SimpleAtod(word, &value)) return false;
  const auto single = static_cast<float>(value);
  if (is_float) std::memcpy(bits, &single, sizeof(single));
  if (!is_float) std::memcpy(bits, &value, sizeof(value));
  return true;
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
  int64_t bits = 0;
  if (ParseNumber(word, &bits)) return LaunchArgument{LaunchArgument::kNumber, 0, bits};
  return Malformed(field, absl::StrCat("\"", word, "\" is no argument of a launch"));
}

absl::StatusOr<int> Bounded(absl::string_view field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return static_cast<int>(value);
  return Malformed(field, absl::StrCat(value, " is not from ", least, " to ", most));
}

// What a field says of a launch; "" where the record lacks it.
const std::string& TextOf(const NodeDef& record, const std::string& field, int i) {
  static const auto* const none = new std::string;
  const AttrValue::ListValue& list = List(record, field);
  return list.s_size() == 0 ? *none : list.s(i);
}

// What the author of a launch states: its grid, its block, its dynamic memory.
absl::Status ParseStated(const NodeDef& record, int i, int symbols, KernelLaunch* launch) {
  for (absl::string_view dim :
       absl::StrSplit(TextOf(record, kLaunchGridField, i), ',', absl::SkipEmpty())) {
    auto parsed = DimExpression::Parse(dim, symbols);
    if (!parsed.ok()) return Malformed(kLaunchGridField, parsed.status().message());
    launch->grid.push_back(*std::move(parsed));
  }
  if (launch->grid.size() > 3) return Malformed(kLaunchGridField, "more than three dimensions");
  launch->block = {static_cast<unsigned>(launch->threads), 1, 1};
  const std::string& block = TextOf(record, kLaunchBlockField, i);
  if (!block.empty()) {
    const std::vector<absl::string_view> sizes = absl::StrSplit(block, ',');
    int64_t product = 1;
    launch->block = {1, 1, 1};
    for (size_t d = 0; d < sizes.size() && d < 3; ++d) {
      if (!absl::SimpleAtoi(sizes[d], &launch->block[d])) product = 0;
      product *= launch->block[d] <= kMostThreadsOfABlock ? launch->block[d] : 0;
    }
    if (sizes.size() > 3 || product != launch->threads) {
      return Malformed(kLaunchBlockField,
                       absl::StrCat(block, " is no block of ", launch->threads, " threads"));
    }
  }
  const AttrValue::ListValue& resident = List(record, kLaunchResidentField);
  launch->resident = resident.b_size() != 0 && resident.b(i);
  const AttrValue::ListValue& bytes = List(record, kLaunchDynamicField);
  if (bytes.i_size() == 0) return absl::OkStatus();
  const auto dynamic = Bounded(kLaunchDynamicField, bytes.i(i), 0, kMostDynamicBytes);
  if (!dynamic.ok()) return dynamic.status();
  launch->dynamic = *dynamic;
  return absl::OkStatus();
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
  absl::Status stated = ParseStated(record, i, operands.symbols, &launch);
  if (!stated.ok()) return stated;
  return launch;
}

}  // namespace

absl::StatusOr<LaunchExtent> KernelLaunch::Blocks(absl::Span<const int64_t> symbols,
                                                  int multiprocessors) const {
  if (!grid.empty()) {
    LaunchExtent blocks = {1, 1, 1};
    for (size_t d = 0; d < grid.size(); ++d) {
      absl::StatusOr<int64_t> count = grid[d].Evaluate(symbols);
      if (!count.ok()) return count.status();
      if (*count > kMostBlocks[d]) {
        return absl::InvalidArgumentError(absl::StrCat("dimension ", d, " of its grid has ", *count,
                                                       " blocks, and a GPU numbers ",
                                                       kMostBlocks[d]));
      }
      blocks[d] = static_cast<unsigned>(*count);
    }
    return blocks;
  }
  absl::StatusOr<int64_t> units = work.Evaluate(symbols);
  if (!units.ok()) return units.status();
  const int64_t needed = *units / share + (*units % share != 0);
  const int64_t most = resident ? multiprocessors : kMostBlocks[0];
  return LaunchExtent{static_cast<unsigned>(std::min(needed, most)), 1, 1};
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
  for (const char* field : {kLaunchGridField, kLaunchBlockField}) {
    const int stated = List(record, field).s_size();
    if (stated != 0 && stated != count) return Malformed(field, "not one a launch");
  }
  const std::pair<const char*, int> stated[] = {
      {kLaunchDynamicField, List(record, kLaunchDynamicField).i_size()},
      {kLaunchResidentField, List(record, kLaunchResidentField).b_size()}};
  for (const auto& [field, size] : stated) {
    if (size != 0 && size != count) return Malformed(field, "not one a launch");
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
