"""Matrix products: every layout, size, tail and epilogue against float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from composite.compiler import tvm as backend
from tests import draws
from tests.compiler.tvm.conftest import library_of

SIZES = st.sampled_from([0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 31, 33, 40, 49, 65, 100, 130])
ACTIVATIONS = {
    "": lambda y: y,
    "RELU": tf.nn.relu,
    "RELU6": tf.nn.relu6,
    "TANH": tf.tanh,
}
TARGETS = {isa: backend.Target.of(isa, 2) for isa in ("x86-64-v2", "x86-64-v3")}
_CHECKS = draws.kernels(12)


def dense(transpose_a: bool, transpose_b: bool, activation: str) -> Any:
    def function(x: Any, w: Any, b: Any) -> Any:
        y = tf.matmul(x, w, transpose_a=transpose_a, transpose_b=transpose_b)
        return ACTIVATIONS[activation](tf.nn.bias_add(y, b))

    return function


def operands(
    m: int, k: int, n: int, transpose_a: bool, transpose_b: bool, *, dtype: Any = np.float32
) -> list[np.ndarray]:
    random = np.random.default_rng(m * 10007 + k * 101 + n)
    shapes = [(k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n), (n,)]
    return [random.uniform(-1, 1, s).astype(dtype) for s in shapes]


def check_close(loaded: Any, function: Any, arrays: list[np.ndarray], depth: int) -> None:
    """Compare with TF in float64; the bound is that of a sum of ``depth`` rounded products."""
    exact = tf.nest.flatten(function(*[tf.constant(a.astype(np.float64)) for a in arrays]))
    dtypes = [arrays[0].dtype] * len(exact)
    results = loaded(arrays, [tuple(e.shape) for e in exact], dtypes)
    epsilon = float(ml_dtypes.finfo(arrays[0].dtype).eps)
    single = max(epsilon, 2.0**-23) if arrays[0].dtype != np.float64 else epsilon
    for result, want in zip(results, exact, strict=True):
        np.testing.assert_allclose(
            result.astype(np.float64),
            want.numpy(),
            rtol=2 * epsilon,
            atol=(depth + 4) * single + 8 * epsilon,
        )


@given(
    m=SIZES, k=SIZES, n=SIZES, ta=st.booleans(), tb=st.booleans(),
    activation=st.sampled_from(list(ACTIVATIONS)), tasks=st.sampled_from([1, 2, 5]),
)  # fmt: skip
@draws.kernels(40)
def test_any_shape(
    compiler: Any, *, m: int, k: int, n: int, ta: bool, tb: bool, activation: str, tasks: int
) -> None:
    arrays = operands(m, k, n, ta, tb)
    function = dense(ta, tb, activation)
    loaded = compiler.compile(function, arrays, tasks=tasks)
    check_close(loaded, function, arrays, k)


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(32, 96, 200), (7, 300, 100), (1, 64, 64), (70, 20, 9)])
def test_other_levels(compiler: Any, *, isa: str, tb: bool, m: int, k: int, n: int) -> None:
    arrays = operands(m, k, n, False, tb)
    function = dense(False, tb, "TANH")
    loaded = compiler.compile(function, arrays, target=TARGETS[isa])
    check_close(loaded, function, arrays, k)


def test_level_without_this_cpu_compiles(compiler: Any) -> None:
    """AVX-512 code cannot run everywhere, but it can be built everywhere."""
    arrays = operands(32, 64, 64, False, True)
    loaded = compiler.compile(
        dense(False, True, "RELU"), arrays, target=backend.Target.of("x86-64-v4", 8)
    )
    assert loaded.kernel.target.lanes == 16


@pytest.mark.parametrize("tb", [False, True])
def test_parallel_tasks_in_any_number_and_order(compiler: Any, tb: bool) -> None:
    arrays = operands(64, 200, 210, False, tb)
    function = dense(False, tb, "RELU")
    loaded = compiler.compile(function, arrays)
    for loaded.tasks in (1, 2, 3, 64):
        check_close(loaded, function, arrays, 200)
    assert loaded.launches == 4


def test_small_work_stays_on_the_calling_thread(compiler: Any) -> None:
    arrays = operands(4, 8, 16, False, True)
    function = dense(False, True, "RELU")
    loaded = compiler.compile(function, arrays)
    check_close(loaded, function, arrays, 8)
    assert loaded.launches == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(33, 17, 65), (2, 40, 9), (16, 64, 64)])
def test_dtypes(compiler: Any, *, dtype: Any, tb: bool, m: int, k: int, n: int) -> None:
    arrays = operands(m, k, n, False, tb, dtype=dtype)
    function = dense(False, tb, "TANH")
    loaded = compiler.compile(function, arrays)
    check_close(loaded, function, arrays, k)
    assert "contraction" not in loaded.kernel.strategy


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_wrap(compiler: Any, dtype: Any) -> None:
    random = np.random.default_rng(0)
    info = np.iinfo(dtype)
    a = random.integers(info.min, info.max, (5, 12), dtype)
    b = random.integers(info.min, info.max, (12, 9), dtype)
    compiler.compare(tf.matmul, a, b)


@given(m=SIZES, n=st.sampled_from([1, 8, 17, 100]), tb=st.booleans())
@_CHECKS
def test_symbolic_rows(compiler: Any, m: int, n: int, tb: bool) -> None:
    arrays = operands(m, 33, n, False, tb)
    function = dense(False, tb, "RELU")
    loaded = compiler.compile(function, arrays, [("s0", 33), arrays[1].shape, (n,)])
    check_close(loaded, function, arrays, 33)
    assert loaded.kernel.out_shapes == [f"s0,{n}"]


@given(m=SIZES, k=SIZES, n=SIZES, ta=st.booleans(), tb=st.booleans())
@draws.kernels(20)
def test_everything_symbolic(compiler: Any, *, m: int, k: int, n: int, ta: bool, tb: bool) -> None:
    arrays = operands(m, k, n, ta, tb)
    function = dense(ta, tb, "")
    shapes = [("s1", "s0") if ta else ("s0", "s1"), ("s2", "s1") if tb else ("s1", "s2"), ("s2",)]
    loaded = compiler.compile(function, arrays, shapes)
    check_close(loaded, function, arrays, k)


def test_one_symbolic_kernel_serves_small_and_large(compiler: Any) -> None:
    arrays = operands(1, 64, 128, False, True)
    function = dense(False, True, "RELU")
    loaded = compiler.compile(function, arrays, [("s0", 64), (128, 64), (128,)])
    for m in (0, 1, 2, 31, 64, 1000):  # one row goes another way within the kernel
        check_close(loaded, function, operands(m, 64, 128, False, True), 64)
    launched = loaded.launches
    check_close(loaded, function, operands(1, 64, 128, False, True), 64)
    assert launched > 0 and loaded.launches == launched, "large work only is shared out"


@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False), (True, True)])
def test_batches_broadcast(compiler: Any, ta: bool, tb: bool) -> None:
    random = np.random.default_rng(0)
    a = random.uniform(-1, 1, (2, 1, 20, 12) if ta else (2, 1, 12, 20)).astype(np.float32)
    b = random.uniform(-1, 1, (3, 17, 20) if tb else (3, 20, 17)).astype(np.float32)

    def function(a: Any, b: Any) -> Any:
        return tf.raw_ops.BatchMatMulV2(x=a, y=b, adj_x=ta, adj_y=tb) * 2.0

    loaded = compiler.compile(function, [a, b])
    check_close(loaded, function, [a, b], 20)


def test_several_outputs_of_one_product(compiler: Any) -> None:
    arrays = operands(33, 40, 50, False, True)

    def function(x: Any, w: Any, b: Any) -> Any:
        z = tf.matmul(x, w, transpose_b=True) + b
        return z, tf.nn.relu(z), tf.transpose(z), tf.reduce_sum(z, 0)

    loaded = compiler.compile(function, arrays)
    check_close(loaded, function, arrays, 40 * 33)
    assert loaded.kernel.strategy.split("+")[0] == "gemm"


def test_chain_of_layers_and_residual(compiler: Any) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (19, 24)).astype(np.float32)
    w1 = random.uniform(-0.3, 0.3, (40, 24)).astype(np.float32)
    w2 = random.uniform(-0.3, 0.3, (40, 24)).astype(np.float32)

    def function(x: Any, w1: Any, w2: Any) -> Any:
        h = tf.tanh(tf.matmul(x, w1, transpose_b=True))
        return x + tf.matmul(h, w2)

    loaded = compiler.compile(function, [x, w1, w2])
    check_close(loaded, function, [x, w1, w2], 40)
    assert loaded.kernel.strategy == "gemm+gemm"


def test_sum_of_two_products_is_one_epilogue(compiler: Any) -> None:
    x, w, _ = operands(20, 30, 40, False, False)
    h, u, _ = operands(20, 35, 40, False, True)

    def function(x: Any, w: Any, h: Any, u: Any) -> Any:
        return tf.sigmoid(tf.matmul(x, w) + tf.matmul(h, u, transpose_b=True))

    loaded = compiler.compile(function, [x, w, h, u])
    check_close(loaded, function, [x, w, h, u], 65)
    assert loaded.kernel.strategy == "gemm+gemm"


def test_views_as_operands(compiler: Any) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (4, 5, 12)).astype(np.float32)
    w = random.uniform(-1, 1, (12, 17)).astype(np.float32)

    def function(x: Any, w: Any) -> Any:
        flat = tf.reshape(x, [20, 12])
        swapped = tf.reshape(tf.transpose(x, [1, 0, 2]), [20, 12])
        y = tf.matmul(flat, w)
        return tf.reshape(y, [4, 5, 17]), tf.matmul(swapped, tf.transpose(w), transpose_b=True)

    loaded = compiler.compile(function, [x, w])
    check_close(loaded, function, [x, w], 12)


def test_transposed_view_is_the_other_layout(compiler: Any) -> None:
    x, w, _ = operands(20, 30, 40, False, True)
    loaded = compiler.compile(lambda x, w: tf.matmul(x, tf.transpose(w)), [x, w])
    check_close(loaded, lambda x, w: tf.matmul(x, w, transpose_b=True), [x, w], 30)
    assert loaded.kernel.strategy == "gemm"


def test_nan_and_infinity_pass_through(compiler: Any) -> None:
    arrays = operands(9, 20, 11, False, True)
    arrays[0][3, 4], arrays[0][5, 6], arrays[1][2, 2] = np.nan, np.inf, -np.inf
    function = dense(False, True, "RELU")
    loaded = compiler.compile(function, arrays)
    (result,) = loaded(arrays, [(9, 11)], [np.dtype(np.float32)])
    wanted = function(*[tf.constant(a.astype(np.float64)) for a in arrays]).numpy()
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [16, 24, 72, 200, 264, 131])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_long_chains_finish_vectors_side_by_side(compiler: Any, n: int, transpose_b: bool) -> None:
    """Groups of an odd number of vectors, of one, and columns that are no whole vectors."""
    random = np.random.default_rng(n)
    x = random.standard_normal((9, 40)).astype(np.float32)
    w = random.standard_normal((n, 40) if transpose_b else (40, n)).astype(np.float32)
    compiler.compare(
        lambda x, w: tf.nn.gelu(tf.matmul(x, w, transpose_b=transpose_b) * 0.1),
        x,
        w,
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("m", [11, 96, 97, 190, 202, 400], ids=lambda m: f"{m} rows")
def test_rows_of_blocks_that_are_equal_or_not(compiler: Any, m: int) -> None:
    """Up to 95 rows are one block, 190 are two of 95; 97 and 202 have no fitting divisor."""
    random = np.random.default_rng(m)
    x, w = (random.standard_normal(s).astype(np.float32) for s in [(m, 300), (300, 19)])
    compiler.compare(lambda x, w: tf.nn.relu(x @ w), x, w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [96, 2304], ids=["from an L2 cache", "from beyond it"])
def test_what_is_read_from_afar_is_read_in_long_rows(compiler: Any, rows: int) -> None:
    """A residual from beyond the L2 cache is added behind a buffer of sums, not in registers."""
    random = np.random.default_rng(rows)
    shapes = [(rows, 16), (16, 128), (rows, 128)]
    arrays = [random.standard_normal(s).astype(np.float32) for s in shapes]

    def function(x: Any, w: Any, residual: Any) -> Any:
        return x @ w + residual

    library = library_of(function, [tf.TensorSpec(shape) for shape in shapes])
    loops = str(backend.write(library, shapes).module.functions["kernel"])
    assert ("sums" in loops) == (rows > 96)
    compiler.compare(function, *arrays, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("isa", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("depth", [1008, 1024, 2048])
def test_tiles_of_rows_that_are_pages_apart_have_few_rows(isa: str, depth: int) -> None:
    """Rows of 1024 floats take each other's place in an L1 cache."""
    target = backend.Target.of(isa, 2)
    shapes = [(64, depth), (depth, 512)]
    library = library_of(tf.matmul, [tf.TensorSpec(shape) for shape in shapes])
    knobs = backend.write(library, shapes, target=target, constants=(1,)).knobs
    (tile,) = [str(knob.default) for knob in knobs if knob.name.endswith("gemm.tile")]
    few = {"x86-64-v3": "columns 4x3", "x86-64-v4": "columns 6x4"}[isa]
    assert (tile == few) == (depth % 1024 == 0)


