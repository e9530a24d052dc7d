"""Chains of stages: one loop over blocks of rows, right for every number of rows.

Small ones pay only where a test says so: most tests do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.build import write
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.strategy.cpu.chain import joining
from composite.compiler.tvm.target import Target
from tests.compiler.tvm.conftest import library_of

TWO_CORES = Target.of("x86-64-v3", 2)

Shapes = list[tuple[int, ...]]


@pytest.fixture
def pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every chain be written as one."""
    monkeypatch.setattr(joining, "pays", lambda *_: True)


def drawn(shapes: Shapes) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal(s).astype(np.float32) for s in shapes]


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = tf.matmul(q, k, transpose_b=True) * (q.shape[-1] ** -0.5)
    return tf.matmul(tf.nn.softmax(scores), v)


def causal(q: Any, k: Any, v: Any) -> Any:
    """Heads in the third dimension, a mask made of indices, and the weights as a second result."""
    scores = tf.einsum("bqhd,bkhd->bhqk", q, k)
    seen = tf.range(tf.shape(q)[1])[:, None] >= tf.range(tf.shape(k)[1])
    weights = tf.nn.softmax(tf.where(seen, scores, -1e9))
    return tf.einsum("bhqk,bkhd->bqhd", weights, v), weights


def masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) + mask), v)


def perceptron(x: Any, w: Any, b: Any, u: Any) -> Any:
    return tf.matmul(tf.nn.gelu(tf.matmul(x, w) + b), u)


def norm_and_dense(x: Any, scale: Any, w: Any) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.relu(tf.matmul((x - mean) * tf.math.rsqrt(variance + 1e-5) * scale, w)) + x


def heads(batch: int, queries: int, keys: int, width: int, m: int) -> Shapes:
    return [(batch, queries, width), (batch, keys, width), (batch, keys, m)]


