// A file that is opened once, checked, and then mapped as code: by its descriptor, so that what was
// checked is what runs, whatever is put under its name meanwhile.
#ifndef COMPOSITE_RUNTIME_BASE_CHECKED_FILE_H_
#define COMPOSITE_RUNTIME_BASE_CHECKED_FILE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace composite {

// Every failure is a status that names the file. Moved, not copied: it owns the descriptor.
class CheckedFile {
 public:
  // Follows no link. NotFound; PermissionDenied for all else that stands in the way.
  // "/proc/self/fd/<number>" is a descriptor of this process, whatever it is of: a file in memory.
  static absl::StatusOr<CheckedFile> Open(const std::string& path);

  // A file in memory of these bytes, `name` in messages. Unavailable when there is no memory.
  static absl::StatusOr<CheckedFile> InMemory(const std::string& name, absl::string_view bytes);

  CheckedFile(CheckedFile&& other) noexcept;
  CheckedFile& operator=(CheckedFile&&) = delete;
  ~CheckedFile();

  // PermissionDenied unless it is a regular file that only its owner, this user or root, can write.
  absl::Status CheckOwner() const;

  // Goes on with a copy in memory if the folder is mounted so that nothing in it may be run.
  // Unavailable when there is no memory. Must come before CheckDigest, which is then of the copy.
  absl::Status MakeExecutable();

  // DataLoss unless its bytes have this SHA-256 (hex). Must come before Map: a library that is cut
  // short kills the process otherwise.
  absl::Status CheckDigest(const std::string& sha256) const;

  // All bytes of a regular file. PermissionDenied for another kind of file.
  absl::StatusOr<std::string> Read() const;

  // A path of this file for a loader that takes no descriptor. No open library has that name. Valid
  // as long as this object lives; nothing can be opened by it later.
  std::string MapPath();

  // dlopen with these flags; stays open for ever. FailedPrecondition with the linker's words.
  absl::StatusOr<void*> Map(int flags);

 private:
  CheckedFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  const std::string path_;
  int descriptor_;
  bool is_name_ = false;  // an open library may be named by the descriptor's number
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_BASE_CHECKED_FILE_H_
