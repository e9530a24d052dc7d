"""TensorFlow's lists of tensors, all of one shape, as one tensor with a row for each element.

A list is a value of TensorFlow's, so that setting an element makes another list. Kernels have them
where a loop sets, appends or takes off one row a trip (``read/while_loop``): what is set is then
written where the row lies, and what is taken off is read there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.tensor import Node, Tensor

UNKNOWN = -1
"""A dimension of a list's elements that is told by the first element that is set."""


@dataclass(frozen=True)
class Unset(Node):
    """A list none of whose elements is set: they read as zeros."""


@dataclass(frozen=True)
class SetRow(Node):
    """``array`` with another row at ``place`` of its first dimension."""

    array: Tensor
    place: Dim
    row: Tensor


@dataclass(frozen=True)
class GetRow(Node):
    """The row at ``place`` of a list that the loop around it sets rows of."""

    array: Tensor
    place: Dim


@dataclass(frozen=True)
class Rest(Node):
    """What is left of ``base`` when rows were taken off its end."""

    base: Tensor


@dataclass(frozen=True, eq=False)
class KnownRows(Node):
    """Rows whose elements are known: sizes, in which ``counter`` stands for the number of a row."""

    value: np.ndarray
    counter: str


@dataclass(frozen=True)
class Among(Node):
    """Zeros, but for ``operand`` at ``place`` of ``axis``, a dimension that it lacks.

    What each trip of a loop adds to a sum. It is never computed by itself.
    """

    operand: Tensor
    axis: int
    place: Dim


@dataclass(frozen=True)
class Missing(Node):
    """An optional without a value: what a branch that is not taken would have left."""


def fits(shape: tuple[Dim, ...], known: tuple[Dim, ...]) -> bool:
    """Return whether a shape is one that is known in part."""
    return len(shape) == len(known) and all(
        k in (UNKNOWN, s) for s, k in zip(shape, known, strict=True)
    )
