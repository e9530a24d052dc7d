#include "composite/runtime/words/program.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace composite {
namespace words {
namespace {

constexpr std::string_view kMagic("composite words 1\n\0\0\0\0\0\0", 24);

// Takes numbers and texts off the front of a file.
class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  bool ok() const { return ok_; }

  std::string_view Take(int64_t bytes) {
    if (bytes < 0 || static_cast<uint64_t>(bytes) > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  int64_t Number() {
    int64_t number = 0;
    const std::string_view bytes = Take(sizeof(number));
    if (ok_) std::memcpy(&number, bytes.data(), sizeof(number));
    return number;
  }

  // A count of what takes at least so many bytes each.
  int64_t Count(int64_t bytes = 8) {
    const int64_t count = Number();
    if (count < 0 || static_cast<uint64_t>(count) > rest_.size() / bytes) ok_ = false;
    return ok_ ? count : 0;
  }

  Constant Text() {
    const Place place = Number();
    const int64_t size = Number();
    const std::string_view padded = size < 0 ? Take(-1) : Take((size + 7) / 8 * 8);
    return {place, ok_ ? padded.substr(0, size) : padded};
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

Program Next(Reader& reader) {
  Program program;
  program.frame = reader.Number();
  program.buffers = reader.Number();
  program.parameters.resize(reader.Count());
  const int64_t texts = reader.Count();
  const int64_t constants = reader.Count();
  program.functions.resize(reader.Count());
  program.code.resize(reader.Count(sizeof(Instruction)));
  for (size_t i = 0; i < program.parameters.size(); ++i) reader.Number();  // how long each is
  for (Parameter& parameter : program.parameters) {
    parameter.buffer = reader.Number();
    parameter.element = reader.Number();
    parameter.shape.resize(reader.Count(sizeof(Size)));
    for (Size& size : parameter.shape) {
      size.kind = reader.Number();
      size.value = reader.Number();
    }
  }
  if (texts > 0) program.name = reader.Text().bytes;
  for (int64_t i = 1; i < texts; ++i) program.messages.push_back(reader.Text().bytes);
  for (int64_t i = 0; i < constants; ++i) program.constants.push_back(reader.Text());
  for (int64_t& start : program.functions) start = reader.Number();
  const std::string_view code = reader.Take(program.code.size() * sizeof(Instruction));
  if (reader.ok()) std::memcpy(program.code.data(), code.data(), code.size());
  return program;
}

}  // namespace

bool HasPrograms(std::string_view file) { return file.substr(0, kMagic.size()) == kMagic; }

absl::StatusOr<Program> FindProgram(std::string_view file, std::string_view name) {
  Reader reader(file.substr(kMagic.size()));
  const int64_t count = reader.Count();
  for (int64_t i = 0; i < count && reader.ok(); ++i) {
    Program program = Next(reader);
    if (reader.ok() && program.name == name) return program;
  }
  if (!reader.ok()) return absl::FailedPreconditionError("a file of programs ends too early");
  return absl::NotFoundError(absl::StrCat("there is no program ", name));
}

}  // namespace words
}  // namespace composite
