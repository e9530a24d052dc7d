"""The probes do the work that is counted for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm

from benchmarks.roofline import probes
from composite.compiler import tvm as backend

TARGET = backend.Target.host()


def tensor(values: Any) -> Any:
    return tvm.runtime.tensor(values.astype(np.float32))


@pytest.mark.parametrize("threads", [1, 2])
def test_multiply_add(threads: int) -> None:
    values = tensor(np.full(probes.operands(TARGET, threads), 0.5))
    probes.multiply_add(TARGET, threads, 3)(values)
    # Three times x -> x / 2 + 1/2, from 1 + i / 64 for accumulator i of each thread.
    starts = 1 + np.repeat(np.arange(12) / 64, TARGET.lanes)
    np.testing.assert_allclose(values.numpy(), np.tile(1 + (starts - 1) / 8, threads))


@pytest.mark.parametrize("threads", [1, 2])
def test_read_sees_every_value_as_often_as_it_says(threads: int) -> None:
    floats = probes.whole(TARGET, threads, 1000)
    sums = tensor(np.zeros(probes.sums(TARGET, threads)))
    source = np.arange(floats) % 7
    probes.read(TARGET, threads, floats, 4)(tensor(source), sums)
    assert sums.numpy().sum() == 4 * source.sum()


@pytest.mark.parametrize("threads", [1, 2])
def test_copy(threads: int) -> None:
    floats = probes.whole(TARGET, threads, 1000)
    out = tensor(np.zeros(floats))
    probes.copy(TARGET, threads, floats, 2)(tensor(np.arange(floats)), out)
    np.testing.assert_array_equal(out.numpy(), np.arange(floats))


def test_parts_are_whole() -> None:
    floats = probes.whole(TARGET, 2, 1000)
    assert 0 < floats <= 1000
    with pytest.raises(ValueError, match="no whole number of turns for 2 threads"):
        probes.read(TARGET, 2, floats + 1, 1)
