"""Which reductions are written side by side."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from composite.compiler.tvm.plan.plan import make_plan
from composite.compiler.tvm.plan.siblings import MOST, join_siblings
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of

SHAPE = (30, 20)


def joined(function: Any, *shapes: tuple[int, ...]) -> list[Stage]:
    shapes = shapes or (SHAPE, SHAPE)
    specs = [tf.TensorSpec(s) for s in shapes]
    plan = make_plan(read_function(library_of(function, specs), shapes))
    return join_siblings(plan.stages, plan.stored)


def test_sums_of_the_same_elements_are_one_stage() -> None:
    """Scale and offset of a norm, whose gradients are summed over the rows."""
    (stage,) = joined(lambda x, dy: (tf.reduce_sum(dy * x, 0), tf.reduce_sum(dy, 0) * 2.0))
    assert len(stage.anchors) == 2 and len(stage.stores) == 2
    assert set(stage.anchors) <= stage.made


def test_what_is_made_of_the_same_elements_is_shared() -> None:
    (stage,) = joined(lambda x, y: [tf.reduce_sum(tf.exp(x * y) * k, 0) for k in (1.0, 2.0)])
    assert len(stage.anchors) == 2


def test_no_more_than_registers_hold() -> None:
    stages = joined(lambda x, y: [tf.reduce_sum(x * y * k, 0) for k in range(2, MOST + 4)])
    assert [len(s.anchors) for s in stages] == [MOST, 2]


def dice(x: Any, y: Any) -> Any:
    p = tf.sigmoid(x)
    both = 2.0 * tf.reduce_sum(p * y, 0) + 1.0
    return both / (tf.reduce_sum(p + y, 0) + 1.0)


def test_a_result_may_be_made_of_both_sums() -> None:
    (stage,) = joined(dice)
    assert len(stage.anchors) == 2


def test_a_result_of_other_elements_of_the_first_waits() -> None:
    def elsewhere(x: Any, y: Any) -> Any:
        return tf.transpose(tf.reduce_sum(x * y, 0)) / tf.reduce_sum(x + y, 0)

    stages = joined(elsewhere, (30, 20, 20), (30, 20, 20))
    assert [len(s.anchors) for s in stages if s.anchor] == [1, 1]


def norm(x: Any, dy: Any) -> Any:
    deviation = tf.math.rsqrt(tf.reduce_mean(x * x, 1, keepdims=True))
    return tf.reduce_sum(dy, 0), tf.reduce_sum(dy * (x * deviation), 0)


def test_one_that_was_ready_before_waits_for_the_other() -> None:
    rows, sums = joined(norm)
    assert rows.reduced == 1
    assert len(sums.anchors) == 2


def between(x: Any, y: Any) -> Any:
    """What the first sum is read for is what the second one reads."""
    scaled = tf.exp(x) / tf.reduce_sum(tf.exp(x), 0)
    mean = tf.reduce_mean(scaled * y, 1, keepdims=True)
    return tf.reduce_sum(tf.exp(x) * mean, 0)


def test_neither_may_move_past_what_is_between() -> None:
    assert [len(s.anchors) for s in joined(between) if s.anchor] == [1, 1, 1]


def waits(x: Any, y: Any) -> Any:
    total = tf.reduce_sum(x * y, 0)
    return tf.reduce_sum(x * total, 0)


@pytest.mark.parametrize(
    "function",
    [
        waits,
        lambda x, y: (tf.reduce_sum(x, 0), tf.reduce_sum(y, 0)),  # nothing in common
        lambda x, _: (tf.reduce_sum(x, 0), tf.reduce_sum(x[:, :10], 0)),  # other elements
        lambda x, _: (tf.reduce_sum(x, 0), tf.reduce_sum(tf.cast(x, tf.float64), 0)),
    ],
)
def test_others_stay_apart(function: Any) -> None:
    assert [len(s.anchors) for s in joined(function) if s.anchor] == [1, 1]
