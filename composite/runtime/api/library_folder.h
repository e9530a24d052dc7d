// Opens a folder that composite.build wrote, in a process that may have no Python.
#ifndef COMPOSITE_RUNTIME_API_LIBRARY_FOLDER_H_
#define COMPOSITE_RUNTIME_API_LIBRARY_FOLDER_H_

#include <string>

#include "absl/status/status.h"

namespace composite {

// Registers the ops and kernels of the library in `folder`; nothing when the same library is loaded
// already. Everything that can be is checked before code of the folder is mapped:
// NotFound: it holds no library. FailedPrecondition: it is for another TensorFlow or another
// version of ours, or the linker refuses it. DataLoss: a file is damaged. AlreadyExists: an op of
// the library has another body in this process.
absl::Status LoadLibraryFolder(const std::string& folder);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_API_LIBRARY_FOLDER_H_
