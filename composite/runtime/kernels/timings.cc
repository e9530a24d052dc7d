#include "composite/runtime/kernels/timings.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "composite/runtime/base/record_tables.h"

namespace composite {
namespace {

using tensorflow::AttrValue;
using tensorflow::NodeDef;

// What stands between `open` and the next `close`.
absl::StatusOr<absl::string_view> Between(absl::string_view text, absl::string_view open,
                                          char close) {
  const size_t begin = text.find(open);
  if (begin == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("timings.json: ", open, " is missing"));
  }
  text.remove_prefix(begin + open.size());
  const size_t end = text.find(close);
  if (end == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("timings.json: no ", std::string(1, close)));
  }
  return text.substr(0, end);
}

absl::StatusOr<std::vector<absl::string_view>> List(absl::string_view kernel,
                                                    absl::string_view name) {
  absl::StatusOr<absl::string_view> inside =
      Between(kernel, absl::StrCat("\"", name, "\": ["), ']');
  if (!inside.ok()) return inside.status();
  return std::vector<absl::string_view>(absl::StrSplit(*inside, ", ", absl::SkipEmpty()));
}

absl::Status Malformed(absl::string_view word) {
  return absl::InvalidArgumentError(absl::StrCat("timings.json: \"", word, "\" is no such value"));
}

absl::Status AddNumber(absl::string_view kernel, const char* name, const char* attr,
                       NodeDef* record) {
  // Up to the comma that stands after every number.
  absl::StatusOr<absl::string_view> word = Between(kernel, absl::StrCat("\"", name, "\": "), ',');
  if (!word.ok()) return word.status();
  float number = 0;
  if (!absl::SimpleAtof(*word, &number)) return Malformed(*word);
  (*record->mutable_attr())[attr].set_f(number);
  return absl::OkStatus();
}

// `add(word, list)` is false for a word that is no such value.
template <typename Add>
absl::Status AddList(absl::string_view kernel, const char* name, const char* attr, NodeDef* record,
                     Add add) {
  absl::StatusOr<std::vector<absl::string_view>> words = List(kernel, name);
  if (!words.ok()) return words.status();
  AttrValue::ListValue* list = (*record->mutable_attr())[attr].mutable_list();
  list->Clear();
  for (absl::string_view word : *words) {
    if (!add(word, list)) return Malformed(word);
  }
  return absl::OkStatus();
}

bool AddTime(absl::string_view word, AttrValue::ListValue* list) {
  float time = 0;
  if (!absl::SimpleAtof(word, &time)) return false;
  list->add_f(time);
  return true;
}

bool AddSize(absl::string_view word, AttrValue::ListValue* list) {
  int64_t size = 0;
  if (!absl::SimpleAtoi(word, &size)) return false;
  list->add_i(size);
  return true;
}

bool AddWin(absl::string_view word, AttrValue::ListValue* list) {
  list->add_b(word == "true");
  return word == "true" || word == "false";
}

absl::Status AddMeasured(absl::string_view kernel, NodeDef* record) {
  absl::StatusOr<absl::string_view> verdict = Between(kernel, "\"verdict\": \"", '"');
  if (!verdict.ok()) return verdict.status();
  (*record->mutable_attr())[kVerdictField].set_s(std::string(*verdict));
  absl::Status status = AddNumber(kernel, "kernel_us", kKernelUsField, record);
  if (status.ok()) status = AddNumber(kernel, "expansion_us", kExpansionUsField, record);
  if (status.ok()) status = AddList(kernel, "sizes", kSizesField, record, AddSize);
  if (status.ok()) status = AddList(kernel, "kernel_times", kKernelTimesField, record, AddTime);
  if (status.ok())
    status = AddList(kernel, "expansion_times", kExpansionTimesField, record, AddTime);
  if (status.ok()) status = AddList(kernel, "kernel_wins", kKernelWinsField, record, AddWin);
  return status;
}

}  // namespace

absl::Status AddTimings(absl::string_view timings, NodeDef* record) {
  const std::string open = absl::StrCat("\"", record->name(), "\": {");
  if (timings.find(open) == absl::string_view::npos) {
    return absl::NotFoundError(absl::StrCat("timings.json has no word of ", record->name()));
  }
  absl::StatusOr<absl::string_view> kernel = Between(timings, open, '}');
  if (!kernel.ok()) return kernel.status();
  NodeDef measured = *record;
  absl::Status status = AddMeasured(*kernel, &measured);
  if (status.ok()) *record = std::move(measured);
  return status;
}

}  // namespace composite
