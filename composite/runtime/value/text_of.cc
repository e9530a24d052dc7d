#include "composite/runtime/value/text_of.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/base/text.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

constexpr char kDigits[] = "0123456789";

// From "d.ddde+xx".
WrittenDigits ParseScientific(absl::string_view text) {
  const size_t exponent = text.find('e');
  WrittenDigits decimal;
  for (const char c : text.substr(0, exponent)) {
    if (c != '.') decimal.digits.push_back(c);
  }
  int power = 0;
  absl::string_view digits = text.substr(exponent + 1);
  if (digits[0] == '+') digits.remove_prefix(1);
  if (absl::SimpleAtoi(digits, &power)) decimal.point = power + 1;
  return decimal;
}

// To the last digit.
void AddOne(WrittenDigits* decimal) {
  const size_t last = decimal->digits.find_last_not_of('9');
  if (last == std::string::npos) {
    decimal->digits = "1";
    ++decimal->point;
    return;
  }
  decimal->digits.resize(last + 1);
  ++decimal->digits[last];
}

bool ReadsAs(const WrittenDigits& decimal, double magnitude) {
  double read = 0;
  return absl::SimpleAtod(absl::StrCat("0.", decimal.digits, "e", decimal.point), &read) &&
         read == magnitude;
}

std::string FloatRepr(double v) {
  if (std::isnan(v)) return "nan";
  const char* sign = std::signbit(v) ? "-" : "";
  if (std::isinf(v)) return absl::StrCat(sign, "inf");
  constexpr int kLimit = 16;
  return absl::StrCat(sign, WriteDecimal(ShortestDecimal(std::fabs(v)), kLimit, /*whole=*/true));
}

uint32_t CodePoint(absl::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  uint32_t code = character.size() == 2 ? first & 0x1F : first & (character.size() == 3 ? 15 : 7);
  for (const char byte : character.substr(1)) code = code << 6 | (byte & 0x3F);
  return code;
}

absl::StatusOr<std::string> Quoted(const std::string& text, bool ascii) {
  if (!IsUtf8(text)) return absl::InvalidArgumentError("the text is no UTF-8");
  const bool doubles = absl::StrContains(text, '\'') && !absl::StrContains(text, '"');
  const char quote = doubles ? '"' : '\'';
  std::string quoted(1, quote);
  for (const std::string& character : Characters(text)) {
    const char c = character[0];
    if (character.size() > 1) {
      if (!ascii) {
        return absl::InvalidArgumentError(absl::StrCat(
            "repr() of '", text, "', which has characters beyond ASCII: use str() or ascii()"));
      }
      const uint32_t code = CodePoint(character);
      absl::StrAppend(&quoted, code < 0x100     ? absl::StrFormat("\\x%02x", code)
                               : code < 0x10000 ? absl::StrFormat("\\u%04x", code)
                                                : absl::StrFormat("\\U%08x", code));
    } else if (c == quote || c == '\\') {
      quoted.append({'\\', c});
    } else if (c == '\n' || c == '\r' || c == '\t') {
      quoted.append({'\\', c == '\n' ? 'n' : c == '\r' ? 'r' : 't'});
    } else if (c < 0x20 || c == 0x7F) {
      absl::StrAppend(&quoted, absl::StrFormat("\\x%02x", c));
    } else {
      quoted.push_back(c);
    }
  }
  quoted.push_back(quote);
  return quoted;
}

std::string TypeText(tensorflow::DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_HALF:
      return "float16";
    case tensorflow::DT_FLOAT:
      return "float32";
    case tensorflow::DT_DOUBLE:
      return "float64";
    default:
      return tensorflow::DataTypeString(dtype);
  }
}

// The dims of a shape: "2, None".
std::vector<std::string> DimTexts(const tensorflow::PartialTensorShape& shape) {
  std::vector<std::string> dims;
  for (int i = 0; i < shape.dims(); ++i) {
    dims.push_back(shape.dim_size(i) < 0 ? "None" : absl::StrCat(shape.dim_size(i)));
  }
  return dims;
}

std::string InTuple(const std::vector<std::string>& items) {
  return absl::StrCat("(", absl::StrJoin(items, ", "), items.size() == 1 ? ",)" : ")");
}

std::string ShapeStr(const tensorflow::PartialTensorShape& shape) {
  return shape.unknown_rank() ? "<unknown>" : InTuple(DimTexts(shape));
}

