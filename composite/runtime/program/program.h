// A program: the body of a composite op as the runtime reads it (see parse_program.h). What the
// nodes mean is not decided here: see expand.h.
#ifndef COMPOSITE_RUNTIME_PROGRAM_PROGRAM_H_
#define COMPOSITE_RUNTIME_PROGRAM_PROGRAM_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace composite {

enum class NodeKind {
  kConstant,
  kList,
  kItem,
  kUnpack,
  kCall,
  kUnary,
  kBinary,
  kCompare,
  kIf,
  kWhile,
  kApply,
  kShape,
  kRank,
  kDtype,
  kLength,
  kBuiltin,
  kSubscript,
  kRaise,
};

struct ProgramNode {
  NodeKind kind;
  std::string place;                  // "ops.py:12:5"
  std::vector<int> inputs;            // slots of the region that holds the node
  int first_slot = 0;                 // results are consecutive slots
  int results = 1;                    // 0 only for kRaise
  std::string symbol;                 // kCall: TF op; operators, kBuiltin: name; kRaise: exception;
                                      // kSubscript: see subscript.h; kList: "tuple" or empty
  std::string name;                   // kCall: what the author called the node, or empty
  std::string callee_digest;          // kCall: `_composite_program`, empty for a plain TF op
  std::vector<std::string> keywords;  // kCall: the argument name of each input
  tensorflow::AttrValue constant;     // kConstant; VALUE_NOT_SET is None
  std::vector<std::string> names;     // kIf, kWhile: what the author calls the results
  std::vector<int> regions;           // kIf: then, else; kWhile: condition, body; kApply: one
};

struct ProgramRegion {
  std::string name;
  int parameters = 0;  // slots 0 .. parameters-1
  int slots = 0;
  std::vector<ProgramNode> nodes;
  std::vector<int> results;  // slots, in the order of the signature's outputs
};

struct Program {
  // Complete: types, attributes with their defaults, is_stateful, documentation.
  tensorflow::OpDef op_def;
  std::string digest;
  std::string place;   // "ops.py:12", the author's definition
  std::string module;  // the Python module
  // What stays the same when the author edits and runs the definition again: "ops.py#dense". Empty
  // where nobody says, then place and module stand for it.
  std::string origin;
  // The op of TensorFlow that this is a composition for, else empty; and whether the author asks
  // for its nodes to be replaced.
  std::string composes;
  bool replaces = false;
  // [0] is the body; its parameters are all input args and then all attributes of op_def.
  std::vector<ProgramRegion> regions;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PROGRAM_PROGRAM_H_
