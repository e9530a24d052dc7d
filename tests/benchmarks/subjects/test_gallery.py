"""What the benchmark of the gallery times is right: chains, separate calls, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.subjects.gallery import _calls, _compiled, _with_gradients, by_hand
from benchmarks.works.gallery import CALLS, GALLERY, GalleryWork


def doubled(x: Any, y: Any, add: float) -> Any:
    return 2 * x + y + add, tf.constant(0)


def work(*chains: int) -> GalleryWork:
    return GalleryWork("", lambda random: [random.random(3), random.random(3)], chains)


def test_a_chain_gives_what_the_last_call_gives() -> None:
    firsts, (y,) = work(0).inputs()
    run = _calls(doubled, work(0), len(firsts), {"add": 1.0})
    expected = firsts[0]
    for _ in range(CALLS):
        expected = 2 * expected + y + 1
    np.testing.assert_allclose(run(*firsts, y)[0], expected)


def test_all_that_an_op_changes_is_chained() -> None:
    firsts, others = work(1, 0).inputs()
    run = _calls(lambda x, y: (x + 1, y * 2), work(1, 0), len(firsts), {})
    x, y = firsts
    for _ in range(CALLS):
        x, y = y * 2, x + 1
    np.testing.assert_allclose(run(*firsts), [y, x])
    assert others == []


def test_separate_calls_have_inputs_of_their_own_and_gradients() -> None:
    firsts, (y,) = work().inputs()
    run = _calls(doubled, work(), len(firsts), {"add": 1.0})
    args = [tf.constant(x) for x in (*firsts, y)]
    seeds = [tf.ones(3, tf.float64)] * CALLS
    ys, gradients = _with_gradients(run, args, seeds)
    np.testing.assert_allclose(ys[::2], [2 * x + y + 1 for x in firsts])
    np.testing.assert_allclose(gradients, [*[[2, 2, 2]] * CALLS, [CALLS] * 3])


def test_what_xla_does_not_compile_is_left_out() -> None:
    assert _compiled(tf.strings.as_string, [tf.constant(1.0)]) == {}
    (way,) = _compiled(lambda x: x + 1, [tf.constant(1.0)]).values()
    assert float(way()) == 2


def test_by_hand_nothing_is_a_composite() -> None:
    work = GALLERY["layer-norm LSTM cell"]
    firsts, others = work.inputs()
    args = [tf.constant(x, tf.float32) for x in (*firsts, *others)]
    plain = by_hand(work.op())
    graph = tf.function(plain).get_concrete_function(*args, **work.attrs).graph
    kinds = {op.type for op in graph.get_operations()}
    assert "MatMul" in kinds and not kinds & {work.op().op_name, "LayerNorm", "CompositeCall"}
    for a, b in zip(plain(*args), work.op().python_function(*args, **work.attrs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
