"""How many registers are interleaved, and that the elements are right with each number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.strategy.cpu.elementwise.interleave import interleave_in_row
from tests.compiler.tvm.conftest import check


@pytest.mark.parametrize(
    ("most", "count", "expected"),
    [
        (4, 32, 4),
        (4, 31, 2),
        (4, 48, 2),
        (4, 1000, 4),
        (4, 40, 1),
        (2, 1024, 2),
        (1, 1024, 1),
        (4, 5, 1),
    ],
)
def test_no_more_are_interleaved_than_suit_a_row(most: int, count: int, expected: int) -> None:
    assert interleave_in_row(most, 8, count) == expected


@pytest.mark.parametrize("width", [None, 31, 48, 100])
@pytest.mark.slow
def test_elements_are_right_at_every_width(compiler: Any, width: int | None) -> None:
    """Of the widths of vectors one is chosen where a row's is known; else the call chooses."""
    random = np.random.default_rng(0)

    def chain(x: Any, y: Any) -> Any:
        return tf.sigmoid(x) * y + tf.exp(-x * x), tf.nn.softmax(x), tf.reduce_max(x * y, -1)

    def arrays(size: int) -> list[Any]:
        return [random.standard_normal((3, size)).astype(np.float32) for _ in range(2)]

    loaded = compiler.compile(chain, arrays(width or 8), [("s0", width or "s1")] * 2)
    for size in [width] if width else [1, 7, 8, 15, 17, 31, 32, 33, 100]:
        given = arrays(size)
        check(loaded, given, chain(*given), rtol=2e-6, atol=1e-6)
