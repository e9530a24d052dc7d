"""Constant factors, packed once: right for every layout, and only where something is packed."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from tests.compiler.tvm.conftest import library_of

LEVELS = ["x86-64-v2", "x86-64-v3"]


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def dense(transpose: bool) -> Any:
    def function(x: Any, w: Any, b: Any) -> Any:
        return tf.nn.relu(tf.matmul(x, w, transpose_b=transpose) + b)

    return function


@pytest.mark.parametrize("transpose", [False, True], ids=["KN", "NK"])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(6, 16, 16), (33, 17, 129), (5, 300, 77), (100, 700, 40), (7, 40, 3)]
)
def test_a_packed_filter_gives_what_the_filter_gives(
    compiler: Any, m: int, k: int, n: int, transpose: bool
) -> None:
    w = normal(n, k) if transpose else normal(k, n)
    loaded = compiler.compare(
        dense(transpose), normal(m, k), w, normal(n), rtol=2e-5, atol=1e-4, constants=[1]
    )
    (packed,) = loaded.kernel.packed
    assert packed.source == 1
    assert packed.elements >= k * n


def test_pieces_of_k(compiler: Any) -> None:
    """A factor that lies as [K, N] may be packed in pieces: here three, of 112 steps and less."""
    arrays = [normal(40, 333), normal(333, 70), normal(70)]
    choices = {"0.gemm.cut": "wide", "0.gemm.wide.depth": 128}
    loaded = compiler.compile(dense(transpose=False), arrays, constants=[1], choices=choices)
    (packed,) = loaded.kernel.packed
    assert packed.elements % (3 * 113) == 0  # with one step more than is used
    (found,) = loaded(arrays, [(40, 70)], [np.dtype(np.float32)])
    np.testing.assert_allclose(found, dense(transpose=False)(*arrays), rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 50, 131])
def test_a_batch_that_the_call_decides(compiler: Any, rows: int) -> None:
    loaded = compiler.compile(
        dense(transpose=True),
        [normal(8, 70), normal(90, 70), normal(90)],
        [("s0", 70), (90, 70), (90,)],
        constants=[1],
    )
    x, w, b = normal(rows, 70), normal(90, 70), normal(90)
    (found,) = loaded([x, w, b], [(rows, 90)], [np.dtype(np.float32)])
    np.testing.assert_allclose(found, dense(transpose=True)(x, w, b), rtol=2e-5, atol=1e-4)


def test_what_is_made_of_the_constant_alone_is_packed(compiler: Any) -> None:
    def function(x: Any, w: Any) -> Any:
        return tf.matmul(x, tf.transpose(tf.tanh(w) * 2.0))

    loaded = compiler.compare(
        function, normal(9, 20), normal(31, 20), rtol=2e-5, atol=1e-5, constants=[1]
    )
    assert loaded.kernel.packed


def test_batches_of_matrices(compiler: Any) -> None:
    loaded = compiler.compare(
        tf.matmul, normal(2, 3, 9, 20), normal(3, 20, 31), rtol=2e-5, atol=1e-5, constants=[1]
    )
    assert loaded.kernel.packed
    compiler.compare(
        tf.matmul, normal(2, 3, 9, 20), normal(2, 1, 20, 31), rtol=2e-5, atol=1e-5, constants=[1]
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_other_floats(compiler: Any, dtype: Any) -> None:
    tolerance = {np.float64: 1e-13, np.float16: 2e-3}.get(dtype, 2e-2)
    x, w = normal(9, 24, dtype=dtype), normal(24, 33, dtype=dtype)
    exact = np.asarray(x, np.float64) @ np.asarray(w, np.float64)
    loaded = compiler.compile(tf.matmul, [x, w], constants=[1])
    (found,) = loaded([x, w], [(9, 33)], [np.dtype(dtype)])
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=tolerance, atol=tolerance * 5)


@pytest.mark.parametrize("level", LEVELS)
def test_every_level(compiler: Any, level: str) -> None:
    compiler.compare(
        dense(transpose=True), normal(20, 50), normal(30, 50), normal(30),
        rtol=2e-5, atol=1e-4, constants=[1], target=backend.Target.of(level, 2),
    )  # fmt: skip


def test_two_constants_of_one_kernel(compiler: Any) -> None:
    def function(x: Any, w: Any, v: Any) -> Any:
        return tf.matmul(tf.nn.relu(tf.matmul(x, w)), v)

    loaded = compiler.compare(
        function, normal(9, 20), normal(20, 31), normal(31, 8),
        rtol=2e-5, atol=1e-4, constants=[1, 2],
    )  # fmt: skip
    assert [p.source for p in loaded.kernel.packed] == [1, 2]


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (lambda x, w: x + w, [normal(9, 20), normal(9, 20)]),
        (
            tf.matmul,
            [normal(1, 64), normal(64, 64)],
        ),  # reads the matrix once
    ],
    ids=["sum", "matvec"],
)
def test_without_anything_to_pack_there_is_no_kernel_of_its_own(
    compiler: Any, function: Any, arrays: list[np.ndarray]
) -> None:
    with pytest.raises(backend.NotCovered, match="read where they lie"):
        compiler.compile(function, arrays, constants=[1])


def prefetches(function: Any, shapes: list[tuple[int, ...]], constants: tuple[int, ...]) -> int:
    library = library_of(function, [tf.TensorSpec(s) for s in shapes])
    level = backend.Target.of("x86-64-v3", 2)
    written = backend.write(library, shapes, target=level, constants=constants)
    return str(written.module.functions).count("prefetch")


def test_the_next_panel_is_asked_for_where_it_comes_from_afar() -> None:
    shapes = [(8, 256), (256, 512), (512,)]
    assert prefetches(dense(transpose=False), shapes, constants=(1,))
    assert not prefetches(dense(transpose=False), shapes, constants=())  # packed by the task