std::string ShapeRepr(const tensorflow::PartialTensorShape& shape) {
  return shape.unknown_rank()
             ? "TensorShape(None)"
             : absl::StrCat("TensorShape([", absl::StrJoin(DimTexts(shape), ", "), "])");
}

// `str` of a TensorShape that is a list of dims; what any other sequence prints its items with.
absl::StatusOr<std::string> ListText(const Value& value, bool ascii, bool str) {
  std::vector<std::string> items;
  for (const Value& item : *value.as_list()) {
    TF_ASSIGN_OR_RETURN(std::string text, ascii ? Ascii(item) : Repr(item));
    items.push_back(std::move(text));
  }
  switch (value.kind()) {
    case SequenceKind::kTuple:
      return InTuple(items);
    case SequenceKind::kShape:
      if (str) return InTuple(items);
      return absl::StrCat("TensorShape([", absl::StrJoin(items, ", "), "])");
    case SequenceKind::kRange:
      return absl::InvalidArgumentError("a range has no text in a body: write list(range(...))");
    default:
      return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
  }
}

absl::StatusOr<std::string> Text(const Value& value, bool ascii, bool str) {
  if (value.is_none()) return "None";
  if (value.as_bool() != nullptr) return *value.as_bool() ? "True" : "False";
  if (value.as_int() != nullptr) return absl::StrCat(*value.as_int());
  if (value.as_float() != nullptr) return FloatRepr(*value.as_float());
  if (value.as_string() != nullptr) {
    return str ? *value.as_string() : Quoted(*value.as_string(), ascii);
  }
  if (value.as_type() != nullptr) {
    const std::string name = TypeText(*value.as_type());
    return str ? absl::StrCat("<dtype: '", name, "'>") : absl::StrCat("tf.", name);
  }
  if (const ShapeValue* shape = value.as_shape(); shape != nullptr) {
    return str ? ShapeStr(shape->known) : ShapeRepr(shape->known);
  }
  if (value.as_list() != nullptr) return ListText(value, ascii, str);
  return absl::InvalidArgumentError(absl::StrCat(Describe(value), " has no text in a body"));
}

}  // namespace

std::string Printed(double number, int precision, char type) {
  const char format[] = {'%', '.', '*', type, '\0'};
  std::string text(std::snprintf(nullptr, 0, format, precision, number), '\0');
  std::snprintf(text.data(), text.size() + 1, format, precision, number);
  if (precision > 0) {  // the locale's point, which may be several bytes
    const size_t point = text.find_first_not_of(kDigits);
    text.replace(point, text.find_first_of(kDigits, point) - point, ".");
  }
  return text;
}

WrittenDigits ShortestDecimal(double magnitude) {
  for (int digits = 1; digits < 17; ++digits) {
    WrittenDigits decimal = RoundedDecimal(magnitude, digits);
    if (ReadsAs(decimal, magnitude)) return decimal;
    // Numbers below a power of two are closer to it than those above: the next decimal may be read
    // as it though the nearest is not.
    AddOne(&decimal);
    if (ReadsAs(decimal, magnitude)) return decimal;
  }
  return RoundedDecimal(magnitude, 17);
}

WrittenDigits RoundedDecimal(double magnitude, int digits) {
  return ParseScientific(Printed(magnitude, digits - 1, 'e'));
}

std::string WriteDecimal(const WrittenDigits& decimal, int limit, bool whole) {
  const int size = static_cast<int>(decimal.digits.size()), point = decimal.point;
  const absl::string_view digits = decimal.digits;
  if (point <= -4 || point > limit) {
    const int power = point - 1;
    return absl::StrCat(digits.substr(0, 1), size > 1 ? "." : "", digits.substr(1),
                        power < 0 ? "e-" : "e+", std::abs(power) < 10 ? "0" : "", std::abs(power));
  }
  if (point <= 0) return absl::StrCat("0.", std::string(-point, '0'), digits);
  if (point >= size) {
    return absl::StrCat(digits, std::string(point - size, '0'), whole ? ".0" : "");
  }
  return absl::StrCat(digits.substr(0, point), ".", digits.substr(point));
}

absl::StatusOr<std::string> Str(const Value& value) { return Text(value, false, true); }
absl::StatusOr<std::string> Repr(const Value& value) { return Text(value, false, false); }
absl::StatusOr<std::string> Ascii(const Value& value) { return Text(value, true, false); }

}  // namespace composite
