#include "composite/runtime/emit/texts.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/value/format.h"
#include "composite/runtime/value/text_of.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

// What text is made of. A tensor's value is not looked at, even where it is known: Python prints
// more of a tensor than that.
absl::StatusOr<Value> Printable(const Value& value, Emitter* emitter) {
  const Value::List items = value.as_list() != nullptr ? *value.as_list() : Value::List{value};
  for (const Value& item : items) {
    const bool at_run_time = item.is_weak() && item.as_tensor()->fact == nullptr;
    if (!item.is_strong() && !at_run_time && item.as_range() == nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("text is made when the op is expanded, and this is ", Describe(item),
                     ": format attributes, dims and other values that are known then"));
  }
  return emitter->Known(value);
}

using TextFn = absl::StatusOr<std::string> (*)(const Value&);

template <TextFn text>
absl::StatusOr<Value> TextRule(const std::vector<Value>& arguments, Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(Value known, Printable(arguments[0], emitter));
  TF_ASSIGN_OR_RETURN(std::string made, text(known));
  return Value::String(std::move(made));
}

absl::StatusOr<Value> FormatRule(const std::vector<Value>& arguments, Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(Value known, Printable(arguments[0], emitter));
  const std::string* specification = arguments[1].as_string();
  if (specification == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("a format is a str, not ", Describe(arguments[1])));
  }
  TF_ASSIGN_OR_RETURN(std::string made, Format(known, *specification));
  return Value::String(std::move(made));
}

absl::StatusOr<Value> JoinRule(const std::vector<Value>& arguments, Emitter*) {
  const Value::List& items = *arguments[0].as_list();
  const std::string* separator = arguments[1].as_string();
  if (separator == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(".join() is a method of a str, not of ", Describe(arguments[1])));
  }
  std::string joined;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].as_string() == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(".join() joins strs, and item ", i, " is ", Describe(items[i])));
    }
    absl::StrAppend(&joined, i > 0 ? *separator : "", *items[i].as_string());
  }
  return Value::String(std::move(joined));
}

}  // namespace

const BuiltinRule* FindTextRule(absl::string_view name) {
  static const auto* rules = new absl::flat_hash_map<absl::string_view, BuiltinRule>({
      {"str", {&TextRule<&Str>, 1, 1}},
      {"repr", {&TextRule<&Repr>, 1, 1}},
      {"ascii", {&TextRule<&Ascii>, 1, 1}},
      {"format", {&FormatRule, 2, 2}},
      {"join", {&JoinRule, 2, 2, true}},
  });
  auto it = rules->find(name);
  return it == rules->end() ? nullptr : &it->second;
}

}  // namespace composite
