"""Estimates of what an op costs: operations on elements, counted the same on every machine.

Not for time: that is measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from .traits import InnerDim, OpTraits, Terms

Shape: TypeAlias = Sequence[int | None] | None
"""Sizes, None for an unknown one; None for an unknown rank."""


def operations(
    traits: OpTraits,
    operands: Sequence[Shape],
    results: Sequence[Shape],
    flag: Callable[[str], bool],
) -> float | None:
    """Return the operations that a call takes; None where sizes, or how it sums, are unknown.

    A sum counts a product and an addition for each term, moved data nothing. Whatever else is
    computed takes the row's operations for each element of its largest operand or result.

    Args:
        traits: of the op.
        operands: their shapes, in the OpDef's order.
        results: their shapes.
        flag: the value of a bool attribute.
    """
    if traits.moves_data:
        return 0.0
    if traits.terms is None:
        sizes = [_size(shape) for shape in (*operands, *results)]
        known = [size for size in sizes if size is not None]
        return float(traits.operations * max(known)) if len(known) == len(sizes) > 0 else None
    size, count = _size(results[0]), _terms(traits.terms, operands, results[0], flag)
    return None if count is None or size is None else 2.0 * count * size


def _terms(
    terms: InnerDim | Terms, operands: Sequence[Shape], result: Shape, flag: Callable[[str], bool]
) -> int | None:
    if isinstance(terms, InnerDim):
        shape = operands[0]
        return None if shape is None else shape[-2 if flag(terms.transposed) else -1]
    if terms is Terms.WINDOW:
        shape = operands[1]
        return None if shape is None else _size(shape[:-1])
    if terms is Terms.REDUCED:
        source, made = _size(operands[0]), _size(result)
        return None if source is None or made is None else source // max(made, 1)
    return None


def _size(shape: Shape) -> int | None:
    """Return the number of elements; None where a size is unknown."""
    if shape is None:
        return None
    known = [dim for dim in shape if dim is not None]
    return math.prod(known) if len(known) == len(shape) else None
