"""Shapes of more elements than an int64 counts are inferred, and end nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tests.runtime import kernel_support as k
from tests.runtime.programs import Program, give


def outer(unique: Callable[[str], str], branches: bool) -> Any:
    """The op z = a @ b, in both branches of a condition where that is asked."""
    name = unique("Outer")
    p = Program(name, ["a: float", "b: float", "c: bool"], [], ["z: float"])
    z = p.call("MatMul", a="a", b="b")
    if branches:
        regions = [p.region(f"r{i}", ["z"], 1) for i in range(2)]
        for region in regions:
            give(region, region.call("Neg", x="z"))
        (z,) = p.branch("c", [z], "r0", "r1", 1)
    p.returns(z=z)
    p.register()
    specs = [tf.TensorSpec([2**32, 1]), tf.TensorSpec([1, 2**32]), tf.TensorSpec([], tf.bool)]
    call = tf.function(lambda a, b, c: k.call(name, {"a": a, "b": b, "c": c}))
    return call.get_concrete_function(*specs).output_shapes


def test_the_rank_of_a_shape_that_is_too_large_is_known(unique: Callable[[str], str]) -> None:
    assert outer(unique, branches=False).as_list() == [None, None]


def test_of_branches_too(unique: Callable[[str], str]) -> None:
    assert outer(unique, branches=True).as_list() == [None, None]
