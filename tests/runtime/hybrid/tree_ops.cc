// Ops of somebody else: one that follows the parents of beams, as GatherTree does, and a resource
// that is made of a file.
#include <fstream>
#include <set>
#include <string>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {
namespace {

REGISTER_OP("TestFollowParents")
    .Input("ids: int32")
    .Input("parents: int32")
    .Output("beams: int32")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(0));
      return absl::OkStatus();
    });

class FollowParents : public OpKernel {
 public:
  explicit FollowParents(OpKernelConstruction* c) : OpKernel(c) {}
  void Compute(OpKernelContext* context) override {
    const Tensor &ids = context->input(0), &parents = context->input(1);
    OP_REQUIRES(context, ids.NumElements() == parents.NumElements(),
                absl::InvalidArgumentError("not one parent for each id"));
    Tensor* beams;
    OP_REQUIRES_OK(context, context->allocate_output(0, ids.shape(), &beams));
    for (int64_t i = 0; i < ids.NumElements(); ++i) {
      const int32_t parent = parents.flat<int32_t>()(i);
      OP_REQUIRES(context, 0 <= parent && parent < ids.NumElements(),
                  absl::InvalidArgumentError("a parent that is no beam"));
      beams->flat<int32_t>()(i) = ids.flat<int32_t>()(parent);
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("TestFollowParents").Device(DEVICE_CPU), FollowParents);

class WordSet : public ResourceBase {
 public:
  std::string DebugString() const override { return "words"; }
  std::set<std::string> words;
};

REGISTER_OP("TestWordSet")
    .Output("words: resource")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(shape_inference::ScalarShape);

class MakeWordSet : public ResourceOpKernel<WordSet> {
 public:
  explicit MakeWordSet(OpKernelConstruction* c) : ResourceOpKernel(c) {}

 private:
  absl::Status CreateResource(WordSet** made) override {
    *made = new WordSet;
    return absl::OkStatus();
  }
};

REGISTER_OP("TestFillWordSet")
    .Input("words: resource")
    .Input("file: string")
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs);

class FillWordSet : public OpKernel {
 public:
  explicit FillWordSet(OpKernelConstruction* c) : OpKernel(c) {}
  void Compute(OpKernelContext* context) override {
    core::RefCountPtr<WordSet> made;
    OP_REQUIRES_OK(context, LookupResource(context, HandleFromInput(context, 0), &made));
    std::ifstream file(std::string(context->input(1).scalar<tstring>()()));
    OP_REQUIRES(context, file.good(), absl::NotFoundError("the words' file is not there"));
    for (std::string word; std::getline(file, word);) {
      OP_REQUIRES(context, made->words.insert(word).second,
                  absl::AlreadyExistsError("the words have been filled"));
    }
  }
};

REGISTER_OP("TestHasWord")
    .Input("words: resource")
    .Input("text: string")
    .Output("has: bool")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(1));
      return absl::OkStatus();
    });

class HasWord : public OpKernel {
 public:
  explicit HasWord(OpKernelConstruction* c) : OpKernel(c) {}
  void Compute(OpKernelContext* context) override {
    core::RefCountPtr<WordSet> made;
    OP_REQUIRES_OK(context, LookupResource(context, HandleFromInput(context, 0), &made));
    OP_REQUIRES(context, !made->words.empty(), absl::FailedPreconditionError("no words"));
    const Tensor& text = context->input(1);
    Tensor* has;
    OP_REQUIRES_OK(context, context->allocate_output(0, text.shape(), &has));
    for (int64_t i = 0; i < text.NumElements(); ++i) {
      has->flat<bool>()(i) = made->words.count(std::string(text.flat<tstring>()(i))) != 0;
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("TestWordSet").Device(DEVICE_CPU), MakeWordSet);
REGISTER_KERNEL_BUILDER(Name("TestFillWordSet").Device(DEVICE_CPU), FillWordSet);
REGISTER_KERNEL_BUILDER(Name("TestHasWord").Device(DEVICE_CPU), HasWord);

}  // namespace
}  // namespace tensorflow
