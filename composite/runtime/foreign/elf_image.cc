#include "composite/runtime/foreign/elf_image.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
constexpr Elf64_Half kMachine = EM_NONE;
#endif

absl::Status Damaged() { return absl::InvalidArgumentError("is damaged or cut short"); }

std::vector<std::string> With(absl::string_view prefix,
                              const std::map<std::string, size_t>& symbols) {
  std::vector<std::string> names;
  for (const auto& [name, place] : symbols) {
    if (absl::StartsWith(name, prefix)) names.push_back(name.substr(prefix.size()));
  }
  return names;
}

}  // namespace

template <typename T>
absl::StatusOr<T> ElfImage::Get(size_t offset) const {
  if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return Damaged();
  T value;
  std::memcpy(&value, bytes_.data() + offset, sizeof(T));
  return value;
}

absl::StatusOr<std::string> ElfImage::Text(const Elf64_Shdr& strings, size_t at) const {
  const size_t end = strings.sh_offset + strings.sh_size;  // in the file, by Section
  const size_t begin = strings.sh_offset + at;
  if (at >= strings.sh_size) return Damaged();
  const size_t length = strnlen(bytes_.data() + begin, end - begin);
  if (begin + length == end) return Damaged();
  return bytes_.substr(begin, length);
}

absl::StatusOr<Elf64_Shdr> ElfImage::Section(const Elf64_Ehdr& header, size_t i) const {
  if (i >= header.e_shnum || header.e_shoff > bytes_.size()) return Damaged();
  TF_ASSIGN_OR_RETURN(Elf64_Shdr section, Get<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
  const bool in_file =
      section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL ||
      (section.sh_offset <= bytes_.size() && section.sh_size <= bytes_.size() - section.sh_offset);
  if (!in_file) return Damaged();
  return section;
}

absl::Status ElfImage::ReadSymbols(const Elf64_Shdr& table, const Elf64_Shdr& strings) {
  for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
    TF_ASSIGN_OR_RETURN(Elf64_Sym symbol, Get<Elf64_Sym>(table.sh_offset + at));
    TF_ASSIGN_OR_RETURN(std::string name, Text(strings, symbol.st_name));
    (symbol.st_shndx == SHN_UNDEF ? undefined_ : defined_)[name] = table.sh_offset + at;
  }
  return absl::OkStatus();
}

absl::Status ElfImage::ReadNeeded(const Elf64_Shdr& table, const Elf64_Shdr& strings) {
  for (size_t at = 0; at + sizeof(Elf64_Dyn) <= table.sh_size; at += sizeof(Elf64_Dyn)) {
    TF_ASSIGN_OR_RETURN(Elf64_Dyn entry, Get<Elf64_Dyn>(table.sh_offset + at));
    if (entry.d_tag != DT_NEEDED) continue;
    TF_ASSIGN_OR_RETURN(std::string name, Text(strings, entry.d_un.d_val));
    needed_.push_back(std::move(name));
  }
  return absl::OkStatus();
}

absl::Status ElfImage::Read() {
  constexpr absl::string_view kMagic(ELFMAG, SELFMAG);
  if (!absl::StartsWith(bytes_, kMagic)) return absl::InvalidArgumentError("is no shared library");
  TF_ASSIGN_OR_RETURN(Elf64_Ehdr header, Get<Elf64_Ehdr>(0));
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != kMachine) {
    return absl::InvalidArgumentError("is for another kind of machine");
  }
  if (header.e_type != ET_DYN) return absl::InvalidArgumentError("is no shared library");
  if (header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return Damaged();
  }
  for (size_t i = 0; i < header.e_phnum; ++i) {
    TF_ASSIGN_OR_RETURN(Elf64_Phdr segment,
                        Get<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr)));
    if (segment.p_type == PT_LOAD &&
        (segment.p_offset > bytes_.size() || segment.p_filesz > bytes_.size() - segment.p_offset)) {
      return Damaged();
    }
  }
  for (size_t i = 0; i < header.e_shnum; ++i) {
    TF_ASSIGN_OR_RETURN(Elf64_Shdr section, Section(header, i));
    if (section.sh_type != SHT_DYNSYM && section.sh_type != SHT_DYNAMIC) continue;
    TF_ASSIGN_OR_RETURN(Elf64_Shdr strings, Section(header, section.sh_link));
    TF_RETURN_IF_ERROR(section.sh_type == SHT_DYNSYM ? ReadSymbols(section, strings)
                                                     : ReadNeeded(section, strings));
  }
  return absl::OkStatus();
}

absl::StatusOr<ElfImage> ElfImage::Parse(const std::string& path, std::string bytes) {
  ElfImage image(std::move(bytes));
  absl::Status status = image.Read();
  if (status.ok()) return image;
  return absl::Status(status.code(), absl::StrCat(path, " ", status.message()));
}

std::vector<std::string> ElfImage::DefinedWith(absl::string_view prefix) const {
  return With(prefix, defined_);
}

std::vector<std::string> ElfImage::UndefinedWith(absl::string_view prefix) const {
  return With(prefix, undefined_);
}

void ElfImage::Bind(const std::string& symbol, const void* address) {
  const auto found = undefined_.find(symbol);
  if (found == undefined_.end()) return;
  // A local symbol with an absolute value: the dynamic linker takes it as it is, and looks in no
  // other library; hidden, so that it does so at a first call, too. glibc since 2.28.
  Elf64_Sym bound;
  std::memcpy(&bound, bytes_.data() + found->second, sizeof(bound));
  bound.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
  bound.st_other = STV_HIDDEN;
  bound.st_shndx = SHN_ABS;
  bound.st_value = reinterpret_cast<uintptr_t>(address);
  std::memcpy(&bytes_[found->second], &bound, sizeof(bound));
}

}  // namespace composite
