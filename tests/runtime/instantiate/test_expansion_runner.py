"""Expansions inside a node: those that read dims or values, how many are kept, where they run."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from tests.runtime import kernel_support as k


def flatten(op: str, *own_attrs: str) -> Any:
    """reshape(x, [dim 0 * dim 1]), with the dims read from the shape."""
    constants = []
    for name, value in (("0", 0), ("1", 1)):
        constants.append(k.node(name, "tfr.constant", value=value, _loc="ops.py:2:1"))
    nodes = [*constants]
    for name, node_op, inputs, attrs in [
        ("2", "tfr.shape", ["x"], {}),
        ("3", "tfr.item", ["2", "0"], {}),
        ("4", "tfr.item", ["2", "1"], {}),
        ("5", "tfr.binary", ["3", "4"], {"operator": "mul"}),
        ("6", "tfr.list", ["5"], {}),
    ]:
        made = k.node(name, node_op, _loc="ops.py:3:1", **attrs)
        made.input.extend(inputs)
        nodes.append(made)
    nodes.append(k.call_node("7", "Reshape", ["x", "6"], ["tensor", "shape"]))
    declared = {"inputs": ["x: float"], "attrs": own_attrs, "outputs": ["y: float"]}
    return k.program(op, declared, nodes, {"y": "7"})


def pack(op: str) -> Any:
    """stack([x, x], axis), where Pack wants the axis as an attribute."""
    both = k.node("0", "tfr.list", _loc="ops.py:2:1")
    both.input.extend(["x", "x"])
    return k.program(
        op,
        {"inputs": ["x: float", "axis: int32"], "outputs": ["y: float"]},
        [both, k.call_node("1", "Pack", ["0", "axis"], ["values", "axis"])],
        {"y": "1"},
    )


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def test_expansions_that_read_dims_are_bounded(unique: Callable[[str], str]) -> None:
    # The kernels of other tests' eager calls hold expansions too, and the bound is the process's.
    context.context().clear_kernel_cache()
    op = unique("RtFlatten")
    k.register(flatten(op))
    before = k.stats()
    held = 0.0
    count = 1500
    for m in range(1, count):
        y = k.call(op, {"x": tf.ones([m, 2])})
        assert y.shape == (2 * m,)
        if m == 200:
            held = resident()
    made = k.stats()["instantiations"] - before["instantiations"]
    assert made == count - 1  # each was another expansion
    # 0.1 MB each: without a bound these would be 130 MB.
    assert resident() - held < 40
    # Those used last are still there.
    for m in range(count - 4, count):
        k.call(op, {"x": tf.ones([m, 2])})
    assert k.stats()["instantiations"] - before["instantiations"] == made


def test_nodes_that_run_no_more_keep_nothing(unique: Callable[[str], str]) -> None:
    """An eager program has a node for each value of an attribute, and TensorFlow drops none."""
    context.context().clear_kernel_cache()
    op = unique("RtRates")
    k.register(flatten(op, "rate: float"))

    def instantiated(first: int, end: int) -> int:
        before = k.stats()["instantiations"]
        for rate in range(first, end):
            k.call(op, {"x": tf.ones([2, 2])}, rate=float(rate))
        return int(k.stats()["instantiations"] - before)

    assert instantiated(0, 1200) == 1200
    assert instantiated(1000, 1200) == 0  # those that ran last
    assert instantiated(0, 200) == 200  # these had to give theirs up
    # Nodes that take turns get room for all of them.
    rounds = [instantiated(0, 700) for _ in range(5)]
    assert rounds[-1] == 0, rounds


def test_values_of_inputs(unique: Callable[[str], str]) -> None:
    op = unique("RtPack")
    k.register(pack(op))
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    for axis in (0, 1, 2, 0, -1):
        y = k.call(op, {"x": x, "axis": axis})
        np.testing.assert_array_equal(y, tf.stack([x, x], axis))

    @tf.function
    def traced(axis: Any) -> Any:
        return k.call(op, {"x": x, "axis": axis})

    for axis in (1, 0):
        np.testing.assert_array_equal(traced(tf.constant(axis)), tf.stack([x, x], axis))


def test_error_of_the_expansion_has_the_author_s_place(unique: Callable[[str], str]) -> None:
    op = unique("RtPack")
    k.register(pack(op))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"ops\.py:2:5"):
        k.call(op, {"x": tf.ones([2]), "axis": 7})


def test_many_nodes_of_many_functions(unique: Callable[[str], str]) -> None:
    """Each function has a runtime of its own; what it instantiated goes with it."""
    op = unique("RtDense")
    k.register(k.dense(op))
    inputs = k.dense_inputs(4)
    expected = k.dense_reference(**inputs)
    for _ in range(30):
        function = tf.function(lambda x, w, b: k.call(op, {"x": x, "w": w, "b": b}) + 0.0)
        np.testing.assert_allclose(function(**inputs), expected, rtol=1e-6)
        del function
    for _ in range(5):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            y = k.call(op, {name: value.numpy() for name, value in inputs.items()})
            np.testing.assert_allclose(session.run(y), expected, rtol=1e-6)
