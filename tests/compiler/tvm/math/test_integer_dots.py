"""Products of narrow integers: in groups where the target multiplies them, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from composite import quant
from composite.compiler.tvm import Target
from composite.compiler.tvm.build import write
from composite.compiler.tvm.machine import AARCH64, BFLOAT16
from composite.compiler.tvm.machine_code import generate
from tests import draws
from tests.compiler.tvm.conftest import library_of

HOST = Target.host().isa
LEVELS = [level for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4", BFLOAT16) if level <= HOST]
DTYPES = ("int8", "uint8", "int16")


def wide(x: Any, zero: int) -> Any:
    """As int32, less a zero point."""
    return tf.cast(x, tf.int32) - zero


def product(zeros: tuple[int, int], ta: bool = False, tb: bool = False) -> Any:
    def function(x: Any, w: Any) -> Any:
        a, b = wide(x, zeros[0]), wide(w, zeros[1])
        return tf.matmul(a, b, transpose_a=ta, transpose_b=tb) + 1

    return function


def drawn(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """All numbers, the extreme ones often: their products are what would saturate."""
    random, own = np.random.default_rng(seed), np.iinfo(dtype)
    values = random.integers(own.min, own.max, shape, endpoint=True)
    extreme = random.choice([own.min, own.max], shape)
    return np.where(random.random(shape) < 0.5, values, extreme).astype(dtype)


def check(loaded: Any, function: Any, arrays: list[np.ndarray], strategy: str = "gemm") -> None:
    wanted = function(*map(tf.constant, arrays)).numpy()
    (found,) = loaded(arrays, [wanted.shape], [wanted.dtype])
    np.testing.assert_array_equal(found, wanted)
    assert loaded.kernel.strategy.endswith(strategy)
    assert loaded.kernel.proof.is_complete


@draws.kernels(25)
@given(st.data())
def test_any_product(compiler: Any, data: Any) -> None:
    isa = data.draw(st.sampled_from(LEVELS))
    m, k, n = (data.draw(st.integers(1, top)) for top in (40, 140, 70))
    dtypes = [data.draw(st.sampled_from(DTYPES)) for _ in range(2)]
    first, second = (0 if d == "int16" else data.draw(st.integers(-130, 130)) for d in dtypes)
    ta, tb, fixed = (data.draw(st.booleans()) for _ in range(3))
    shapes = [(k, m) if ta else (m, k), (n, k) if tb else (k, n)]
    arrays = [drawn(shape, d, m + k + n) for shape, d in zip(shapes, dtypes, strict=True)]
    function = product((first, second), ta, tb)
    # Vectors along the rows read constants where they lie: of a square they may run either way.
    constants = [1] if fixed and n > m else []
    loaded = compiler.compile(function, arrays, target=Target.of(isa, 2), constants=constants)
    check(loaded, function, arrays)


def test_tasks_that_share_rows_and_a_last_vector_are_proven(compiler: Any) -> None:
    """The last of 65 columns is stored with three of another task's, which are the same there."""
    function = product((0, 0), tb=True)
    arrays = [drawn(shape, "int8", 1) for shape in ((32, 73), (65, 73))]
    loaded = compiler.compile(function, arrays, target=Target.of(LEVELS[0], 2), constants=[1])
    assert loaded.kernel.proof.is_complete


@pytest.mark.parametrize("isa", LEVELS)
def test_long_sums_and_batches(compiler: Any, isa: str) -> None:
    function = product((3, 0))
    for shapes in ([(2, 3, 2100), (2100, 40)], [(2, 33, 30), (2, 30, 20)], [(1, 700), (700, 500)]):
        arrays = [drawn(shape, "int8", 7) for shape in shapes]
        loaded = compiler.compile(function, arrays, target=Target.of(isa, 2))
        check(loaded, function, arrays)


@pytest.mark.parametrize("rows", [1, 70])
def test_sizes_that_the_call_decides(compiler: Any, rows: int) -> None:
    function = product((-5, 0))
    for depth, given_shapes in ((33, [("s0", 33), (33, 20)]), (99, [(rows, "s0"), ("s0", 20)])):
        arrays = [drawn(s, "int8", rows) for s in ((rows, depth), (depth, 20))]
        check(compiler.compile(function, arrays, given_shapes), function, arrays)


