"""Expressions that replace others when a kernel is translated to the ring, see :mod:`..algebra`.

The loops of a kernel are written once, over floats. Parts that compute an elementary function or
use the bits of floats have no meaning over the ring. While they are written, a stand-in is noted
for each: an expression of the same operands, such as a call by the function's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tvm import ir

Expr = Any
NAMED = "composite_named_"
"""What begins the names of calls that stand for functions of floats."""


class StandIns:
    """Stand-ins of expressions, and of what is stored in local arrays, for several functions."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Any, Expr]] = {}  # by hashes of what they stand for
        self._hidden: dict[int, Any] = {}
        self._within: list[Any] | None = None

    def note(self, array: Any) -> None:
        """Note a local array. Within `standing`, it belongs to what is replaced."""
        if self._within is not None:
            self._within.append(array)

    def add(self, made: Expr, stand_in: Expr) -> Expr:
        """Note the stand-in of an expression, and return the expression."""
        self._found[hash(made)] = (made, stand_in)
        return made

    @contextmanager
    def standing(self, stand_in: Expr) -> Iterator[Callable[[Expr], Expr]]:
        """Note the stand-in of the expression that is computed inside.

        Yields a function that takes the expression and returns it. If the expression is a load of a
        local array that was made inside, the stand-in is stored to that array. All other arrays
        made inside have no meaning over the ring.
        """
        outer, within = self._within, list[Any]()
        self._within = within

        def found(made: Expr) -> Expr:
            cell = made.source if isinstance(made, ir.TensorLoad) else None
            self._hidden |= {hash(one): one for one in within}
            if cell is not None and self._hidden.pop(hash(cell), None) is not None:
                self.add(cell, stand_in)
            else:
                self.add(made, stand_in)
            return made

        yield found
        self._within = outer
        if outer is not None:
            outer += within

    def of(self, one: Any) -> Expr | None:
        """Return the stand-in of an expression, or of what is stored to an array."""
        found = self._found.get(hash(one))
        return None if found is None else found[1]

    def hides(self, array: Any) -> bool:
        """Whether the contents of an array have no meaning over the ring."""
        return hash(array) in self._hidden
