"""What stands over the ring for floats that are written out, see :mod:`..algebra`.

The loops of a kernel are written once, over floats. Where they compute an elementary function, or
look at bits of floats, what they do means nothing over the ring. It is noted there what means
something: an expression of the same operands, such as a call by the function's name.
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
        """Note a local array, which may be there for what is stood for."""
        if self._within is not None:
            self._within.append(array)

    def add(self, made: Expr, stand_in: Expr) -> Expr:
        """Note what stands for an expression, and return that."""
        self._found[hash(made)] = (made, stand_in)
        return made

    @contextmanager
    def standing(self, stand_in: Expr) -> Iterator[Callable[[Expr], Expr]]:
        """Note what stands for what is computed inside.

        Yields what is to be told the expression, and returns it. Where it is what a local array of
        its own holds, the stand-in is stored there. The other arrays have no meaning over the ring.
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
        """Return what stands for an expression, or for what is stored in an array."""
        found = self._found.get(hash(one))
        return None if found is None else found[1]

    def hides(self, array: Any) -> bool:
        """Whether what an array holds has no meaning over the ring."""
        return hash(array) in self._hidden
