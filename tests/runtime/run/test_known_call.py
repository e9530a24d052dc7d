"""Calls that are like the call before: whatever a decision reads may change between two of them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.runtime import kernel_support as k
from tests.runtime.run.conftest import Counted

MANY = 20  # calls, after which a call is known


@pytest.fixture
def node(fused: str) -> Any:
    """A graph of one node, for any sizes."""
    signature = [tf.TensorSpec(shape, tf.float32) for shape in ([None, 8], [8, 5], [5])]
    function = tf.function(
        lambda x, w, b: k.call(fused, {"x": x, "w": w, "b": b}), input_signature=signature
    )
    return function.get_concrete_function()


def check(node: Any, m: int, times: int = 1) -> None:
    inputs = k.dense_inputs(m, seed=m)
    for _ in range(times):
        found = node(*inputs.values())
        np.testing.assert_allclose(found, k.dense_reference(**inputs), rtol=1e-5, atol=1e-5)


def test_other_sizes(node: Any, counted: Counted) -> None:
    for _ in range(2):
        check(node, 4, MANY)
        check(node, 7, MANY)
        check(node, 0)
    assert (counted["kernel_launches"], counted["expansion_runs"]) == (4 * MANY + 2, 0)


def test_another_verdict(node: Any, fused: str, dense: tuple[str, str], tmp_path: Path) -> None:
    check(node, 4, MANY)
    slower = k.record(f"k_{fused.lower()}", fused, dense[1], [(-1, -2), (-2, -3), (-3,)], ["s0,s2"])
    slower.attr["_verdict"].s = b"expansion"
    k.request("composite_install", slower)
    counted = Counted()
    check(node, 4, MANY)
    assert (counted["kernel_launches"], counted["expansion_runs"]) == (0, MANY)
    k.install_dense(tmp_path, fused, dense[1], "-DPARALLEL", "-O2", name=f"again_{fused.lower()}")
    counted = Counted()
    check(node, 4, MANY)
    assert (counted["kernel_launches"], counted["expansion_runs"]) == (MANY, 0)


def test_other_options(node: Any) -> None:
    check(node, 4, MANY)
    with k.options("tf", thread=False):
        counted = Counted()
        check(node, 4, MANY)
        assert (counted["kernel_launches"], counted["expansion_runs"]) == (0, MANY)
    counted = Counted()
    check(node, 4, MANY)
    assert (counted["kernel_launches"], counted["expansion_runs"]) == (MANY, 0)


def test_several_threads(node: Any, counted: Counted) -> None:
    """Each has sizes of its own, so that what one call leaves is wrong for the next."""
    wrong: list[Exception] = []

    def run(m: int) -> None:
        try:
            check(node, m, 10 * MANY)
        except Exception as error:  # noqa: BLE001 - told below, whatever it is
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(m,)) for m in (1, 2, 3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert counted["kernel_launches"] == 4 * 10 * MANY
