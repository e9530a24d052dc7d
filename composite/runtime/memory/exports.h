// TensorFlow's buffers that were exported to other libraries, which may write there.
#ifndef COMPOSITE_RUNTIME_MEMORY_EXPORTS_H_
#define COMPOSITE_RUNTIME_MEMORY_EXPORTS_H_

#include "tensorflow/core/framework/tensor.h"

namespace composite {

// Records that the memory of a tensor is about to be exported to another library. The end of an
// export is not visible: its buffer, and any later buffer at the same address, counts as exported
// for good.
void NoteExport(const tensorflow::Tensor& tensor);

bool IsExported(const tensorflow::TensorBuffer& root);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_MEMORY_EXPORTS_H_
