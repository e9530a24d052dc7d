#include "composite/runtime/run/packed_constants.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/run/kernel_call.h"

namespace composite {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// A "constant" that lies elsewhere in each call, a copy of one for example, is packed no oftener.
constexpr size_t kMostChanges = 3;

// The packed forms that some node holds, by the identity of their source, which the form keeps
// alive, and by the packer.
class Pool {
 public:
  static Pool& Global() {
    static Pool* pool = new Pool;  // nodes may outlive static objects
    return *pool;
  }

  std::shared_ptr<const PackedForm> Find(const Tensor& source, tvm_abi::Function packer) {
    absl::MutexLock lock(mu_);
    auto it = forms_.find(Key{TensorIdentity(source), packer});
    return it == forms_.end() ? nullptr : it->second.lock();
  }

  std::shared_ptr<const PackedForm> Add(PackedForm form, tvm_abi::Function packer, bool counted) {
    const Key key{form.source.identity(), packer};
    const int64_t bytes = counted ? form.packed.TotalBytes() : 0;
    absl::MutexLock lock(mu_);
    std::weak_ptr<const PackedForm>& known = forms_[key];
    if (auto other = known.lock()) return other;  // packed by two nodes at once
    if (counted) Count(GlobalStats().packed_constants);
    GlobalStats().packed_bytes.fetch_add(bytes, std::memory_order_relaxed);
    std::shared_ptr<const PackedForm> shared(
        new PackedForm(std::move(form)),
        [this, key, bytes](const PackedForm* gone) { Remove(gone, key, bytes); });
    known = shared;
    return shared;
  }

 private:
  using Key = std::pair<TensorIdentity, tvm_abi::Function>;

  void Remove(const PackedForm* form, const Key& key, int64_t bytes) {
    {
      absl::MutexLock lock(mu_);
      auto it = forms_.find(key);
      // Another form may have taken the place since the last owner of this one left.
      if (it != forms_.end() && it->second.expired()) forms_.erase(it);
    }
    GlobalStats().packed_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    delete form;
  }

  ForkMutex mu_;
  absl::flat_hash_map<Key, std::weak_ptr<const PackedForm>> forms_ ABSL_GUARDED_BY(mu_);
};

absl::StatusOr<std::shared_ptr<const PackedForm>> Obtain(OpKernelContext* context,
                                                         const InstalledKernel& kernel, size_t i,
                                                         bool counted) {
  const Tensor& source = context->input(kernel.record.packed[i].source);
  if (auto known = Pool::Global().Find(source, kernel.packers[i])) return known;
  PackedForm form{HeldTensor(source), Tensor()};
  absl::Status status = CallPacker(context, kernel, i, &form.packed);
  if (!status.ok()) return status;
  if (counted) Count(GlobalStats().copies);
  return Pool::Global().Add(std::move(form), kernel.packers[i], counted);
}

bool AreImmutable(OpKernelContext* context, const InstalledKernel& kernel) {
  return absl::c_all_of(kernel.record.packed, [&](const PackedArgument& argument) {
    return IsImmutableWhileHeld(context->input(argument.source));
  });
}

}  // namespace

bool PackedConstants::Set::IsOf(OpKernelContext* context, const InstalledKernel& other) const {
  if (kernel != &other) return false;
  for (size_t i = 0; i < forms.size(); ++i) {
    const Tensor& input = context->input(other.record.packed[i].source);
    if (!forms[i]->source.Matches(input)) return false;
  }
  return true;
}

absl::StatusOr<std::shared_ptr<const PackedConstants::Tensors>> PackedConstants::Get(
    OpKernelContext* context, const InstalledKernel& kernel) {
  absl::MutexLock lock(mu_);
  const auto known = std::find_if(sets_.begin(), sets_.end(),
                                  [&](const Set& set) { return set.IsOf(context, kernel); });
  if (known != sets_.end()) {
    changes_ = 0;
    std::rotate(sets_.begin(), known, known + 1);
    return sets_.front().tensors;
  }
  if (!AreImmutable(context, kernel)) return std::shared_ptr<const Tensors>();
  changes_ = !sets_.empty() && sets_.front().kernel == &kernel ? changes_ + 1 : 0;
  // With deterministic ops the kernel stays the one that the call had before.
  if (changes_ >= kMostChanges + most_ && !DeterminismRequired()) {
    return std::shared_ptr<const Tensors>();
  }
  std::vector<std::shared_ptr<const PackedForm>> forms;
  auto tensors = std::make_shared<Tensors>();
  for (size_t i = 0; i < kernel.record.packed.size(); ++i) {
    auto form = Obtain(context, kernel, i, counted_);
    if (!form.ok()) return form.status();
    tensors->push_back((*form)->packed);
    forms.push_back(*std::move(form));
  }
  if (sets_.size() == most_) sets_.pop_back();
  sets_.insert(sets_.begin(), Set{&kernel, std::move(forms), std::move(tensors)});
  return sets_.front().tensors;
}

void PackedConstants::Clear() {
  absl::MutexLock lock(mu_);
  sets_.clear();
}

}  // namespace composite
