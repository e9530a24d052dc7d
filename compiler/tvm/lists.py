"""TensorFlow's lists of tensors, all of one shape, as one tensor with a row for each element.

A list is a value of TensorFlow's, so that setting an element makes another list. Kernels have them
where a loop sets one row a trip (:mod:`.while_loop`), which is then written where the row lies.
"""

from __future__ import annotations

from dataclasses import dataclass

from .dims import Dim
from .graph import Tensor

UNKNOWN = -1
"""A dimension of a list's elements that is told by the first element that is set."""


@dataclass(frozen=True)
class Unset:
    """A list none of whose elements is set: they read as zeros."""

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """Nothing is read."""
        return ()


@dataclass(frozen=True)
class SetRow:
    """``array`` with another row at ``place`` of its first dimension."""

    array: Tensor
    place: Dim
    row: Tensor

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The array, then the row."""
        return (self.array, self.row)


def fits(shape: tuple[Dim, ...], known: tuple[Dim, ...]) -> bool:
    """Return whether a shape is one that is known in part."""
    return len(shape) == len(known) and all(
        k in (UNKNOWN, s) for s, k in zip(shape, known, strict=True)
    )
