"""TIR's operations as functions of CUDA, where TVM has no rule or one that is not exact enough.

NVRTC is told not to contract (``-fmad=false``). Instead a product and a sum within one expression
of one op become a fused multiply-add here, as LLVM makes them on the CPU: expressions end where an
op ends, so nothing is contracted across ops, and what is rounded how does not depend on NVRTC.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from composite.compiler.tvm.ir.tensor import Expr

_FUSED = {"float32": "fmaf", "float64": "fma"}
_FLOATS = {"float32": "float", "float64": "double"}
_LEVEL = 99  # above TVM's own rules


@cache
def register_rules() -> None:
    """Give TVM the rules; they are those of the whole process, for CUDA alone.

    The compiler's process imports TVM without its backends (:mod:`..importing`), TVM 0.27.
    """
    from tvm.backend.loader import load
    from tvm.ir.op import register_op_attr

    load("cuda")

    rules = (
        ("tirx.fma", _fma),
        ("tirx.call_llvm_pure_intrin", _intrinsic),
        ("tirx.reinterpret", _bits),
    )
    for name, rule in rules:
        register_op_attr(name, "cuda.FLowerIntrinsic", rule, level=_LEVEL)


def _fma(call: Any) -> Expr:
    from tvm import tirx

    dtype = str(call.ty.dtype)
    return tirx.call_pure_extern(dtype, _FUSED[dtype], *call.args)


def _bits(call: Any) -> Expr:
    """Return the bits of a value as another type; TVM's own form takes a constant's address.

    That of a vector is TVM's: a function would be called for each lane, of which there may be other
    numbers. Vectors are no constants.
    """
    from tvm import tirx
    from tvm.ir.prim import expr as prim

    dtype = str(call.ty.dtype)
    if call.ty.dtype.lanes > 1:
        return call
    (value,) = call.args
    # A bfloat16, see math/numeric.py.
    is_shifted = isinstance(value, prim.LShift) and isinstance(value.b, tirx.IntImm)
    if is_shifted and int(value.b.value) == 16 and dtype == "float32":
        return tirx.call_pure_extern(dtype, "composite_widened", value.a)
    name = f"{dtype}_t" if "int" in dtype else _FLOATS[dtype]
    return tirx.call_pure_extern(dtype, f"composite_bits<{name}>", *call.args)


def _intrinsic(call: Any) -> Expr:
    """Return CUDA's form of one of the two intrinsics of LLVM that kernels use."""
    import tvm
    from tvm import tirx

    number, *operands = call.args
    name = str(tvm.get_global_func("target.llvm_get_intrinsic_name")(int(number)))
    if name == "llvm.fma":
        return _fma(tirx.call_intrin(str(call.ty.dtype), "tirx.fma", *operands))
    if name == "llvm.arithmetic.fence":
        return operands[0]  # nothing is contracted behind our back
    raise ValueError(f"{name} has no form in CUDA")
