"""The instructions for bfloat16 of AVX512_BF16, which TIR has no expressions for.

TVM has no type of LLVM's for bfloat16 either, so that they are called through functions of integers
and floats, which LLVM inlines. Two neighbouring elements are a *pair*: a pair has the size of a
float32, whose bits it travels as. The instructions take denormals for zeros and give none; they
round to nearest, ties to even, whatever the thread's modes are.

Not for: CPUs without them, where bfloat16 is widened (:mod:`.numeric`).
"""

from __future__ import annotations

from tvm import tirx

from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.tir.block import Block, lanes_of

LANES = 16
"""Pairs, or float32 elements, that an instruction takes."""

DOT = "composite_dot_bfloat16"
"""The function that :func:`dot` calls."""
_ROUND = "composite_round_bfloat16"
_LLVM = f"""
declare <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>, <32 x bfloat>, <32 x bfloat>)
declare <16 x bfloat> @llvm.x86.avx512bf16.cvtneps2bf16.512(<16 x float>)

define linkonce_odr hidden <16 x float> @{DOT}(
    <16 x float> %sums, <16 x float> %a, <16 x float> %b)
    alwaysinline nounwind memory(none) {{
  %x = bitcast <16 x float> %a to <32 x bfloat>
  %y = bitcast <16 x float> %b to <32 x bfloat>
  %r = call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(
      <16 x float> %sums, <32 x bfloat> %x, <32 x bfloat> %y)
  ret <16 x float> %r
}}

define linkonce_odr hidden <16 x i16> @{_ROUND}(<16 x float> %x)
    alwaysinline nounwind memory(none) {{
  %y = call <16 x bfloat> @llvm.x86.avx512bf16.cvtneps2bf16.512(<16 x float> %x)
  %r = bitcast <16 x bfloat> %y to <16 x i16>
  ret <16 x i16> %r
}}
"""


def dot(block: Block, sums: Expr, a: Expr, b: Expr) -> Expr:
    """Return sums to which both products of each two pairs are added, one after the other."""
    block.import_llvm(_LLVM)
    return tirx.call_pure_extern(f"float32x{LANES}", DOT, sums, a, b)


def rounded(block: Block, value: Expr) -> Expr:
    """Return float32, some times ``LANES`` of them, as bits of bfloat16; NaN stays NaN."""
    block.import_llvm(_LLVM)
    lanes = lanes_of(value)
    value = block.let(value)
    parts = []
    for first in range(0, lanes, LANES):
        part = tirx.Shuffle([value], list(range(first, first + LANES))) if lanes > LANES else value
        parts.append(block.let(tirx.call_pure_extern(f"uint16x{LANES}", _ROUND, part)))
    return parts[0] if len(parts) == 1 else tirx.Shuffle(parts, list(range(lanes)))
