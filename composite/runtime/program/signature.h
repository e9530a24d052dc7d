// An op's inputs and outputs for given attributes, flattened: names, dtypes, and which are lists.
#ifndef COMPOSITE_RUNTIME_PROGRAM_SIGNATURE_H_
#define COMPOSITE_RUNTIME_PROGRAM_SIGNATURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace composite {

struct FlatArg {
  std::string name;  // of the arg
  bool is_list;
  std::vector<tensorflow::DataType> types;  // one when it is no list
};

// No op has more inputs or outputs: a damaged attribute must not ask for a billion tensors.
inline constexpr int64_t kMostTensors = 1 << 16;

// A flattened arg; all input args, or all output args, of an op. InvalidArgument when an attribute
// that decides them is missing or out of range.
absl::StatusOr<FlatArg> Flatten(const tensorflow::OpDef::ArgDef& arg, tensorflow::AttrSlice attrs);
absl::StatusOr<std::vector<FlatArg>> Flatten(
    const google::protobuf::RepeatedPtrField<tensorflow::OpDef::ArgDef>& args,
    tensorflow::AttrSlice attrs);

// "x" for a tensor, "x_0", "x_1", ... for a list; made unique with a suffix.
std::vector<std::string> FlatNames(const std::vector<FlatArg>& args);
std::vector<tensorflow::DataType> FlatTypes(const std::vector<FlatArg>& args);

// All declared attributes of the op, defaults filled in, nothing else. InvalidArgument when one is
// missing or not allowed.
absl::StatusOr<tensorflow::NodeDef> CompleteAttrs(const tensorflow::OpDef& op_def,
                                                  tensorflow::AttrSlice attrs);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PROGRAM_SIGNATURE_H_
