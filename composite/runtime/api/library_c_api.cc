#include "composite/runtime/library_c_api.h"

#include <cstring>
#include <string>

#include "composite/runtime/api/c_api_reply.h"
#include "composite/runtime/api/library_folder.h"
#include "composite/runtime/api/model_kernels.h"
#include "composite/runtime/base/stats.h"

namespace composite {
namespace {

absl::Status Load(const std::string& folder) {
  if (!IsModelKernels(folder)) return LoadLibraryFolder(folder);
  return LoadModelKernels(folder, /*digest=*/"", NativeCode::kYes);
}

}  // namespace
}  // namespace composite

extern "C" {

int composite_load_library(const char* folder, char* error, size_t error_size) {
  return composite::Answer(error, error_size, [&] { return composite::Load(folder); });
}

int64_t composite_counter(const char* name) {
  for (const auto& [known, counter] : composite::AllCounters()) {
    if (std::strcmp(known, name) == 0) return counter->load(std::memory_order_relaxed);
  }
  return -1;
}

}  // extern "C"
