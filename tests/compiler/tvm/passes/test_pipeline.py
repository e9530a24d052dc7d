"""The passes over the tensor graph: named, in one order, each from a function to one."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.tvm import Target
from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.tensor import Parameter, Tensor
from composite.compiler.tvm.passes.pipeline import PIPELINE, Pass, run
from composite.compiler.tvm.show import show
from tests.compiler.tvm.conftest import library_of


def test_passes_run_in_the_order_of_the_list() -> None:
    x, y = (Tensor((2,), "float32", Parameter(i)) for i in range(2))

    def swap(function: Function) -> Function:
        return Function(function.parameters, function.outputs[::-1])

    def first(function: Function) -> Function:
        return Function(function.parameters, function.outputs[:1])

    both = [Pass("swap", swap), Pass("first", first)]
    assert run(both, Function((x, y), (x, y))).outputs == (y,)
    assert run(both[::-1], Function((x, y), (x, y))).outputs == (x,)
    assert run([], Function((x,), (x,))).outputs == (x,)


def test_each_pass_has_a_name_of_its_own_and_says_what_it_does() -> None:
    names = [one.name for one in PIPELINE]
    assert names == [
        "hoist-products",
        "split-products",
        "close-loop",
        "round-operands",
        "compose-elementary",
        "cancel-transposes",
        "share-factors",
        "turn-factors",
        "raise-reshapes",
        "split-places",
        "merge-equal",
        "fold-padding",
        "narrow-products",
        "recognize-softmax",
    ]
    assert all(one.summary.endswith(".") for one in PIPELINE)


def test_show_prints_the_passes() -> None:
    def double(x: Any) -> Any:
        return x + x

    library = library_of(double, [tf.TensorSpec([4], tf.float32)])
    text = show(library, [(4,)], "passes", Target.of("x86-64-v3", 1))
    assert [line.split()[0] for line in text.splitlines()] == [one.name for one in PIPELINE]
    assert PIPELINE[0].summary in text