def test_sums_wrap(compiler: Any) -> None:
    x = np.full((4, 4), 2**30, np.int32)
    loaded = compiler.compile(tf.matmul, [x, x])
    (found,) = loaded([x, x], [(4, 4)], [np.int32])
    np.testing.assert_array_equal(found, x @ x)


@pytest.mark.parametrize("isa", [*LEVELS, AARCH64])
def test_the_instructions_of_the_level(isa: str) -> None:
    specs = [tf.TensorSpec((24, 64), tf.int8), tf.TensorSpec((64, 64), tf.int8)]
    shapes = [(24, 64), (64, 64)]
    written = write(library_of(product((0, 0)), specs), shapes, target=Target.of(isa, 1))
    text = generate(written.module.functions, written.target).inspect_source("asm")
    quads, pairs = "vpdpbusd" in text, "pmaddwd" in text or "vpdpwssd" in text
    assert (quads, pairs) == (isa == BFLOAT16, isa not in (BFLOAT16, AARCH64))


@pytest.mark.parametrize("shapes", [[(40, 12), (12, 64)], [(1, 30, 30, 3), (3, 3, 3, 32)]])
def test_a_few_steps_and_a_long_epilogue(compiler: Any, shapes: list[tuple[int, ...]]) -> None:
    """All steps of a sum are written out, and LLVM moves them."""
    is_product = len(shapes[0]) == 2

    def function(x: Any, w: Any, scale: Any) -> Any:
        total = quant.matmul(x, w, 4) if is_product else quant.conv2d(x, w, 4, 2)
        factor = quant.scale_factor(0.2, [1 / 127, scale])
        return quant.requantize(total, factor, -128, "RELU6", 0.2)

    arrays = [drawn(shape, "int8", 3) for shape in shapes]
    arrays.append(np.linspace(1e-4, 1e-3, shapes[1][-1]).astype(np.float32))
    loaded = compiler.compile(function, arrays)
    check(loaded, function, arrays, "gemm" if is_product else "convolution")


def convolution(zero: int, stride: int, padding: str) -> Any:
    def function(x: Any, w: Any) -> Any:
        return tf.nn.conv2d(wide(x, zero), wide(w, 0), stride, padding) + 1

    return function


@draws.kernels(25)
@given(st.data())
def test_any_convolution(compiler: Any, data: Any) -> None:
    """Groups of channels that are whole steps, and not; borders, whose numbers are zero points."""
    isa = data.draw(st.sampled_from(LEVELS))
    dtype = data.draw(st.sampled_from(DTYPES))
    groups = data.draw(st.sampled_from([1, 1, 2]))
    channels, filters = data.draw(st.integers(2, 9)), data.draw(st.integers(1, 20))
    size, stride = data.draw(st.sampled_from([1, 2, 3])), data.draw(st.integers(1, 2))
    zero = data.draw(st.integers(-140, 260)) if dtype != "int16" else 0
    image, count = (data.draw(st.integers(3, top)) for top in (13, 4))
    x = drawn((count, image, image + 2, channels * groups), dtype, image)
    w = drawn((size, size, channels, filters * groups), "int8", channels)
    function = convolution(zero, stride, data.draw(st.sampled_from(["SAME", "VALID"])))
    loaded = compiler.compile(function, [x, w], target=Target.of(isa, 2))
    is_product = size == stride == 1 and groups == 1
    check(loaded, function, [x, w], "gemm" if is_product else "convolution")


def test_a_vector_of_the_last_columns_is_no_other_tasks(compiler: Any) -> None:
    """Tasks have columns 0 to 7 and 8 to 13: where they begin, 12 would be enough for a row."""
    arrays = [drawn((3, 13, 15, 2), "int8", 13), drawn((3, 3, 2, 14), "int8", 2)]
    function = convolution(0, 1, "SAME")
    loaded = compiler.compile(function, arrays, target=Target.of("x86-64-v2", 2))
    check(loaded, function, arrays, "convolution")
