// Calls of foreign functions by code that XLA compiled for the CPU.
#ifndef COMPOSITE_RUNTIME_FOREIGN_XLA_CALL_H_
#define COMPOSITE_RUNTIME_FOREIGN_XLA_CALL_H_

namespace composite {

// The name of XLA's custom call, a typed FFI handler, and its attributes: the attribute `function`
// of the node, and whether the function returns its outputs.
constexpr char kXlaTarget[] = "composite_foreign_function";
constexpr char kXlaFunction[] = "function";
constexpr char kXlaReturns[] = "returns";

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_FOREIGN_XLA_CALL_H_
