#include "composite/runtime/regions/selection.h"

#include <fnmatch.h>

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace composite {

Selection::Selection(const std::vector<std::string>& entries) {
  for (absl::string_view entry : entries) {
    int number = 0;
    if (absl::ConsumePrefix(&entry, "name:")) {
      patterns_.emplace_back(entry);
    } else if (absl::ConsumePrefix(&entry, "region:")) {
      if (!entry.empty()) regions_.emplace_back(entry);
    } else if (absl::ConsumePrefix(&entry, "node:")) {
      nodes_.push_back(absl::StrSplit(entry, absl::MaxSplits(':', 1)));
    } else if (absl::ConsumePrefix(&entry, "smaller:")) {
      if (absl::SimpleAtoi(entry, &number)) smaller_than_ = std::max(smaller_than_, number);
    } else {
      ops_.emplace(entry);
    }
  }
}

bool Selection::HasNode(const tensorflow::Node& node) const {
  return ops_.contains(node.type_string()) || absl::c_any_of(patterns_, [&](const auto& pattern) {
           return fnmatch(pattern.c_str(), node.name().c_str(), 0) == 0;
         });
}

bool Selection::HasRegion(absl::string_view function) const {
  return absl::c_any_of(regions_,
                        [&](const auto& digits) { return absl::EndsWith(function, digits); });
}

std::vector<std::string> Selection::NodesOf(absl::string_view function) const {
  std::vector<std::string> names;
  for (const auto& [region, name] : nodes_) {
    if (region == function) names.push_back(name);
  }
  return names;
}

std::string Unescaped(absl::string_view entry) {
  std::string text;
  for (size_t i = 0; i < entry.size(); ++i) {
    std::string byte;
    if (entry[i] == '-' && i + 2 < entry.size() &&
        absl::HexStringToBytes(entry.substr(i + 1, 2), &byte)) {
      text += byte;
      i += 2;
    } else {
      text += entry[i];
    }
  }
  return text;
}

}  // namespace composite
