"""Which shape classes are asked of the just-in-time worker, by the calls that came before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.core.framework.node_def_pb2 import NodeDef

from tests.runtime import kernel_support as k

pytestmark = pytest.mark.usefixtures("kernel_ops")


@pytest.fixture
def dense(unique: Callable[[str], str]) -> tuple[str, str]:
    op = unique("RtPolicy")
    return op, k.register(k.dense(op))


def decline(_: Any) -> tuple[str, str]:
    return "expansion", "it is Sunday"


def asked_for(op: str, shapes: list[tuple[int, int, int]]) -> list[NodeDef]:
    """What is asked of the worker when the op is called with these (m, k, n), in this order."""
    with k.Worker(decline) as worker:
        for shape in shapes:
            k.call(op, k.dense_inputs(*shape))
            worker.wait()
    return worker.requests


def test_batches_share_a_class(dense: tuple[str, str]) -> None:
    op, digest = dense
    requests = asked_for(op, [(4, 8, 5), (4, 8, 5), (6, 8, 5), (9, 8, 5), (1, 8, 5)])
    assert [k.shapes_of(asked) for asked in requests] == [
        [(4, 8), (8, 5), (5,)],  # the first call: its own dims
        [(-1, 8), (8, 5), (5,)],  # the batch varies, and 9 is another batch
    ]
    assert [list(asked.attr["_hint"].list.i) for asked in requests] == [[], [6]]
    asked = requests[0]
    assert asked.op == op
    assert asked.attr["_composite_program"].s.decode() == digest
    assert not asked.attr["_must"].b


def test_layers_have_classes_of_their_own(dense: tuple[str, str]) -> None:
    """Three layers of a model, each with full batches and a last small one."""
    op, _ = dense
    layers = [(8, 16), (16, 4), (16, 16)]
    requests = asked_for(op, [(m, *layer) for m in (32, 7) for layer in layers])
    assert [k.shapes_of(asked)[:2] for asked in requests] == [
        *([(32, inner), (inner, n)] for inner, n in layers),
        *([(-1, inner), (inner, n)] for inner, n in layers),
    ]


def test_too_many_layers_share_a_class(dense: tuple[str, str]) -> None:
    op, _ = dense
    requests = asked_for(op, [(2, 3, n) for n in range(10, 30)])
    shapes = [k.shapes_of(asked) for asked in requests]
    assert shapes[:6] == [[(2, 3), (3, n), (n,)] for n in range(10, 16)]
    assert shapes[6:] == [[(2, 3), (3, -1), (-1,)]]


def test_equal_dims_are_told_apart_when_they_differ(dense: tuple[str, str]) -> None:
    op, _ = dense
    requests = asked_for(op, [(8, 8, 8), (4, 8, 8), (8, 8, 8), (3, 8, 8)])
    assert [k.shapes_of(asked) for asked in requests] == [
        [(8, 8), (8, 8), (8,)],
        [(-1, 8), (8, 8), (8,)],
    ]


def test_dims_that_stay_equal_share_a_symbol(unique: Callable[[str], str]) -> None:
    op = unique("RtPair")
    body = [k.call_node("0", "AddV2", ["x", "y"], ["x", "y"])]
    declaration = {"inputs": ["x: float", "y: float"], "outputs": ["z: float"]}
    k.register(k.program(op, declaration, body, {"z": "0"}))
    with k.Worker(decline) as worker:
        for m, t in [(2, 3), (5, 3), (5, 4), (2, 2)]:
            k.call(op, {"x": tf.zeros([m, t, 8]), "y": tf.zeros([m, t, 8])})
            worker.wait()
    assert [k.shapes_of(asked) for asked in worker.requests] == [
        [(2, 3, 8), (2, 3, 8)],
        [(-1, 3, 8), (-1, 3, 8)],
        [(-1, -2, 8), (-1, -2, 8)],
    ]


def test_ranks_are_classes_of_their_own(unique: Callable[[str], str]) -> None:
    op = unique("RtRank")
    k.register(k.twice(op))
    with k.Worker(decline) as worker:
        for shape in [(2,), (2, 3), (4,), ()]:
            k.call(op, {"x": tf.zeros(shape)}, T=tf.float32)
            worker.wait()
        k.call(op, {"x": tf.zeros([2], tf.float64)}, T=tf.float64)
        worker.wait()
    shapes = [k.shapes_of(asked) for asked in worker.requests]
    assert shapes == [[(2,)], [(2, 3)], [(-1,)], [()], [(2,)]]
    assert worker.requests[-1].attr["T"].type == tf.float64.as_datatype_enum


def test_a_call_that_fails_is_not_learned_from(dense: tuple[str, str]) -> None:
    op, _ = dense
    with k.Worker(decline) as worker:
        with pytest.raises(tf.errors.InvalidArgumentError):
            k.call(op, {**k.dense_inputs(4), "b": tf.zeros([3])})
        worker.wait()
        k.call(op, k.dense_inputs(4))
        worker.wait()
    assert [k.shapes_of(asked) for asked in worker.requests] == [[(4, 8), (8, 5), (5,)]]


def test_a_class_that_is_refused_leaves_calls_to_classes_of_their_own(
    dense: tuple[str, str],
) -> None:
    """The class of many layers may span shapes that no kernel takes."""
    op, _ = dense

    def answer(asked: NodeDef) -> tuple[str, str]:
        general = any(dim < 0 for shape in k.shapes_of(asked) for dim in shape)
        return ("not_covered", "too general") if general else decline(asked)

    with k.Worker(answer) as worker:
        for n in range(10, 19):
            k.call(op, k.dense_inputs(2, 3, n))
            worker.wait()
        told = k.explain(op, k.dense_inputs(2, 3, 18))
    layers = [k.shapes_of(asked)[1][1] for asked in worker.requests]
    assert layers == [*range(10, 16), -1, 17, 18]
    assert "it is Sunday" in told["reason"]


def test_an_op_that_is_refused_is_not_asked_for_each_size(dense: tuple[str, str]) -> None:
    op, _ = dense
    with k.Worker(lambda _: ("not_covered", "no lowering")) as worker:
        for m in (4, 6, 9, 12, 15):
            k.call(op, k.dense_inputs(m))
            worker.wait()
    batches = [k.shapes_of(asked)[0][0] for asked in worker.requests]
    assert batches == [4, -1, 9]
