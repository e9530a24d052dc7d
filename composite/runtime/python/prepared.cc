#include "composite/runtime/python/prepared.h"

#include <cfenv>
#include <utility>

#include "composite/runtime/python/eager_tensors.h"
#include "composite/runtime/python/functions.h"
#include "tsl/platform/denormal.h"
#include "tsl/platform/setround.h"

namespace composite {
std::shared_ptr<const Prepared> Prepared::Make(PyObject* made) {
  PyObject* const address = PyTuple_GetItem(made, 0);
  PyObject* const keep = PyTuple_GetItem(made, 1);
  PyObject* const capsule = PyTuple_GetItem(made, 2);
  if (PyErr_Occurred() != nullptr) return nullptr;
  const auto* const call = reinterpret_cast<const DirectCall*>(PyLong_AsLongLong(address));
  if (PyErr_Occurred() != nullptr) return nullptr;
  tensorflow::EagerContext* const context = EagerContextIn(capsule);
  if (context == nullptr) return nullptr;
  return std::shared_ptr<const Prepared>(
      new Prepared(call, Object::Borrowed(keep), Object::Borrowed(capsule), context));
}

Prepared::Prepared(const DirectCall* call, Object keep, Object capsule,
                   tensorflow::EagerContext* context)
    : call_(call), keep_(std::move(keep)), capsule_(std::move(capsule)), context_(context) {}

absl::StatusOr<std::vector<Object>> Prepared::Run(
    absl::Span<const tensorflow::Tensor* const> tensors) const {
  absl::InlinedVector<tensorflow::Tensor, 2> results(call_->results().size());
  absl::Status status;
  {
    const WithoutGil others;
    // As TensorFlow has its threads compute, whatever this one does otherwise.
    const tsl::port::ScopedFlushDenormal flush;
    const tsl::port::ScopedSetRound round(FE_TONEAREST);
    status = call_->Call(tensors, absl::MakeSpan(results));
  }
  if (!status.ok()) return status;
  std::vector<Object> objects;
  objects.reserve(results.size());
  for (tensorflow::Tensor& result : results) {
    objects.push_back(EagerTensorOf(std::move(result), context_));
  }
  return objects;
}

}  // namespace composite
