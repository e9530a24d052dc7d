"""Kernels for GPUs over the ring, where they are equal to their functions bit for bit.

Some of them by default, and with --exact all that the tests of strategies have.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.errors import NotCovered
from tests.compiler.tvm.strategy.cuda.conftest import CASES
from tests.gpu.shim.cases import Case, RingBatch

pytestmark = [pytest.mark.slow, pytest.mark.many_cases]

_SOME = ("attention_masked", "attention_causal", "flat_bfloat16", "product_double", "dense")


def test_kernels_are_equal_to_their_functions(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    names = CASES if pytestconfig.getoption("--exact") else _SOME
    batch = RingBatch({name: CASES[name] for name in names}, tmp_path)
    found, uncovered = [], []
    for name in names:
        try:
            found += batch.differences(name)
        except NotCovered as answer:
            uncovered.append(str(answer))
    assert found == []
    assert set(uncovered) <= {"op StatelessRandomUniformV2 is not defined over the ring"}


def test_one_element_that_is_added_twice_is_found(tmp_path: Path) -> None:
    sums = Case(lambda x: tf.reduce_sum(x, -1), [["s0", 300]], "reduction", runs=[{"s0": 7}])
    batch = RingBatch({"sums": sums}, tmp_path)
    assert batch.differences("sums") == []

    def twice(x: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(x, -1) + tf.pad(x[:1, 17], [[0, tf.shape(x)[0] - 1]])

    batch.cases = {"sums": replace(sums, function=twice)}
    (told,) = batch.differences("sums")
    assert told.startswith("sums of {'s0': 7}, result 0: 1 of 7 elements differ, first that at 0:")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_and_constants_of_the_ring_in_either_width(dtype: type, tmp_path: Path) -> None:
    def function(x: tf.Tensor, y: tf.Tensor) -> list[tf.Tensor]:
        smooth = [tf.tanh(x), tf.exp(x), tf.math.log1p(x), tf.sigmoid(x), tf.math.rsqrt(x)]
        rough = [tf.floor(x), tf.math.ceil(x), tf.abs(x), tf.maximum(x, y), x / y, -x, x % y]
        numbers = [x * 0.1 + 1e30, x * -3.5, tf.pow(x, tf.constant(3.0, x.dtype)), tf.pow(x, y)]
        return [
            *smooth,
            *rough,
            *numbers,
            tf.cast(x < y, x.dtype),
            tf.cast(tf.cast(x, tf.int32), x.dtype),
        ]

    case = Case(function, [["s0", 5]] * 2, "", dtypes=[dtype], runs=[{"s0": 40}])
    assert RingBatch({"functions": case}, tmp_path).differences("functions") == []
