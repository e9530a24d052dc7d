"""Inputs that kernels are checked on."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from composite.reference import adversarial


@pytest.mark.parametrize("shape", [(512, 1024), (1024, 512), (3, 3, 256, 256)])
def test_a_large_array_repeats_numbers_and_no_two_rows_columns_or_blocks(shape):
    draws = adversarial.draws([tf.float32], [shape], 0, all_kinds=True)
    kinds = {draw.kind: draw.arrays[0] for draw in draws}
    assert set(kinds) >= {"ordinary inputs", "inputs of mixed magnitudes"}
    for array in kinds.values():
        assert array.shape == shape
        for axis in range(array.ndim):
            lines = np.moveaxis(array, axis, 0).reshape(shape[axis], -1)
            assert len(np.unique(lines, axis=0)) == shape[axis]


def test_few_kinds_are_drawn_for_an_expansion_that_takes_long():
    asked: list[bool] = []

    def takes_long() -> bool:
        asked.append(True)
        return True

    draws = adversarial.draws([tf.float32], [(4, 4)], 0, all_kinds=True, takes_long=takes_long)
    assert next(draws).kind == "ordinary inputs" and not asked
    kinds = [draw.kind for draw in draws]
    assert kinds == ["inputs of mixed magnitudes", "inputs with special numbers"]


@pytest.mark.parametrize("dtype", [tf.half, tf.bfloat16, tf.float32, tf.float64])
def test_a_milder_draw_halves_exponents(dtype):
    array = np.array([4, -9, 0, 2.25]).astype(dtype.as_numpy_dtype)
    (found,) = adversarial.Draw("any", [array]).milder().arrays
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found.astype(np.float64), [2, -3, 0, 1.5])
