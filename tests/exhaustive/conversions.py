"""Rounding to 16-bit floats: all float32 numbers, against NumPy and ml_dtypes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.math.numeric import cast
from composite.compiler.tvm.tir.block import Block
from tests.exhaustive import judge, kernels, numbers
from tests.exhaustive.judge import Found

NARROW = {"float16": np.dtype(np.float16), "bfloat16": numbers.BFLOAT16}
CHUNK = 1 << 17
CHUNKS = (1 << 32) // CHUNK


class Rounding:
    """Rounds float32 to a dtype."""

    arity = 1

    def __init__(self, dtype: str) -> None:
        """The dtype that it rounds to."""
        self.dtype = dtype

    def tensor(self, *operands: Tensor) -> Tensor:
        """Return the tensor of what is rounded."""

        def body(block: Block, x: Expr) -> Expr:
            return cast(block, x, "float32", self.dtype)

        return pointwise("Cast", body, operands, self.dtype)

    def kernels(self, levels: Iterable[str], folder: Path) -> dict[str, Any]:
        """Compile for some levels."""
        return kernels.by_code(self, "float32", CHUNK, levels, folder)


def swept(dtype: str, made: dict[str, Any], chunks: Iterable[int]) -> dict[str, Found]:
    """Compare the results for the inputs of some chunks; `outside` are those that differ.

    NaN is NaN, whatever its bits, and denormals of float32 may be zeros.
    """
    kind = NARROW[dtype]
    found = {level: Found(error=0.5) for level in made}
    results = np.empty(CHUNK, kind)
    for chunk in chunks:
        x = np.arange(chunk * CHUNK, (chunk + 1) * CHUNK, dtype=np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            wanted = x.astype(kind)
        for level, kernel in made.items():
            with judge.denormals(flushes=True):
                kernel.write([x], [results])
            own = found[level]
            own.inputs += CHUNK
            differ = results.view(np.uint16) != wanted.view(np.uint16)
            if differ.any():
                nan = np.isnan(results) & np.isnan(wanted)
                zero = (np.abs(x) < 2.0**-126) & (results == np.zeros((), kind))
                if (wrong := np.flatnonzero(differ & ~nan & ~zero)).size:
                    own.outside_at = own.outside_at if own.outside else float(x[wrong[0]])
                    own.outside += wrong.size
    return found