def check(
    compiler: Any,
    function: Callable[..., Any],
    arrays: list[np.ndarray],
    shapes: Any = None,
    **options: Any,
) -> str:
    """Compare with float64, and return the strategies of the kernel; its accesses are proven."""
    exact = tf.nest.flatten(function(*(tf.constant(a.astype(np.float64)) for a in arrays)))
    loaded = compiler.compile(function, arrays, shapes, target=TWO_CORES, **options)
    results = loaded(arrays, [e.shape for e in exact], [np.float32] * len(exact))
    for result, want in zip(results, exact, strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    assert str(loaded.kernel.proof) == "proven"
    strategy: str = loaded.kernel.strategy
    return strategy


@pytest.mark.usefixtures("pays")
@pytest.mark.parametrize(
    "sizes", [(4, 64, 64, 16, 16), (3, 77, 50, 24, 9), (2, 127, 33, 17, 40), (8, 24, 5, 8, 3)]
)
def test_attention_is_a_chain(compiler: Any, sizes: tuple[int, ...]) -> None:
    assert check(compiler, attention, drawn(heads(*sizes))) == "chain"


@pytest.mark.usefixtures("pays")
def test_factors_that_a_block_slices_are_not_packed_at_rest(compiler: Any) -> None:
    with pytest.raises(NotCovered, match="read where they lie"):
        check(compiler, attention, drawn(heads(3, 70, 48, 32, 32)), constants=(1, 2))


@pytest.mark.parametrize("batch", [1, 3])
def test_the_call_may_decide_how_many_batches_there_are(compiler: Any, batch: int) -> None:
    shapes = [("s0", 100, 16), ("s0", 210, 16), ("s0", 210, 20)]
    assert check(compiler, attention, drawn(heads(batch, 100, 210, 16, 20)), shapes) == "chain"


@pytest.mark.usefixtures("pays")
def test_masks_and_transposed_heads(compiler: Any) -> None:
    arrays = drawn([(2, 50, 3, 16), (2, 50, 3, 16), (2, 50, 3, 24)])
    assert check(compiler, causal, arrays).endswith("chain+elementwise")
    arrays = drawn([*heads(4, 60, 31, 16, 16), (60, 1)])
    assert check(compiler, masked, arrays) == "chain"
    arrays = drawn([*heads(4, 60, 31, 16, 16), (4, 1, 31)])
    assert check(compiler, masked, arrays) == "chain"


@pytest.mark.usefixtures("pays")
def test_sixteen_bits_and_factors_under_another_shape(compiler: Any) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        split = lambda x: tf.reshape(x, [*x.shape[:2], -1])  # noqa: E731
        return attention(split(q), split(k), split(v))

    shapes: Shapes = [(3, 60, 4, 8), (3, 20, 4, 8), (3, 20, 3, 8)]
    assert check(compiler, function, drawn(shapes)) == "chain"
    arrays = [a.astype(ml_dtypes.bfloat16) for a in drawn(heads(3, 60, 31, 16, 24))]
    loaded = compiler.compile(attention, arrays, target=TWO_CORES)
    (result,) = loaded(arrays, [(3, 60, 24)], [arrays[0].dtype])
    want = attention(*(tf.constant(a) for a in arrays))
    np.testing.assert_allclose(result.astype(float), tf.cast(want, tf.float64), atol=0.03)
    assert loaded.kernel.strategy.endswith("chain")


@pytest.mark.usefixtures("pays")
@pytest.mark.parametrize("rows", [192, 331])
@pytest.mark.parametrize("constants", [(), (1, 3)])
def test_dense_layers_are_a_chain(compiler: Any, rows: int, constants: tuple[int, ...]) -> None:
    arrays = drawn([(rows, 40), (40, 72), (72,), (72, 19)])
    assert check(compiler, perceptron, arrays, constants=constants) == "chain"


@pytest.mark.usefixtures("pays")
@pytest.mark.parametrize("rows", [192, 331])
def test_a_norm_and_the_layer_behind_it_are_a_chain(compiler: Any, rows: int) -> None:
    assert check(compiler, norm_and_dense, drawn([(rows, 50), (50,), (50, 50)])) == "chain"


@pytest.mark.usefixtures("pays")
@pytest.mark.parametrize("size", [24, 96, 192])
def test_blocks_may_have_any_size(compiler: Any, size: int) -> None:
    arrays = drawn(heads(3, 100, 50, 16, 16))
    assert check(compiler, attention, arrays, choices={"0.chain.rows": size}) == "chain"


@pytest.mark.usefixtures("pays")
def test_rows_that_are_gathered_may_be_stored_for_others(compiler: Any) -> None:
    def looked_up(ids: Any, table: Any, w: Any) -> Any:
        rows = tf.gather(table, ids)
        return tf.tanh(tf.matmul(rows, w)), rows

    ids = np.random.default_rng(0).integers(0, 50, (6, 64))
    arrays = [ids, *drawn([(50, 16), (16, 24)])]
    loaded = compiler.compile(looked_up, arrays, None, target=TWO_CORES)
    assert "chain" in loaded.kernel.strategy
    exact = looked_up(*map(tf.constant, arrays))
    results = loaded(arrays, [y.shape for y in exact], [np.float32] * 2)
    for result, want in zip(results, exact, strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("pays")
def test_what_reads_other_rows_ends_a_chain(compiler: Any) -> None:
    def gram(x: Any, w: Any) -> Any:
        y = tf.nn.softmax(tf.matmul(x, w))
        return tf.matmul(y, y, transpose_a=True)

    assert check(compiler, gram, drawn([(200, 24), (24, 40)])) == "chain+gemm"


def strategies(function: Callable[..., Any], shapes: Shapes, target: Target = TWO_CORES) -> str:
    specs = [tf.TensorSpec([d if isinstance(d, int) else None for d in s]) for s in shapes]
    return "+".join(
        write(library_of(function, specs), shapes, target=target).module.strategies.values()
    )


def test_a_chain_pays_where_no_cache_holds_what_is_handed_on() -> None:
    assert strategies(attention, heads(16, 256, 256, 64, 64)) == "chain"
    assert strategies(attention, heads(4, 64, 64, 64, 64)) == "gemm+rows+gemm"
    many = Target.of("x86-64-v3", 64)
    assert strategies(attention, heads(16, 256, 256, 64, 64), many) == "gemm+rows+gemm"


@pytest.mark.usefixtures("pays")
def test_the_second_factor_of_a_product_must_be_known_to_pack_it_once() -> None:
    shapes: Any = [(16, 256, 64), (16, "s0", 64), (16, "s0", 64)]
    assert strategies(attention, shapes) == "gemm+rows+gemm"


def test_rows_that_the_call_decides_are_no_chain() -> None:
    shapes: Any = [(16, "s0", 64), (16, 256, 64), (16, 256, 64)]
    assert strategies(attention, shapes) == "gemm+rows+gemm"


def test_large_factors_and_many_products_are_no_chain() -> None:
    assert strategies(attention, heads(2, 600, 2000, 64, 64)) == "gemm+rows+gemm"
    shapes: Shapes = [(4096, 128), (128, 256), (256,), (256, 128)]
    assert strategies(perceptron, shapes) == "gemm+gemm"
    assert strategies(perceptron, [(4096, 32), (32, 256), (256,), (256, 32)]) == "chain"
