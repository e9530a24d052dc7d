"""Everything that compiles, as functions of its arguments; imported as `composite.compiler`.

source -> (frontend) -> TFR module -> (tfr) -> program -> (the runtime) -> FunctionDef -> (tvm) ->
kernel; `emit` writes the texts of a build. Knows nothing of the package `composite` around it, and
imports none of its parts by itself: MLIR and TVM come in with `compiler.tfr` and `compiler.tvm`.
"""
