"""What the benchmark of the gallery times is right: chains, separate calls, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.gallery import _calls, _compiled, _with_gradients
from benchmarks.works.gallery import CALLS, GalleryWork


def doubled(x: Any, y: Any, add: float) -> Any:
    return 2 * x + y + add, tf.constant(0)


def work(*, chains: bool) -> GalleryWork:
    return GalleryWork("", lambda random: [random.random(3), random.random(3)], chains)


def test_a_chain_gives_what_the_last_call_gives() -> None:
    firsts, (y,) = work(chains=True).inputs()
    run = _calls(doubled, work(chains=True), len(firsts), {"add": 1.0})
    expected = firsts[0]
    for _ in range(CALLS):
        expected = 2 * expected + y + 1
    np.testing.assert_allclose(run(*firsts, y)[0], expected)


def test_separate_calls_have_inputs_of_their_own_and_gradients() -> None:
    firsts, (y,) = work(chains=False).inputs()
    run = _calls(doubled, work(chains=False), len(firsts), {"add": 1.0})
    args = [tf.constant(x) for x in (*firsts, y)]
    seeds = [tf.ones(3, tf.float64)] * CALLS
    ys, gradients = _with_gradients(run, args, seeds)
    np.testing.assert_allclose(ys[::2], [2 * x + y + 1 for x in firsts])
    np.testing.assert_allclose(gradients, [*[[2, 2, 2]] * CALLS, [CALLS] * 3])


def test_what_xla_does_not_compile_is_left_out() -> None:
    assert _compiled(tf.strings.as_string, [tf.constant(1.0)]) == {}
    (way,) = _compiled(lambda x: x + 1, [tf.constant(1.0)]).values()
    assert float(way()) == 2
