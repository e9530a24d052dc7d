"""A loop in the lowered function: a node of its own, whose trips are a small function inside.

A loop is closed: its trips read tensors of outside through leaves, so that passes over the function
around it need not look inside. Its results are stored tensors; what a trip computes without
carrying it on cannot be read from outside.

Not here: how TensorFlow's While becomes a loop (:mod:`..read.while_loop`), which work is taken out
of the trips (:mod:`..passes.hoist`), and how a loop is written (a strategy of the device).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.graph import Function, is_table
from composite.compiler.tvm.ir.tensor import Constant, Node, Parameter, Tensor
from composite.compiler.tvm.ir.views import Slice
from composite.compiler.tvm.ir.walk import topological

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Leaf(Parameter):
    """What the trips of a loop are given: what is carried, or a tensor of outside.

    ``index`` is negative, and no other leaf's.
    """


def leaf(like: Tensor) -> Tensor:
    """Return a new leaf of a tensor's shape and dtype."""
    return Tensor(like.shape, like.dtype, Leaf(-next(_NUMBERS)))


def number_of(tensor: Tensor) -> int:
    """Return the index of a leaf."""
    if not isinstance(tensor.node, Leaf):
        raise TypeError(f"{type(tensor.node).__name__} is no leaf of a loop")
    return tensor.node.index


def counter() -> str:
    """Return the name of a new loop's counter, which dims of its trips may hold."""
    return f"trip{next(_NUMBERS)}"


@dataclass(frozen=True)
class Row:
    """Where a trip writes one row of an array that the loop fills: ``place`` of dimension 0."""

    place: Dim


@dataclass(frozen=True)
class Trip(Function):
    """The function of one trip, of which a loop is made.

    Its parameters are the leaves of what is carried, its outputs what a trip makes of each.

    Attributes:
        counter: The symbol that dims of the trip count with, from 0 on.
        trips: How many trips there are.
        captured: Once the loop is closed, the tensors of outside that a trip reads.
        leaves: A leaf for each of ``captured``.
    """

    counter: str = ""
    trips: Dim = 0
    captured: tuple[Tensor, ...] = ()
    leaves: tuple[Tensor, ...] = ()

    def varies(self) -> Mapping[Tensor, str | bool]:
        """Map each tensor of the trip to how it varies from trip to trip; see :func:`varies`."""
        return varies(self.outputs, self.counter, self.parameters)


@dataclass(frozen=True, eq=False)
class Loop(Node):
    """``trips`` times: the values of all ``carried`` leaves become ``following``.

    Attributes:
        counter: The symbol that dims of the trips count with, from 0 on.
        trips: How many there are, at least 0.
        initial: What each leaf of ``carried`` starts as; None for an array all of whose rows the
            trips write, and which has nothing before.
        captured: Tensors of outside that the trips read, as ``leaves``. Parameters of the function
            are read as they are.
        carried: One leaf for each result.
        leaves: One leaf for each of ``captured``.
        following: What a trip makes of each result: the whole, or the row of an array that it
            writes.
        rows: For each result the row that a trip writes; None if it is a whole.
    """

    is_anchor: ClassVar[bool] = True
    takes_epilogue: ClassVar[bool] = False
    reads_memory: ClassVar[bool] = True

    counter: str
    trips: Dim
    initial: tuple[Tensor | None, ...]
    captured: tuple[Tensor, ...]
    carried: tuple[Tensor, ...]
    leaves: tuple[Tensor, ...]
    following: tuple[Tensor, ...]
    rows: tuple[Row | None, ...]

    @cached_property
    def operands(self) -> tuple[Tensor, ...]:
        """What is read of outside; the leaves and what the trips make of them are not."""
        return (*(t for t in self.initial if t is not None), *self.captured, *self._parameters())

    def _parameters(self) -> Iterable[Tensor]:
        return [t for t in topological(self.following) if type(t.node) is Parameter]


@dataclass(frozen=True)
class LoopResult(Node):
    """Result ``index`` of a loop."""

    is_given: ClassVar[bool] = True

    loop: Tensor
    index: int


def is_one_value(tensor: Tensor) -> bool:
    """Return whether all elements are one known value, which is written where it is read."""
    return not any(
        is_table(t) or t.node.is_given or t.node.is_anchor for t in topological((tensor,))
    )


def varies(tensors: Iterable[Tensor], counter: str, carried: Iterable[Tensor]) -> Mapping:
    """Map each tensor below ``tensors`` to how it varies from trip to trip.

    False if not at all, "counted" if it follows from the counter, "carried" if from a value.
    """
    own = set(carried)
    found: dict[Tensor, str | bool] = {}
    for tensor in topological(tuple(tensors)):
        if tensor in own:
            found[tensor] = "carried"
            continue
        kinds = {found[t] for t in tensor.node.operands}
        own_size = any(dims.mentions(size, counter) for size in tensor.shape)
        counted = "counted" in kinds or own_size or _is_counted(tensor, counter)
        found[tensor] = "carried" if "carried" in kinds else "counted" if counted else False
    return found


def _is_counted(tensor: Tensor, counter: str) -> bool:
    node = tensor.node
    if isinstance(node, Slice):
        return any(dims.mentions(start, counter) for start in node.start)
    if isinstance(node, Constant) and node.value.dtype == object:
        return any(dims.mentions(value, counter) for value in node.value.reshape(-1))
    return False
