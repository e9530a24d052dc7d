#include "composite/runtime/base/checked_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/base/sha256.h"

namespace composite {
namespace {

std::string ErrnoText() { return std::strerror(errno); }

constexpr char kDescriptors[] = "/proc/self/fd/";

// The descriptor that a path is of, or -1.
int DescriptorOf(absl::string_view path) {
  int number = -1;
  const bool found = absl::ConsumePrefix(&path, kDescriptors) && !path.empty() &&
                     absl::c_all_of(path, absl::ascii_isdigit) && absl::SimpleAtoi(path, &number);
  return found ? number : -1;
}

// A name of this descriptor that no open library has. dlopen compares names before it looks at the
// file, and would return an old library for a new file behind the same descriptor number; so a
// counter is spelled in "/" and "./", which mean nothing to the kernel.
std::string DescriptorPath(int descriptor) {
  static std::atomic<unsigned> counter{0};
  std::string path = kDescriptors;
  for (unsigned rest = counter.fetch_add(1); rest != 0; rest >>= 1) {
    path += (rest & 1) != 0 ? "./" : "/";
  }
  return absl::StrCat(path, descriptor);
}

// Descriptor numbers that open libraries are named by. A backtrace opens each library of the
// process by its name, and maps what it finds: were the number free for another file, that one
// would be mapped (a bus error where it is shorter) or waited for (a pipe). So a number stays a
// socket between two loads: a socket cannot be opened by its path.
class NameNumbers {
 public:
  // Moves the file to a number of the list, if there is one.
  int Name(int descriptor) {
    absl::MutexLock lock(mu_);
    if (numbers_.empty()) return descriptor;
    const int number = numbers_.back();
    if (dup3(descriptor, number, O_CLOEXEC) < 0) return descriptor;
    numbers_.pop_back();
    close(descriptor);
    return number;
  }

  // The file is closed, its number kept. Without a socket, the file stays open: its name is true.
  void Retire(int number) {
    const int unopenable = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (unopenable < 0) return;
    absl::MutexLock lock(mu_);
    if (dup3(unopenable, number, O_CLOEXEC) >= 0) numbers_.push_back(number);
    close(unopenable);
  }

 private:
  ForkMutex mu_;
  std::vector<int> numbers_ ABSL_GUARDED_BY(mu_);
};

NameNumbers& Numbers() {
  static auto* const numbers = new NameNumbers;
  return *numbers;
}

}  // namespace

absl::StatusOr<CheckedFile> CheckedFile::Open(const std::string& path) {
  // NOFOLLOW: a link could be pointed elsewhere between the check and its use. NONBLOCK: or open()
  // waits for the writer of a pipe.
  const int own = DescriptorOf(path);
  const int descriptor = own >= 0
                             ? fcntl(own, F_DUPFD_CLOEXEC, 0)
                             : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor >= 0) return CheckedFile(path, descriptor);
  const absl::StatusCode code =
      errno == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kPermissionDenied;
  return absl::Status(code, absl::StrCat("cannot open ", path, ": ", ErrnoText(),
                                         errno == ELOOP ? " (it is a link)" : ""));
}

absl::StatusOr<CheckedFile> CheckedFile::InMemory(const std::string& name,
                                                  absl::string_view bytes) {
  CheckedFile file(name, memfd_create("composite-library", MFD_CLOEXEC));
  bool done = file.descriptor_ >= 0;
  while (done && !bytes.empty()) {
    const ssize_t count = write(file.descriptor_, bytes.data(), bytes.size());
    done = count > 0 || (count < 0 && errno == EINTR);
    if (count > 0) bytes.remove_prefix(count);
  }
  if (done) return file;
  return absl::UnavailableError(absl::StrCat(name, " cannot be copied to memory: ", ErrnoText()));
}

CheckedFile::CheckedFile(CheckedFile&& other) noexcept
    : path_(other.path_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      is_name_(std::exchange(other.is_name_, false)) {}

CheckedFile::~CheckedFile() {
  if (is_name_) {
    Numbers().Retire(descriptor_);
  } else if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

absl::Status CheckedFile::CheckOwner() const {
  struct stat info;
  if (fstat(descriptor_, &info) != 0) {
    return absl::UnavailableError(absl::StrCat(path_, ": ", ErrnoText()));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::PermissionDeniedError(absl::StrCat(path_, " is not a regular file"));
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(path_, " belongs to user ", info.st_uid, ", and this process is user ",
                     geteuid(), "; native code is loaded from the user's own files only"));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(path_, " can be written by others; run chmod go-w on it"));
  }
  return absl::OkStatus();
}

absl::Status CheckedFile::MakeExecutable() {
  struct statvfs mount;
  struct stat info;
  if (fstatvfs(descriptor_, &mount) != 0 || (mount.f_flag & ST_NOEXEC) == 0) {
    return absl::OkStatus();
  }
  const int copy = memfd_create("composite-library", MFD_CLOEXEC);
  off_t offset = 0;
  bool done = copy >= 0 && fstat(descriptor_, &info) == 0;
  while (done && offset < info.st_size) {
    const ssize_t count = sendfile(copy, descriptor_, &offset, info.st_size - offset);
    done = count > 0 || (count < 0 && errno == EINTR);
  }
  if (!done) {
    absl::Status status =
        absl::UnavailableError(absl::StrCat(path_, " cannot be copied to memory: ", ErrnoText()));
    if (copy >= 0) close(copy);
    return status;
  }
  close(std::exchange(descriptor_, copy));
  return absl::OkStatus();
}

absl::Status CheckedFile::CheckDigest(const std::string& sha256) const {
  Sha256 digest;
  char buffer[16384];
  for (off_t offset = 0;;) {
    const ssize_t count = pread(descriptor_, buffer, sizeof(buffer), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::UnavailableError(absl::StrCat(path_, ": ", ErrnoText()));
    if (count == 0) break;
    digest.Update(buffer, count);
    offset += count;
  }
  const std::string found = digest.HexDigest();
  if (found == sha256) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path_, " is damaged: its SHA-256 is ",
                                          found.substr(0, 16), "..., expected ",
                                          sha256.substr(0, 16), "..."));
}

absl::StatusOr<std::string> CheckedFile::Read() const {
  struct stat info;
  if (fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::PermissionDeniedError(absl::StrCat(path_, " is not a regular file"));
  }
  std::string bytes(info.st_size, '\0');
  for (size_t offset = 0; offset < bytes.size();) {
    const ssize_t count = pread(descriptor_, &bytes[offset], bytes.size() - offset, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::UnavailableError(absl::StrCat(path_, ": ", ErrnoText()));
    if (count == 0) bytes.resize(offset);  // it was cut short meanwhile
    offset += count;
  }
  return bytes;
}

std::string CheckedFile::MapPath() {
  if (!std::exchange(is_name_, true)) descriptor_ = Numbers().Name(descriptor_);
  return DescriptorPath(descriptor_);
}

absl::StatusOr<void*> CheckedFile::Map(int flags) {
  void* library = dlopen(MapPath().c_str(), flags);
  if (library != nullptr) return library;
  const char* why = dlerror();
  return absl::FailedPreconditionError(
      absl::StrCat(path_, " does not load: ", why != nullptr ? why : "no reason given"));
}

}  // namespace composite
