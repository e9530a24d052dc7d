// The bytes of a shared library before it is mapped: whether all of it is there (a library that is
// cut short kills the process otherwise), which symbols it has, and which it wants of others.
#ifndef COMPOSITE_RUNTIME_FOREIGN_ELF_IMAGE_H_
#define COMPOSITE_RUNTIME_FOREIGN_ELF_IMAGE_H_

#include <elf.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace composite {

class ElfImage {
 public:
  // InvalidArgument that begins with `path`: not a shared library for this kind of machine, or
  // damaged.
  static absl::StatusOr<ElfImage> Parse(const std::string& path, std::string bytes);

  const std::string& bytes() const { return bytes_; }

  bool Defines(const std::string& symbol) const { return defined_.count(symbol) != 0; }
  // The names behind the prefix, in order.
  std::vector<std::string> DefinedWith(absl::string_view prefix) const;
  std::vector<std::string> UndefinedWith(absl::string_view prefix) const;
  // The libraries that it names as needed.
  const std::vector<std::string>& needed() const { return needed_; }

  // Has an undefined symbol mean this address, in this process and whatever other libraries define
  // it. The bytes are of use to this process only, from then on. Nothing where there is no such
  // symbol.
  void Bind(const std::string& symbol, const void* address);

 private:
  using Symbols = std::map<std::string, size_t>;  // where in bytes_ their Elf64_Sym is

  explicit ElfImage(std::string bytes) : bytes_(std::move(bytes)) {}
  template <typename T>
  absl::StatusOr<T> Get(size_t offset) const;
  absl::StatusOr<std::string> Text(const Elf64_Shdr& strings, size_t at) const;
  absl::StatusOr<Elf64_Shdr> Section(const Elf64_Ehdr& header, size_t i) const;
  absl::Status ReadSymbols(const Elf64_Shdr& table, const Elf64_Shdr& strings);
  absl::Status ReadNeeded(const Elf64_Shdr& table, const Elf64_Shdr& strings);
  absl::Status Read();

  std::string bytes_;
  Symbols defined_;
  Symbols undefined_;
  std::vector<std::string> needed_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_FOREIGN_ELF_IMAGE_H_
