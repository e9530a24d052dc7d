#include "composite/runtime/kernel_library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/sha256.h"

namespace composite {
namespace {

class File {
 public:
  // NOFOLLOW: a link could be pointed elsewhere between the check and its use. NONBLOCK: or open()
  // waits for the writer of a pipe.
  explicit File(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

std::string ErrnoText() { return std::strerror(errno); }

absl::Status CheckOwner(const std::string& path, int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) return absl::UnavailableError(absl::StrCat(path, ": ", ErrnoText()));
  if (!S_ISREG(info.st_mode)) {
    return absl::PermissionDeniedError(absl::StrCat(path, " is not a regular file"));
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, " belongs to user ", info.st_uid, ", and this process is user ",
                     geteuid(), "; native code is loaded from the user's own files only"));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, " can be written by others; run chmod go-w on it"));
  }
  return absl::OkStatus();
}

absl::Status CheckDigest(const std::string& path, int fd, const std::string& sha256) {
  Sha256 digest;
  char buffer[16384];
  for (;;) {
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::UnavailableError(absl::StrCat(path, ": ", ErrnoText()));
    if (count == 0) break;
    digest.Update(buffer, count);
  }
  const std::string found = digest.HexDigest();
  if (found == sha256) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " is damaged: its SHA-256 is ", found.substr(0, 16),
                                          "..., expected ", sha256.substr(0, 16), "..."));
}

// A name of this descriptor that no open library has. dlopen compares names before it looks at the
// file, and would return an old library for a new file behind the same descriptor number; so a
// counter is spelled in "/" and "./", which mean nothing to the kernel.
std::string DescriptorPath(int fd) {
  static std::atomic<unsigned> counter{0};
  std::string path = "/proc/self/fd/";
  for (unsigned rest = counter.fetch_add(1); rest != 0; rest >>= 1) {
    path += (rest & 1) != 0 ? "./" : "/";
  }
  return absl::StrCat(path, fd);
}

void Fill(void* library) {
  tvm_abi::Slots slots;
  slots.parallel_launch = static_cast<void**>(dlsym(library, tvm_abi::kParallelLaunch));
  slots.parallel_barrier = static_cast<void**>(dlsym(library, tvm_abi::kParallelBarrier));
  slots.alloc_workspace = static_cast<void**>(dlsym(library, tvm_abi::kAllocWorkspace));
  slots.free_workspace = static_cast<void**>(dlsym(library, tvm_abi::kFreeWorkspace));
  tvm_abi::FillSlots(slots);
}

}  // namespace

absl::StatusOr<std::vector<tvm_abi::Function>> LoadKernel(const std::string& path,
                                                          const std::string& sha256,
                                                          absl::Span<const std::string> names) {
  if (path.empty() || path[0] != '/') {
    return absl::InvalidArgumentError(absl::StrCat("_library: \"", path, "\" is not absolute"));
  }
  File file(path);
  if (file.fd() < 0) {
    const absl::StatusCode code =
        errno == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kPermissionDenied;
    return absl::Status(code, absl::StrCat("cannot open ", path, ": ", ErrnoText(),
                                           errno == ELOOP ? " (it is a link)" : ""));
  }
  absl::Status status = CheckOwner(path, file.fd());
  if (status.ok()) status = CheckDigest(path, file.fd(), sha256);
  if (!status.ok()) return status;
  // DEEPBIND: the kernel's imports are found in our library, which it names as needed, and not in a
  // TVM that the same process may have loaded.
  void* library = dlopen(DescriptorPath(file.fd()).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (library == nullptr) {
    const char* why = dlerror();
    return absl::FailedPreconditionError(
        absl::StrCat(path, " does not load: ", why != nullptr ? why : "no reason given"));
  }
  Fill(library);
  std::vector<tvm_abi::Function> functions;
  for (const std::string& name : names) {
    void* function = dlsym(library, absl::StrCat(tvm_abi::kSymbolPrefix, name).c_str());
    if (function == nullptr) {
      return absl::NotFoundError(absl::StrCat(path, " has no kernel ", name));
    }
    functions.push_back(reinterpret_cast<tvm_abi::Function>(function));
  }
  return functions;
}

}  // namespace composite
