#include "composite/runtime/memory/exports.h"

#include <atomic>
#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "composite/runtime/base/fork_mutex.h"
#include "tensorflow/core/common_runtime/dma_helper.h"

namespace composite {
namespace {

using tensorflow::TensorBuffer;

class Exports {
 public:
  static Exports& Global() {
    static Exports* all = new Exports;  // tensors may outlive static objects
    return *all;
  }

  void Add(const TensorBuffer* root) {
    absl::MutexLock lock(mu_);
    if (roots_.size() < kMost) roots_.insert(root);
    some_.store(true, std::memory_order_release);
  }

  bool Has(const TensorBuffer* root) const {
    if (!some_.load(std::memory_order_acquire)) return false;
    absl::MutexLock lock(mu_);
    return roots_.size() >= kMost || roots_.contains(root);
  }

 private:
  static constexpr size_t kMost = 1 << 16;  // of so many, every buffer may be one

  std::atomic<bool> some_{false};
  mutable ForkMutex mu_;
  absl::flat_hash_set<const TensorBuffer*> roots_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

void NoteExport(const tensorflow::Tensor& tensor) {
  auto* const buffer = const_cast<TensorBuffer*>(tensorflow::DMAHelper::buffer(&tensor));
  if (buffer != nullptr) Exports::Global().Add(buffer->root_buffer());
}

bool IsExported(const TensorBuffer& root) { return Exports::Global().Has(&root); }

}  // namespace composite
