"""Constant inputs, and the packed forms that a kernel needs of them before its first call.

A kernel takes a packed form as a further argument, after its outputs; a function beside the kernel
packs the constant. The constant itself stays an input: not every path reads the packed form. Not
here: who owns the packed form, and for how long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from composite.compiler.tvm.ir.dims import static_shape
from composite.compiler.tvm.ir.graph import is_table
from composite.compiler.tvm.ir.tensor import Parameter, Tensor
from composite.compiler.tvm.ir.views import Slice
from composite.compiler.tvm.ir.walk import topological

PackFunction = Callable[[], Any]
"""Returns the TIR function ``(input, packed)`` that packs."""


@dataclass(frozen=True)
class Packed:
    """One packed form: ``elements`` of ``dtype``, made of the input ``source`` alone."""

    source: int
    elements: int
    dtype: str


@dataclass
class Constants:
    """The constants of one kernel under construction.

    Attributes:
        inputs: Which inputs never change.
        packed: What the kernel takes after its outputs.
        parameters: The TIR parameters for it.
        functions: What writes the function that packs each.
    """

    inputs: frozenset[int] = frozenset()
    packed: list[Packed] = field(default_factory=list)
    parameters: list[Any] = field(default_factory=list)
    functions: list[PackFunction] = field(default_factory=list)

    def add(self, packed: Packed, parameter: Any, function: PackFunction) -> None:
        """Take one more argument."""
        self.packed.append(packed)
        self.parameters.append(parameter)
        self.functions.append(function)

    def source(self, tensor: Tensor) -> int | None:
        """Return the constant input that the tensor is made of, if it is made of nothing else.

        None too where its shape is the call's, where it is another slice in each trip of a loop, or
        where it needs a table of its own.
        """
        if not self.inputs:
            return None
        below = topological([tensor])
        if any(is_table(t) or static_shape(t.shape) is None or _moves(t) for t in below):
            return None
        found = {t.node.index for t in below if isinstance(t.node, Parameter)}
        return found.pop() if len(found) == 1 and found <= self.inputs else None


def _moves(tensor: Tensor) -> bool:
    """Return whether it is a slice that begins where a symbol says."""
    return isinstance(tensor.node, Slice) and static_shape(tensor.node.start) is None
