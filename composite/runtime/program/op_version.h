// One version of a composite op: its declaration with one body.
#ifndef COMPOSITE_RUNTIME_PROGRAM_OP_VERSION_H_
#define COMPOSITE_RUNTIME_PROGRAM_OP_VERSION_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "composite/runtime/program/program.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace composite {

// Immutable but for kernel_possible; lives as long as anything points to it.
struct OpVersion {
  std::string op_name;
  std::string digest;
  std::string place;
  tensorflow::OpDef op_def;
  Program program;
  // Of kFunctionOp, which has no program: holds the function that is called `digest`.
  std::shared_ptr<const tensorflow::FunctionLibraryDefinition> function;
  std::string content;  // of kFunctionOp: the function's FunctionDigest
  // The TF ops of every call, sorted: those of the program and of what it calls, but not those in
  // the branches of conditions, which the dtypes and attributes of a call may exclude.
  std::vector<std::string> unconditional_ops;
  // Of a program: whether calls may have products or convolutions.
  bool has_sums = false;
  // Whether the kernel compiler can lower all of these. What else a call reaches, the compiler
  // finds in its expansion. False until SetKernelOps was called: a process that only serves
  // compiles nothing.
  mutable std::atomic<bool> kernel_possible{false};
};

// The author's definition, for messages: "ops.py:12 (module ops)".
std::string DefinitionOf(const OpVersion& version);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PROGRAM_OP_VERSION_H_
