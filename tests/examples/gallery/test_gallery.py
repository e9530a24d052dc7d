"""The ops of the gallery: values and gradients beside references, and all ways but kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.checking.ways import WAYS
from examples.gallery.group_norm import group_norm
from tests.examples.gallery import references
from tests.examples.gallery.calls import CALLS, Call

pytestmark = [pytest.mark.many_cases, pytest.mark.usefixtures("expansions_only")]

# What goes straight through a rounding is no derivative of it.
STRAIGHT_THROUGH = {"FakeQuant": {"numeric gradient", "second gradient"}}


def in_double(call: Call) -> list[Any]:
    """The inputs of a call as tensors, floats in float64; those of a list are not watched."""
    return [
        x if isinstance(x, list)
        else tf.constant(x, tf.float64 if x.dtype == np.float32 else None)
        for x in call.inputs
    ]  # fmt: skip


def attributes(call: Call) -> dict[str, Any]:
    """All attributes, floats as TensorFlow keeps them."""
    values = {spec.name: spec.default for spec in call.op.schema.attrs} | call.attrs
    return {
        name: float(np.float32(value)) if isinstance(value, float) else value
        for name, value in values.items()
    }


def value_and_gradients(function: Any, inputs: list[Any], attrs: dict[str, Any]) -> list[Any]:
    floats = [x for x in inputs if not isinstance(x, list) and x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        ys = tf.nest.flatten(function(*inputs, **attrs))
    weights = [
        tf.random.stateless_normal(y.shape, [0, i], dtype=y.dtype) if y.dtype.is_floating else None
        for i, y in enumerate(ys)
    ]
    pairs = [(y, w) for y, w in zip(ys, weights, strict=True) if w is not None]
    targets, upstream = zip(*pairs, strict=True)
    gradients = tape.gradient(targets, floats, upstream)  # of a table: IndexedSlices
    return [*ys, *(g if g is None else tf.convert_to_tensor(g) for g in gradients)]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_beside_a_reference(call: Call) -> None:
    reference = getattr(references, call.op.python_function.__name__)
    inputs = in_double(call)
    ours = value_and_gradients(call.op, inputs, call.attrs)
    theirs = value_and_gradients(reference, inputs, attributes(call))
    for found, expected in zip(ours, theirs, strict=True):
        if expected is None:  # labels choose a branch of the reference
            continue
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, tf.convert_to_tensor(expected), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_every_way_agrees(call: Call, tmp_path: Any) -> None:
    skipped = STRAIGHT_THROUGH.get(call.op.op_name, set())
    ways = [way for way in WAYS if "kernel" not in way and way not in skipped]
    report = composite.check(
        call.op, *call.inputs, **call.attrs, ways=ways, samples=1, report_dir=tmp_path
    )
    assert {row.way: row.note for row in report.rows if row.note} == {}


def test_groups_are_of_one_size() -> None:
    x = tf.zeros([2, 3, 6])
    with pytest.raises(tf.errors.InvalidArgumentError, match="6 channels are not 4 groups"):
        group_norm(x, tf.zeros(6), tf.zeros(6), groups=4)
