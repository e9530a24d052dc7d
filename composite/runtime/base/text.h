// Strings as Python has them: sequences of characters, where TensorFlow has bytes.
#ifndef COMPOSITE_RUNTIME_BASE_TEXT_H_
#define COMPOSITE_RUNTIME_BASE_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace composite {

// The characters of a UTF-8 string, each as UTF-8.
inline std::vector<std::string> Characters(absl::string_view utf8) {
  std::vector<std::string> characters;
  for (const char byte : utf8) {
    const bool continues = (byte & 0xC0) == 0x80;
    if (continues && !characters.empty()) {
      characters.back().push_back(byte);
    } else {
      characters.emplace_back(1, byte);
    }
  }
  return characters;
}

// Whether protobuf would take the bytes for a string: no stray, missing or overlong sequences, no
// surrogates, nothing beyond U+10FFFF.
inline bool IsUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char first = byte(i);
    const size_t length = first < 0x80   ? 1
                          : first < 0xC2 ? 0
                          : first < 0xE0 ? 2
                          : first < 0xF0 ? 3
                          : first < 0xF5 ? 4
                                         : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) return false;
    }
    const unsigned char second = length > 1 ? byte(i + 1) : 0;
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
        (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
      return false;
    }
    i += length;
  }
  return true;
}

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_BASE_TEXT_H_