@pytest.mark.parametrize(
    ("isa", "width", "columns", "packs"),
    [
        ("x86-64-v3", 1008, 512, False),
        ("x86-64-v3", 1024, 512, True),
        ("x86-64-v4", 1008, 512, False),
        ("x86-64-v4", 1024, 512, True),
        ("x86-64-v4", 1024, 16, False),
    ],
)
def test_steps_that_are_pages_apart_are_packed(
    isa: str, width: int, columns: int, packs: bool
) -> None:
    """As the gradient of weights has them, of an input of 1024 features: if enough reads them."""
    specs = [tf.TensorSpec(s, tf.float32) for s in ((64, width), (64, columns))]
    library = library_of(lambda x, g: tf.matmul(x, g, transpose_a=True), specs)
    shapes = [spec.shape.as_list() for spec in specs]
    written = backend.write(library, shapes, target=backend.Target.of(isa, 2))
    assert ("rows" in str(written.module.functions["kernel"])) == packs


@pytest.mark.parametrize("tb", [False, True])
def test_packed_steps_of_any_depth(compiler: Any, tb: bool) -> None:
    function = dense(True, tb, "RELU")
    for m, k, n in ((1024, 70, 100), (2048, 9, 260), (1024, 300, 64)):
        arrays = operands(m, k, n, True, tb)
        check_close(compiler.compile(function, arrays), function, arrays, k)
