#include "composite/runtime/variables/contents.h"

#include <utility>

#include "composite/runtime/memory/tensor_identity.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/allocation_description.pb.h"
#include "tensorflow/core/platform/mutex.h"

namespace composite {
namespace {

using tensorflow::DMAHelper;
using tensorflow::Tensor;
using tensorflow::TensorBuffer;
using tensorflow::Var;

// A variable's buffer, with the variable. Weakly: its contents may become another variable's, or
// its own again. TensorFlow 2.21 keeps the buffer of a tensor to itself but for DMAHelper.
class ContentsBuffer : public TensorBuffer {
 public:
  ContentsBuffer(Tensor held, Var* variable)
      : TensorBuffer(held.data()), held_(std::move(held)), variable_(variable) {}

  size_t size() const override { return held().size(); }
  TensorBuffer* root_buffer() override { return held().root_buffer(); }
  bool OwnsMemory() const override { return held().OwnsMemory(); }
  void FillAllocationDescription(tensorflow::AllocationDescription* proto) const override {
    held().FillAllocationDescription(proto);
  }
  bool GetAllocatedBytes(size_t* bytes) const override { return held().GetAllocatedBytes(bytes); }
  tensorflow::AllocatorMemoryType GetMemoryType() const override { return held().GetMemoryType(); }

  TensorBuffer& held() const { return *const_cast<TensorBuffer*>(DMAHelper::buffer(&held_)); }
  tensorflow::core::RefCountPtr<Var> variable() const { return variable_.GetNewRef(); }

 private:
  const Tensor held_;
  const tensorflow::core::WeakPtr<Var> variable_;
};

// Whether the variable and the one who holds its contents are all that have its memory.
bool HasAlone(Var* variable, const ContentsBuffer& contents) {
  const TensorBuffer* own = DMAHelper::buffer(variable->tensor());
  return variable->is_initialized && !variable->copy_on_read_mode.load() &&
         own == &contents.held() && IsExclusive(*own, /*tensors=*/2);
}

}  // namespace

Tensor ContentsOf(Var* variable) {
  const Tensor& held = *variable->tensor();
  if (held.NumElements() == 0) return held;  // without a buffer
  auto* const buffer = new ContentsBuffer(held, variable);
  const tensorflow::core::ScopedUnref owned(buffer);  // by the tensor from here on
  return Tensor(held.dtype(), held.shape(), buffer);
}

WrittenVariables::~WrittenVariables() {
  for (const auto& variable : locked_) variable->mu()->unlock();
}

absl::optional<Tensor> WrittenVariables::Take(const Tensor& read,
                                              const tensorflow::TensorShape& shape,
                                              size_t alignment) {
  const auto* contents = dynamic_cast<const ContentsBuffer*>(DMAHelper::buffer(&read));
  // One of the two is the input, the other waits for this node in the update.
  if (contents == nullptr || contents->RefCount() != 2) return absl::nullopt;
  if (read.shape() != shape || !MayReuseForResult(read, alignment)) return absl::nullopt;
  auto variable = contents->variable();
  // Who has the lock may be about to read; two kernels might wait for each other's.
  if (variable == nullptr || !variable->mu()->try_lock()) return absl::nullopt;
  if (!HasAlone(variable.get(), *contents)) {
    variable->mu()->unlock();
    return absl::nullopt;
  }
  locked_.push_back(std::move(variable));
  return *locked_.back()->tensor();
}

}  // namespace composite
