// Strings as Python has them: sequences of characters, where TensorFlow has bytes.
#ifndef COMPOSITE_RUNTIME_TEXT_H_
#define COMPOSITE_RUNTIME_TEXT_H_

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

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TEXT_H_
