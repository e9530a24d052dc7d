"""Products of integers that lie side by side, added up in int32: TIR has no expressions for them.

Two int16 or four 8-bit integers travel as the int32 of the same bits. The sums wrap; nothing
saturates: four products of a uint8 and an int8 are added up in 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx

from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.tir.block import Block

Dot = Callable[[Block, Expr, Expr, Expr], Expr]
"""Returns sums to which the products of each two groups of integers are added."""

_PAIRS = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}
_QUADS = 16
"""Sums of the instruction for 8-bit integers."""


def pairs(lanes: int) -> Dot:
    """Return the products of two int16 each, for that many sums."""
    intrinsic, name = f"llvm.x86.{_PAIRS[lanes]}", f"composite_dot_int16x{2 * lanes}"
    sums, halves = f"<{lanes} x i32>", f"<{2 * lanes} x i16>"
    text = f"""
declare {sums} @{intrinsic}({halves}, {halves})

define linkonce_odr hidden {sums} @{name}({sums} %sums, {sums} %a, {sums} %b)
    alwaysinline nounwind memory(none) {{
  %x = bitcast {sums} %a to {halves}
  %y = bitcast {sums} %b to {halves}
  %p = call {sums} @{intrinsic}({halves} %x, {halves} %y)
  %r = add {sums} %sums, %p
  ret {sums} %r
}}
"""
    return _called(name, lanes, text)


def quads() -> Dot:
    """Return the products of four uint8 with four int8 each."""
    sums, name = f"<{_QUADS} x i32>", "composite_dot_uint8_int8"
    intrinsic = "llvm.x86.avx512.vpdpbusd.512"
    text = f"""
declare {sums} @{intrinsic}({sums}, {sums}, {sums})

define linkonce_odr hidden {sums} @{name}({sums} %sums, {sums} %a, {sums} %b)
    alwaysinline nounwind memory(none) {{
  %r = call {sums} @{intrinsic}({sums} %sums, {sums} %a, {sums} %b)
  ret {sums} %r
}}
"""
    return _called(name, _QUADS, text)


def _called(name: str, lanes: int, text: str) -> Dot:
    def dot(block: Block, sums: Expr, a: Expr, b: Expr) -> Expr:
        block.import_llvm(text)
        return tirx.call_pure_extern(f"int32x{lanes}", name, sums, a, b)

    return dot
