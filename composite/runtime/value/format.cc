#include "composite/runtime/value/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/base/text.h"
#include "composite/runtime/value/text_of.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

constexpr int kMost = 10000;  // of a width and a precision

// [[fill]align][sign][#][0][width][grouping][.precision][type]
struct Specification {
  std::string fill = " ";
  char align = 0;   // one of < > = ^, or 0
  char sign = '-';  // one of + - and blank
  bool alternate = false;
  int width = 0;
  char grouping = 0;   // , or _
  int precision = -1;  // none
  char type = 0;       // none
};

// Reads the characters of a specification from the left.
class Reader {
 public:
  explicit Reader(const std::string& text) : characters_(Characters(text)) {}

  bool done() const { return at_ == characters_.size(); }
  std::string Next() { return characters_[at_++]; }
  bool NextIs(absl::string_view any, size_t ahead = 0) const {
    return at_ + ahead < characters_.size() && characters_[at_ + ahead].size() == 1 &&
           absl::StrContains(any, characters_[at_ + ahead]);
  }
  // The next one if it is one of these, else 0.
  char Take(absl::string_view any) { return NextIs(any) ? characters_[at_++][0] : 0; }
  // -1 if there is no number.
  int Number() {
    int number = -1;
    while (NextIs("0123456789")) {
      number = std::min(std::max(number, 0) * 10 + (Next()[0] - '0'), kMost + 1);
    }
    return number;
  }

 private:
  const std::vector<std::string> characters_;
  size_t at_ = 0;
};

absl::StatusOr<Specification> Parse(const std::string& text, bool of_text) {
  const auto refused = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("the format '", text, "' ", why));
  };
  Specification spec;
  Reader reader(text);
  const bool fills = reader.NextIs("<>=^", 1);
  if (fills) spec.fill = reader.Next();
  spec.align = reader.Take("<>=^");
  if (const char sign = reader.Take("+- "); sign != 0) {
    if (of_text) return refused("has a sign, and the value is a str");
    spec.sign = sign;
  }
  spec.alternate = reader.Take("#") != 0;
  if (reader.NextIs("0") && !fills) {
    reader.Next();
    spec.fill = "0";
    if (spec.align == 0 && !of_text) spec.align = '=';
  }
  spec.width = std::max(reader.Number(), 0);
  spec.grouping = reader.Take(",_");
  if (reader.Take(".") != 0) {
    spec.precision = reader.Number();
    if (spec.precision < 0) return refused("has a point without a precision");
  }
  if (spec.width > kMost || spec.precision > kMost) {
    return refused(absl::StrCat("has a number above ", kMost));
  }
  spec.type = reader.Take("bcdeEfFgGnosxX%");
  if (!reader.done()) return refused("is none that a body supports");
  if (spec.type == 'c' || spec.type == 'n')
    return refused("has a type that a body does not support");
  return spec;
}

// In blocks of `size` digits from the right.
std::string Grouped(const std::string& digits, char separator, int size) {
  if (separator == 0) return digits;
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % size == 0) grouped.push_back(separator);
    grouped.push_back(digits[i]);
  }
  return grouped;
}

std::string Repeated(const std::string& fill, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fill;
  return text;
}

std::string Aligned(const std::string& head, const std::string& body, const Specification& spec,
                    char align) {
  const int missing = spec.width - static_cast<int>(Characters(head + body).size());
  if (missing <= 0) return head + body;
  switch (align) {
    case '<':
      return head + body + Repeated(spec.fill, missing);
    case '^':
      return Repeated(spec.fill, missing / 2) + head + body +
             Repeated(spec.fill, missing - missing / 2);
    case '=':
      return head + Repeated(spec.fill, missing) + body;
    default:
      return Repeated(spec.fill, missing) + head + body;
  }
}

// `whole` are the digits in front of the point, `rest` is all behind them.
std::string Number(bool negative, const std::string& prefix, std::string whole,
                   const std::string& rest, const Specification& spec, int group) {
  const std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  const std::string head = sign + prefix;
  const char align = spec.align == 0 ? '>' : spec.align;
  if (align == '=' && spec.fill == "0" && spec.grouping != 0) {
    const int wanted = spec.width - static_cast<int>(head.size() + rest.size());
    while (static_cast<int>(Grouped(whole, spec.grouping, group).size()) < wanted) {
      whole.insert(0, 1, '0');
    }
  }
  return Aligned(head, Grouped(whole, spec.grouping, group) + rest, spec, align);
}

