"""16-bit factors: pairs of bfloat16 where the target multiplies them, widened elsewhere."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm import Target
from composite.compiler.tvm.build import write
from composite.compiler.tvm.machine import BFLOAT16
from composite.compiler.tvm.machine_code import generate
from tests.compiler.tvm.conftest import library_of

HOST = Target.host().isa
LEVELS = sorted({"x86-64-v2", HOST})
BF16 = ml_dtypes.bfloat16


def product(ta: bool, tb: bool) -> Any:
    def function(x: Any, w: Any) -> Any:
        return tf.tanh(tf.matmul(x, w, transpose_a=ta, transpose_b=tb) * tf.constant(0.5, x.dtype))

    return function


def factors(sizes: tuple[int, int, int], ta: bool, tb: bool, dtype: Any = BF16) -> list[np.ndarray]:
    m, k, n = sizes
    random = np.random.default_rng(m + k + n)
    shapes = [(k, m) if ta else (m, k), (n, k) if tb else (k, n)]
    return [random.uniform(-1, 1, shape).astype(dtype) for shape in shapes]


def check(loaded: Any, function: Any, arrays: list[np.ndarray], depth: int) -> None:
    """One rounding to the result's dtype, and those of sums in float32."""
    exact = function(*[tf.constant(a.astype(np.float64)) for a in arrays]).numpy()
    (found,) = loaded(arrays, [exact.shape], [arrays[0].dtype])
    epsilon = float(ml_dtypes.finfo(arrays[0].dtype).eps)
    wide, bound = found.astype(np.float64), (depth + 4) * 2.0**-23
    np.testing.assert_allclose(wide, exact, rtol=epsilon, atol=bound)
    assert loaded.kernel.strategy == "gemm"


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("sizes", [(15, 31, 33), (33, 64, 17), (50, 99, 70)])
def test_every_layout(
    compiler: Any, *, isa: str, ta: bool, tb: bool, sizes: tuple[int, int, int]
) -> None:
    """Depths that are odd, even, less than a vector, and one element short of whole squares."""
    function, arrays = product(ta, tb), factors(sizes, ta, tb)
    loaded = compiler.compile(function, arrays, target=Target.of(isa, 2))
    check(loaded, function, arrays, sizes[1])
    assert loaded.kernel.proof.is_complete


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(("ta", "tb"), [(False, True), (True, False)])
def test_half(compiler: Any, isa: str, ta: bool, tb: bool) -> None:
    function, arrays = product(ta, tb), factors((20, 33, 40), ta, tb, np.float16)
    loaded = compiler.compile(function, arrays, target=Target.of(isa, 2))
    check(loaded, function, arrays, 33)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("sizes", [(9, 30, 40), (40, 301, 33)])
def test_constant_factors(compiler: Any, isa: str, tb: bool, sizes: tuple[int, int, int]) -> None:
    function, arrays = product(False, tb), factors(sizes, False, tb)
    loaded = compiler.compile(function, arrays, target=Target.of(isa, 2), constants=[1])
    check(loaded, function, arrays, sizes[1])
    (packed,) = loaded.kernel.packed
    halves = 2 if Target.of(isa, 2).has_bfloat16 else 1
    assert packed.elements < 2 * 64 * ((sizes[1] + 1) // halves + 1)


@pytest.mark.parametrize("rows", [1, 70])
def test_rows_and_depth_that_the_call_decides(compiler: Any, rows: int) -> None:
    function = product(False, False)
    for depth, shapes in (
        (33, [("s0", 33), (33, 20)]),
        (1, [(rows, "s0"), ("s0", 20)]),
        (64, [(rows, "s0"), ("s0", 20)]),
        (99, [(rows, "s0"), ("s0", 20)]),
    ):
        arrays = factors((rows, depth, 20), False, False)
        loaded = compiler.compile(function, arrays, shapes)
        check(loaded, function, arrays, depth)


def test_what_is_computed_is_rounded_to_pairs(compiler: Any) -> None:
    """The factors are computed in float32; TensorFlow's products have them in bfloat16."""
    x, w = factors((20, 41, 24), False, False)

    def function(x: Any, w: Any) -> Any:
        return tf.matmul(tf.nn.softmax(x), tf.exp(w), transpose_b=False)

    wanted = function(tf.constant(x), tf.constant(w)).numpy().astype(np.float32)
    loaded = compiler.compile(function, [x, w])
    (found,) = loaded([x, w], [wanted.shape], [x.dtype])
    np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=2**-6)


def test_special_numbers(compiler: Any) -> None:
    """Behind an odd depth nothing is multiplied: no infinity becomes NaN there."""
    x, w = factors((9, 35, 20), False, False)
    x[3, 34], x[5, 6], w[2, 2] = np.inf, np.nan, -np.inf
    wanted = (x.astype(np.float64) @ w.astype(np.float64)).astype(np.float32)
    for constants in ((), (1,)):
        loaded = compiler.compile(tf.matmul, [x, w], constants=constants)
        (found,) = loaded([x, w], [wanted.shape], [x.dtype])
        np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=2**-7, atol=1e-5)


@pytest.mark.parametrize("isa", [BFLOAT16, "x86-64-v4"])
def test_the_instructions_of_the_level(isa: str) -> None:
    specs = [tf.TensorSpec((24, 64), tf.bfloat16), tf.TensorSpec((64, 64), tf.bfloat16)]
    library = library_of(product(False, False), specs)
    written = write(library, [(24, 64), (64, 64)], target=Target.of(isa, 1))
    text = generate(written.module.functions, written.target).inspect_source("asm")
    expected = isa == BFLOAT16
    assert ("vdpbf16ps" in text, "vcvtneps2bf16" in text) == (expected, expected)
