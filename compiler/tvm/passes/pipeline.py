"""The passes over the tensor graph, in the order in which they run.

A pass takes a function and returns one that computes the same. Those for loops run on the function
of one trip, while the loop is made of a While (:mod:`..read.loop_builder`); the others on the whole
function, and on that of a trip, before it is cut into stages (:mod:`..plan.plan`). In front of
these, what is to run on a GPU has passes of its own (:mod:`..cuda.build`). To add a pass, write its
module beside this one and list it here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.loop import Trip
from composite.compiler.tvm.passes.cancel_transposes import cancel_transposes
from composite.compiler.tvm.passes.close import close_loop
from composite.compiler.tvm.passes.fold_padding import fold_padding
from composite.compiler.tvm.passes.gathers_of_zeros import gathers_of_zeros
from composite.compiler.tvm.passes.hoist import hoist_products
from composite.compiler.tvm.passes.identities import compose_elementary
from composite.compiler.tvm.passes.merge_equal import merge_equal
from composite.compiler.tvm.passes.narrow_products import narrow_products
from composite.compiler.tvm.passes.raising import raise_reshapes
from composite.compiler.tvm.passes.rounding import round_operands
from composite.compiler.tvm.passes.share_factors import share_factors
from composite.compiler.tvm.passes.softmax import recognize_softmax
from composite.compiler.tvm.passes.split_places import split_places
from composite.compiler.tvm.passes.split_products import split_products
from composite.compiler.tvm.passes.turn_factors import turn_factors

F = TypeVar("F", bound=Function)


@dataclass(frozen=True)
class Pass(Generic[F]):
    """A named function from functions to functions."""

    name: str
    apply: Callable[[F], F]

    @property
    def summary(self) -> str:
        """The first line of its module's docstring."""
        return (sys.modules[self.apply.__module__].__doc__ or "").splitlines()[0]


LOOP_PASSES: tuple[Pass[Trip], ...] = (
    Pass("hoist-products", hoist_products),
    Pass("split-products", split_products),
    Pass("close-loop", close_loop),
)
GPU_PASSES: tuple[Pass[Function], ...] = (Pass("gathers-of-zeros", gathers_of_zeros),)
FUNCTION_PASSES: tuple[Pass[Function], ...] = (
    Pass("round-operands", round_operands),
    Pass("compose-elementary", compose_elementary),
    Pass("cancel-transposes", cancel_transposes),
    Pass("share-factors", share_factors),
    Pass("turn-factors", turn_factors),
    Pass("raise-reshapes", raise_reshapes),
    Pass("split-places", split_places),
    Pass("merge-equal", merge_equal),
    Pass("fold-padding", fold_padding),
    Pass("narrow-products", narrow_products),
    Pass("recognize-softmax", recognize_softmax),
)

PIPELINE: tuple[Pass[Any], ...] = (*LOOP_PASSES, *FUNCTION_PASSES)


def run(passes: Iterable[Pass[F]], function: F) -> F:
    """Return the function after some passes."""
    for one in passes:
        function = one.apply(function)
    return function
