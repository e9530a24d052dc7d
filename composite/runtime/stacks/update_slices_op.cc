// CompositeUpdateSlices: slices of a tensor updated, where it lies unless others have it.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/stacks/picks.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace composite {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using Sizes = absl::InlinedVector<int64_t, 8>;

absl::Status ShapeOfUpdated(tensorflow::shape_inference::InferenceContext* context) {
  std::vector<int64_t> axes, sizes;
  TF_RETURN_IF_ERROR(context->GetAttr("axes", &axes));
  TF_RETURN_IF_ERROR(context->GetAttr("sizes", &sizes));
  tensorflow::shape_inference::ShapeHandle shape = context->input(0);
  for (size_t i = 0; i < axes.size() && context->RankKnown(shape); ++i) {
    const auto size = context->MakeDim(sizes[i]);
    TF_RETURN_IF_ERROR(context->ReplaceDim(shape, axes[i], size, &shape));
  }
  context->set_output(0, shape);
  return absl::OkStatus();
}

REGISTER_OP("CompositeUpdateSlices")
    .Input("whole: T")
    .Input("updates: N * T")
    .Input("starts: N * Tindices")
    .Output("updated: T")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .Attr("N: int >= 1")
    .Attr("axes: list(int)")
    .Attr("sizes: list(int)")
    .Attr("places: list(int)")
    .SetShapeFn(ShapeOfUpdated)
    .Doc(R"doc(
Updates slices of parts of a tensor, as XlaDynamicUpdateSlice does of a whole one.

whole: The tensor. It is written where it lies, unless others have it.
updates: What the slices become. Their dims are those of the tensor without `axes`.
starts: Where each slice begins, moved such that it lies within the tensor.
updated: The tensor, of which along each of `axes` only the first `sizes` elements are left.
axes: The dims along which each part is one element, in ascending order.
places: For each update the element of each of `axes` that it is of.
)doc");

// The distance between neighbours along each dim.
Sizes StridesOf(const TensorShape& shape) {
  Sizes strides(shape.dims(), 1);
  for (int i = shape.dims() - 2; i >= 0; --i) strides[i] = strides[i + 1] * shape.dim_size(i + 1);
  return strides;
}

// A box of elements in two tensors: how large it is, and how far apart neighbours are in each.
struct Box {
  Sizes size, from, to;
  int64_t item;  // bytes

  void Copy(const char* source, char* target, size_t dim = 0) const {
    if (IsRun(dim)) {
      int64_t count = 1;
      for (size_t i = dim; i < size.size(); ++i) count *= size[i];
      std::memcpy(target, source, count * item);
      return;
    }
    for (int64_t i = 0; i < size[dim]; ++i) {
      Copy(source + i * from[dim] * item, target + i * to[dim] * item, dim + 1);
    }
  }

 private:
  // Whether the elements from a dim on lie one after the other in both tensors.
  bool IsRun(size_t dim) const {
    int64_t count = 1;
    for (size_t i = size.size(); i > dim; --i) {
      if (size[i - 1] != 1 && (from[i - 1] != count || to[i - 1] != count)) return false;
      count *= size[i - 1];
    }
    return true;
  }
};

Sizes SizesOf(const TensorShape& shape) {
  const auto sizes = shape.dim_sizes();
  return Sizes(sizes.begin(), sizes.end());
}

