// Buffers of TensorFlow's that other libraries were given, which may write there.
#ifndef COMPOSITE_RUNTIME_MEMORY_EXPORTS_H_
#define COMPOSITE_RUNTIME_MEMORY_EXPORTS_H_

#include "tensorflow/core/framework/tensor.h"

namespace composite {

// Notes that another library is about to be given the memory of a tensor. When it gives it back
// nobody knows: the buffer counts as one that others have, and so does one that gets its address.
void NoteExport(const tensorflow::Tensor& tensor);

bool IsExported(const tensorflow::TensorBuffer& root);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_MEMORY_EXPORTS_H_
