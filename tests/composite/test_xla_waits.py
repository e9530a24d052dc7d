"""How long a compilation by XLA waits for kernels, and what it asks for before it does."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.measuring import xla
from composite.measuring.decisions import Times
from tests.composite import xla_kernel_ops as ops
from tests.composite.test_xla_kernels import FASTER, B, W, X, dense, jit
from tests.composite.xla_counted import Counted


def test_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compilation that waits for nothing asks for nothing, and takes the kernel that is there."""
    monkeypatch.setattr(xla, "measured", lambda *_: FASTER)
    x = X[:37]
    with composite.options(xla=0), Counted() as counted:
        jit(dense)(x)
    assert (counted.nodes, counted.kernels) == (1, 0)
    jit(dense)(x)  # waits
    with composite.options(xla=0), Counted() as counted:
        jit(dense)(x)
    assert (counted.nodes, counted.kernels) == (1, 1)


def several(x: Any) -> Any:
    """Calls of four kernels, of which one is in a loop and one in a function that is called."""
    inner = tf.function(lambda x: ops.dense(x, W[:, :48], B[:48]), autograph=False)
    x = dense(x)
    x = tf.while_loop(
        lambda i, _: i < 2, lambda i, x: (i + 1, ops.normalized(x)), [0, ops.normalized(x)]
    )[1]
    return ops.kept(inner(x), W[:48])


def test_all_kernels_of_a_compilation_are_asked_for_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    before = composite.stats()

    def measured(*_: Any) -> Times:
        asked.append((composite.stats() - before)["requests"])
        return FASTER

    monkeypatch.setattr(xla, "measured", measured)
    x = X[:35]
    with Counted() as counted:
        found = jit(several)(x)
    assert asked == [4, 4, 4, 4]
    assert (counted.kernels, counted.launches) == (5, 6)
    np.testing.assert_allclose(found, several(x), rtol=1e-4, atol=1e-4)


def test_a_compilation_waits_once_for_all_of_its_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()

    def measured(*_: Any) -> Times:
        assert goes_on.wait(60)
        return FASTER

    monkeypatch.setattr(xla, "measured", measured)
    x = X[:36]
    begin = time.monotonic()
    with composite.options(xla=2), Counted() as counted:
        jit(several)(x)
    seconds = time.monotonic() - begin
    goes_on.set()
    composite.wait()
    assert counted.kernels == 0
    assert 2 <= seconds < 5, seconds
    with composite.options(xla=0), Counted() as counted:
        jit(several)(x)
    assert counted.kernels == 5