class UpdateSlicesOp : public tensorflow::OpKernel {
 public:
  explicit UpdateSlicesOp(tensorflow::OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("axes", &axes_));
    OP_REQUIRES_OK(context, context->GetAttr("sizes", &sizes_));
    OP_REQUIRES_OK(context, context->GetAttr("places", &places_));
    OP_REQUIRES_OK(context, context->GetAttr("N", &count_));
    tensorflow::DataType dtype;
    OP_REQUIRES_OK(context, context->GetAttr("T", &dtype));
    OP_REQUIRES(
        context, tensorflow::DataTypeCanUseMemcpy(dtype),
        absl::InvalidArgumentError("CompositeUpdateSlices of elements that are no numbers"));
    item_ = tensorflow::DataTypeSize(dtype);
    const size_t axes = axes_.size();
    OP_REQUIRES(context, sizes_.size() == axes && places_.size() == axes * count_,
                absl::InvalidArgumentError("CompositeUpdateSlices: lists of different lengths"));
  }

  // What it copies is little, as a rule.
  bool IsExpensive() override { return false; }

  void Compute(OpKernelContext* context) override {
    Tensor* updated = nullptr;
    OP_REQUIRES_OK(context, Take(context, &updated));
    for (int k = 0; k < count_; ++k) {
      OP_REQUIRES_OK(context, Update(context->input(1 + k), context->input(1 + count_ + k),
                                     places_.data() + k * axes_.size(), updated));
    }
  }

 private:
  // The tensor, cut along the axes: its own memory where nobody else has it.
  absl::Status Take(OpKernelContext* context, Tensor** updated) const {
    const Tensor& whole = context->input(0);
    TensorShape shape = whole.shape();
    for (size_t i = 0; i < axes_.size(); ++i) {
      if (axes_[i] < 0 || axes_[i] >= shape.dims() || shape.dim_size(axes_[i]) < sizes_[i]) {
        return absl::InvalidArgumentError(absl::StrCat(
            "slice index ", sizes_[i] - 1, " of dimension ", axes_[i], " out of bounds."));
      }
      shape.set_dim(axes_[i], sizes_[i]);
    }
    const bool is_cut = shape != whole.shape();
    const std::vector<int> taken = is_cut ? std::vector<int>() : std::vector<int>{0};
    const auto* before = static_cast<const char*>(whole.data());
    const Sizes strides = StridesOf(whole.shape());
    TF_RETURN_IF_ERROR(context->forward_input_or_allocate_output(taken, 0, shape, updated));
    auto* now = static_cast<char*>((*updated)->data());
    if (now == before && now != nullptr) Count(GlobalStats().in_place_updates);
    if (now != before && shape.num_elements() > 0) {
      Box{SizesOf(shape), strides, StridesOf(shape), item_}.Copy(before, now);
    }
    return absl::OkStatus();
  }

  absl::Status Update(const Tensor& update, const Tensor& starts, const int64_t* places,
                      Tensor* updated) const {
    const TensorShape& shape = updated->shape();
    const Sizes strides = StridesOf(shape);
    Sizes target;  // of the update's dims
    int64_t offset = 0;
    size_t picked = 0;
    for (int dim = 0; dim < shape.dims(); ++dim) {
      if (picked < axes_.size() && axes_[picked] == dim) {
        offset += places[picked++] * strides[dim];
        continue;
      }
      const int own = static_cast<int>(target.size());
      target.push_back(strides[dim]);
      if (own >= update.dims() || own >= starts.NumElements()) continue;  // an error, below
      const int64_t most = shape.dim_size(dim) - update.dim_size(own);
      if (most < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("Update dim size ", update.dim_size(own),
                         " greater than dynamic slice dimension: ", shape.dim_size(dim)));
      }
      offset += std::clamp<int64_t>(IndexAt(starts, own), 0, most) * strides[dim];
    }
    if (update.dims() != static_cast<int>(target.size()) ||
        starts.NumElements() != static_cast<int64_t>(target.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "an update of shape ", update.shape().DebugString(), " at ", starts.NumElements(),
          " indices, in a tensor of shape ", shape.DebugString()));
    }
    if (update.NumElements() == 0) return absl::OkStatus();
    const Box box{SizesOf(update.shape()), StridesOf(update.shape()), target, item_};
    box.Copy(static_cast<const char*>(update.data()),
             static_cast<char*>(updated->data()) + offset * item_);
    return absl::OkStatus();
  }

  std::vector<int64_t> axes_, sizes_, places_;
  int count_ = 0;
  int64_t item_ = 0;
};

REGISTER_KERNEL_BUILDER(Name("CompositeUpdateSlices").Device(tensorflow::DEVICE_CPU),
                        UpdateSlicesOp);

}  // namespace
}  // namespace composite