absl::StatusOr<std::string> FormatText(const std::string& text, const Specification& spec) {
  if (spec.align == '=' || spec.alternate || spec.grouping != 0 ||
      (spec.type != 0 && spec.type != 's')) {
    return absl::InvalidArgumentError(
        "a str takes no format of numbers: it has a fill, an alignment, a width and a precision");
  }
  std::vector<std::string> characters = Characters(text);
  if (spec.precision >= 0 && spec.precision < static_cast<int>(characters.size())) {
    characters.resize(spec.precision);
  }
  return Aligned("", absl::StrJoin(characters, ""), spec, spec.align == 0 ? '<' : spec.align);
}

absl::StatusOr<std::string> FormatInt(int64_t number, const Specification& spec) {
  if (spec.precision >= 0) return absl::InvalidArgumentError("an int has no precision");
  const int base = spec.type == 'b'                       ? 2
                   : spec.type == 'o'                     ? 8
                   : spec.type == 'x' || spec.type == 'X' ? 16
                                                          : 10;
  if (base != 10 && spec.grouping == ',') {
    return absl::InvalidArgumentError("digits are in groups by `,` in base 10 alone: write `_`");
  }
  const bool negative = number < 0;
  const uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(number) : number;
  char buffer[65];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, magnitude, base);
  std::string digits(buffer, end.ptr);
  std::string prefix =
      spec.alternate && base != 10 ? std::string{'0', absl::ascii_tolower(spec.type)} : "";
  if (spec.type == 'X') {
    absl::AsciiStrToUpper(&digits);
    absl::AsciiStrToUpper(&prefix);
  }
  return Number(negative, prefix, std::move(digits), "", spec, base == 10 ? 3 : 4);
}

// Without its sign; "inf" and "nan" have no digits.
absl::StatusOr<std::string> Digits(double magnitude, const Specification& spec) {
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  const char type = absl::ascii_tolower(spec.type);
  if (type == 'e' || type == 'f' || type == '%') {
    std::string text = Printed(magnitude, precision, type == 'e' ? 'e' : 'f');
    if (spec.alternate && precision == 0) text.insert(std::min(text.find('e'), text.size()), ".");
    return text;
  }
  if (spec.alternate) {
    return absl::InvalidArgumentError("`#` in the format of a float needs the type e, f or %");
  }
  if (type == 0 && spec.precision < 0) {
    return WriteDecimal(ShortestDecimal(magnitude), /*limit=*/16, /*whole=*/true);
  }
  const int digits = std::max(precision, 1);
  WrittenDigits decimal = RoundedDecimal(magnitude, digits);
  const size_t last = decimal.digits.find_last_not_of('0');
  decimal.digits.resize(last == std::string::npos ? 1 : last + 1);
  return WriteDecimal(decimal, type == 0 ? digits - 1 : digits, /*whole=*/type == 0);
}

absl::StatusOr<std::string> FormatFloat(double number, Specification spec) {
  if (absl::StrContains("bdosxX", spec.type) && spec.type != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a float has no format of type ", std::string(1, spec.type)));
  }
  const bool negative = std::signbit(number) && !std::isnan(number);
  const double magnitude = std::fabs(spec.type == '%' ? number * 100 : number);
  std::string text = std::isnan(magnitude) ? "nan" : "inf";
  if (std::isfinite(magnitude)) {
    TF_ASSIGN_OR_RETURN(text, Digits(magnitude, spec));
  } else {
    spec.grouping = 0;
  }
  if (absl::ascii_isupper(spec.type)) absl::AsciiStrToUpper(&text);
  const size_t whole = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string rest = absl::StrCat(text.substr(whole), spec.type == '%' ? "%" : "");
  return Number(negative, "", text.substr(0, whole), rest, spec, 3);
}

}  // namespace

absl::StatusOr<std::string> Format(const Value& value, const std::string& specification) {
  if (specification.empty()) return Str(value);
  const std::string* text = value.as_string();
  if (text == nullptr && !value.is_number()) {
    return absl::InvalidArgumentError(absl::StrCat("a ", TypeName(value), " takes no format, as '",
                                                   specification, "' is: only str() of it"));
  }
  TF_ASSIGN_OR_RETURN(const Specification spec, Parse(specification, text != nullptr));
  if (text != nullptr) return FormatText(*text, spec);
  int64_t whole = 0;
  const bool is_int = GetInt(value, &whole);
  if (spec.type == 's') return absl::InvalidArgumentError("the type s is for a str alone");
  const bool as_float = spec.type != 0 && absl::StrContains("eEfFgG%", spec.type);
  if (is_int && !as_float) return FormatInt(whole, spec);
  return FormatFloat(is_int ? static_cast<double>(whole) : *value.as_float(), spec);
}

}  // namespace composite
