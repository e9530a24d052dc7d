"""Functions of tf as the library has them: making, arranging, taking parts, sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.compiler.library.cases import made

pytestmark = pytest.mark.many_cases

ROWS = np.array([2, 0], np.int32)
MASK = np.array([True, False, True])
GRID = np.array([[True, False, True, False]] * 3)
SEED = np.array([3, 7], np.int32)
BATCHED = np.array([[0, 2], [1, 1]], np.int32)

CASES: list[tuple[Any, ...]] = [
    # creation
    *[(f"tf.{name}(x.shape)", "float32[2, 3]") for name in ("zeros", "ones")],
    *[(f"tf.{name}([2, 1], x.dtype)", "int64[2]") for name in ("zeros", "ones")],
    *[(f"tf.{name}(x, dtype=tf.bool)", np.array([2, 3])) for name in ("zeros", "ones")],
    ("tf.zeros([], tf.complex64) + x", "complex64[2]"),
    ("tf.zeros([x.shape[0], 2], tf.string)", "float32[3]"),
    ("tf.ones(3) + x", "float32[3]"),
    ("tf.eye(3) + x", "float32[3, 3]"),
    ("tf.eye(x, y)", np.array(3), np.array(2)),
    ("tf.linalg.eye(x.shape[0], x.shape[1])", "float32[2, 3]"),
    ("tf.eye(2, batch_shape=[3], dtype=tf.float64) + x", "float64[2]"),
    ("tf.eye(2, num_columns=4, batch_shape=[2, 1]) + x", "float32[4]"),
    ("tf.one_hot(x, 3)", ROWS),
    ("tf.one_hot(x, depth=4, on_value=5, off_value=-1)", BATCHED),
    ("tf.one_hot(x, 3, axis=0, dtype=tf.int32)", BATCHED),
    ("tf.one_hot(x, 3, on_value=True, off_value=False, axis=-1)", ROWS),
    ("tf.one_hot(x, 3, 2.0)", ROWS),
    ("tf.one_hot(x, 3, 0.9, 0.1 / 3, dtype=tf.float64)", ROWS),
    ("tf.one_hot(x, 3, 1, 0, dtype=tf.bfloat16)", ROWS),
    ("tf.one_hot(x, 3, off_value=-1, dtype=tf.float16)", ROWS),
    ("tf.one_hot(x, 3, tf.constant(2.0), 1, dtype=tf.float32)", ROWS),
    ("tf.range(x)", np.int32(5)),
    ("tf.range(2, x)", np.int64(7)),
    ("tf.range(x, 0, delta=-2)", np.int32(7)),
    ("tf.range(0.5, x, 0.25)", np.float32(2)),
    ("tf.range(5, dtype=tf.float64) + x", np.float64(1)),
    ("tf.range(x.shape[0])", "float32[4]"),
    ("tf.linspace(x, y, 5)", np.float32(1), np.float32(2)),
    ("tf.linspace(x, y, num=4, axis=-1)", "float64[3]", "float64[3]"),
    ("tf.linspace(x, 10.0, 1)", np.float32(1)),
    ("tf.linspace(x, y, 3, axis=1)", "float32[2, 2]", "float32[2]"),
    ("tf.meshgrid(x, y)", "float32[3]", "float32[2]"),
    ("tf.meshgrid(x, y, indexing='ij')", "int32[3]", "int32[2]"),
    ("tf.meshgrid(x, y, z)", "float32[2]", "float32[3]", "float32[4]"),
    ("tf.meshgrid(x, name='m')[0]", "float32[2]"),
    ("tf.sequence_mask(x)", ROWS),
    ("tf.sequence_mask(x, 4)", BATCHED),
    ("tf.sequence_mask(x, maxlen=1, dtype=tf.float32)", BATCHED),
    ("tf.constant(2.5) + x", "float32[3]"),
    ("tf.constant([[1, 2], [3, 4]], tf.float64) + x", "float64[2]"),
    ("tf.constant(0.1, dtype=tf.float64) * x", "float64[2]"),
    ("tf.constant([1, 2, 3, 4], shape=[2, 2]) + x", "int32[2]"),
    ("tf.constant(-1, tf.int64, [2, 3], name='c') + x", "int64[3]"),
    ("tf.strings.join([tf.constant('word'), x])", np.array(["a", "b"])),
    ("tf.constant('word') + x + '!'", np.array(["a", "b"])),
    ("tf.convert_to_tensor([0.1, 0.2], tf.float64) + x", "float64[2]"),
    ("tf.convert_to_tensor(x, dtype=tf.float32)", "float32[2]"),
    # layout
    ("tf.rank(x)", "float32[2, 3]"),
    ("tf.size(x)", "float32[2, 3]"),
    ("tf.size(x, out_type=tf.int64)", "float32[2, 3]"),
    ("tf.shape_n([x, y])", "float32[2, 3]", "float32[4]"),
    ("tf.ensure_shape(x, [None, 3])", "float32[2, 3]"),
    ("tf.broadcast_dynamic_shape(x, y)", np.array([2, 1]), np.array([3])),
    ("tf.pad(x, [[1, 2], [0, 1]])", "float32[2, 3]"),
    ("tf.pad(x, [[1, 0], [0, 1]], 'CONSTANT', 7)", "int32[2, 3]"),
    ("tf.pad(x, [[1, 0], [0, 1]], constant_values=y)", "float32[2, 3]", np.float32(3)),
    ("tf.pad(x, y, mode='REFLECT')", "float32[2, 3]", np.array([[1, 0], [2, 1]])),
    ("tf.pad(x, paddings=[[1, 1], [2, 2]], mode='symmetric')", "bfloat16[2, 3]"),
    ("tf.split(x, 2)", "float32[4, 3]"),
    ("tf.split(x, num_or_size_splits=3, axis=-1)", "float32[4, 3]"),
    ("tf.split(x, [1, 3])", "int32[4, 3]"),
    ("tf.split(x, y, axis=1, num=2)", "float32[2, 3]", np.array([1, 2])),
    ("tf.unstack(x, 2)", "float32[2, 3]"),
    ("tf.unstack(x, num=3, axis=-1)", "float32[2, 3]"),
    ("tf.unstack(x, axis=1)[0]", "float32[2, 3]"),
    ("tf.roll(x, 1, 0)", "float32[3, 2]"),
    ("tf.roll(x, shift=[1, -1], axis=[0, 1])", "float32[3, 2]"),
    ("tf.repeat(x, 2)", "float32[3, 2]"),
    ("tf.repeat(x, 3, axis=-1)", "int32[3, 2]"),
    ("tf.repeat(x, repeats=[2, 0], axis=1)", "float32[3, 2]"),
    ("tf.repeat(x, y, axis=0)", "float32[2, 3]", np.array([3, 1])),
    ("tf.nn.crelu(x)", "float32[3, 2]"),
    ("tf.nn.crelu(x, axis=0)", "float64[3, 2]"),
    ("tf.nn.space_to_depth(x, 2)", "float32[1, 4, 4, 1]"),
    ("tf.nn.depth_to_space(x, block_size=2)", "float32[1, 2, 2, 4]"),
    ("tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]])", "float32[1, 4, 4, 1]"),
    ("tf.nn.space_to_batch(x, [2], [[1, 1]])", "float32[1, 4, 2]"),
    ("tf.batch_to_space(x, [2, 2], crops=[[0, 0], [0, 1]])", "float32[4, 2, 2, 1]"),
    ("tf.tile(x, [2, 1])", "float32[2, 3]"),
    ("tf.reverse(x, axis=[-1])", "float32[2, 3]"),
    ("tf.broadcast_to(x, [4, 3])", "float32[3]"),
    # indexing
    ("tf.gather(x, y)", "float32[3, 4]", ROWS),
    ("tf.gather(x, indices=[[0, 1]], axis=-1)", "float32[3, 4]"),
    ("tf.gather(x, y, axis=1, batch_dims=1)", "float32[2, 3, 4]", BATCHED),
    ("tf.gather(x, y, batch_dims=1)", "int32[2, 3]", BATCHED),
    ("tf.gather_nd(x, y)", "float32[3, 4]", BATCHED),
    ("tf.gather_nd(x, y, batch_dims=1)", "float32[2, 3, 4]", BATCHED),
    ("tf.gather_nd(x, y, 2)", "float32[2, 2, 4]", np.array([[[0], [1]], [[3], [2]]])),
    ("tf.scatter_nd(y, x, [4, 3])", "float32[2, 3]", np.array([[1], [3]], np.int32)),
    ("tf.tensor_scatter_nd_update(x, [[0], [2]], y)", "float32[3, 2]", "float32[2, 2]"),
    ("tf.tensor_scatter_nd_add(x, [[0], [0]], y)", "float32[3, 2]", "float32[2, 2]"),
    ("tf.slice(x, [0, 1], [2, -1])", "float32[3, 4]"),
    ("tf.slice(x, begin=y, size=[1, 1])", "float32[3, 4]", np.array([1, 2])),
    ("tf.strided_slice(x, [0, 1], [3, 4], [2, 2])", "float32[3, 4]"),
    ("tf.strided_slice(x, [0], [2])", "float32[3, 4]"),
    ("tf.strided_slice(x, [1, 0], [0, 0], end_mask=2, shrink_axis_mask=1)", "float32[3, 4]"),
    ("tf.boolean_mask(x, y)", "float32[3, 4]", MASK),
    ("tf.boolean_mask(x, mask=y)", "int32[3, 4]", GRID),
    ("tf.boolean_mask(x, y, axis=1)", "float32[2, 3, 4]", MASK),
    ("tf.boolean_mask(x, y, axis=1)", "float32[2, 3, 4]", GRID),
    ("tf.reverse_sequence(x, y, 1)", "float32[2, 3]", ROWS),
    ("tf.reverse_sequence(x, y, seq_axis=0, batch_axis=1)", "float32[3, 2]", ROWS),
    ("tf.nn.embedding_lookup(x, y)", "float32[3, 4]", BATCHED),
    # sorting
    ("tf.argmax(x)", "float32[3, 4]"),
    ("tf.math.argmax(x, axis=-1, output_type=tf.int32)", "float32[3, 4]"),
    ("tf.argmin(x, 1)", "int32[3, 4]"),
    ("tf.math.argmin(input=x)", "float64[3, 4]"),
    ("tf.math.top_k(x, 2)", "float32[3, 4]"),
    ("tf.nn.top_k(x, k=y, sorted=True)", "int32[3, 4]", np.int32(2)),
    ("tf.math.top_k(x)[1]", "float32[3, 4]"),
    ("tf.math.top_k(x).values", "float32[3, 4]"),
    ("tf.nn.top_k(x, 2).indices", "float32[3, 4]"),
    ("tf.unique_with_counts(x).count", np.array([3, 1, 3])),
    ("tf.math.in_top_k(y, x, 2)", "float32[2, 3]", ROWS),
    ("tf.nn.in_top_k(targets=y, predictions=x, k=1)", "float32[2, 3]", ROWS),
    *[(f"tf.{name}(x)", "float32[3, 4]") for name in ("sort", "argsort")],
    *[(f"tf.{name}(x, axis=0)", "float32[3, 4]") for name in ("sort", "argsort")],
    *[(f"tf.{name}(x, 0, 'DESCENDING')", "uint8[3, 4]") for name in ("sort", "argsort")],
    *[(f"tf.{name}(x, axis=-2)", "uint16[3, 4]") for name in ("sort", "argsort")],
    *[(f"tf.{name}(x, direction='DESCENDING')", "int32[4]") for name in ("sort", "argsort")],
    *[(f"tf.{name}(x)", "int64[2, 4]") for name in ("sort", "argsort")],
    ("tf.searchsorted(x, y)", np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.0, 9.0])),
    ("tf.searchsorted(x, y, 'right', tf.int64)", np.array([[1, 2, 2]]), np.array([[2, 0]])),
    ("tf.unique(x)", np.array([3, 1, 3])),
    ("tf.unique_with_counts(x, out_idx=tf.int64)", np.array([3, 1, 3])),
    # random
    ("tf.random.stateless_uniform([2, 3], x)", SEED),
    ("tf.random.stateless_uniform(y.shape, x, 1.0, maxval=3.0)", SEED, "float32[2, 3]"),
    ("tf.random.stateless_uniform([2], seed=x, minval=0, maxval=9, dtype=tf.int32)", SEED),
    ("tf.random.stateless_uniform([2], x, minval=None, dtype=tf.uint32)", SEED),
    ("tf.random.stateless_uniform([2], x, dtype=tf.bfloat16)", SEED),
    ("tf.random.stateless_normal([5], x, mean=1.0, stddev=y)", SEED, "float32[5]"),
    ("tf.random.stateless_truncated_normal([5], seed=x, dtype=tf.float64)", SEED),
    ("tf.random.stateless_categorical(y, 5, x)", SEED, "float32[2, 3]"),
    ("tf.random.stateless_gamma([3, 2], x, y)", SEED, np.array([0.5, 9.0], np.float32)),
    ("tf.random.stateless_gamma([3, 2], x, 0.5, beta=y, dtype=tf.float64)", SEED, "float64[2]"),
    ("tf.random.stateless_poisson([3, 2], x, y)", SEED, np.array([1.0, 9.0])),
    ("tf.random.stateless_binomial([3, 2], x, 5.0, y)", SEED, np.array([0.2, 0.7], np.float32)),
    ("tf.random.stateless_parameterized_truncated_normal([4], x, maxvals=1.0)", SEED),
    ("tf.random.experimental.stateless_shuffle(y, x)", SEED, "float32[4, 2]"),
    ("tf.random.fold_in(x, y)", SEED, np.int32(3)),
    ("tf.random.experimental.stateless_fold_in(x, 7)", SEED),
    ("tf.random.split(x, 3)", SEED),
    ("tf.random.experimental.stateless_split(x)[0]", SEED),
    ("tf.nn.experimental.stateless_dropout(y, 0.5, x)", SEED, "float32[4, 5]"),
    ("tf.nn.experimental.stateless_dropout(y, rate=0, seed=x)", SEED, "float32[4]"),
    ("tf.nn.experimental.stateless_dropout(y, z, x)", SEED, "float64[9]", np.float64(0.3)),
    ("tf.nn.experimental.stateless_dropout(y, 0.4, x, noise_shape=[4, 1])", SEED, "float32[4, 5]"),
]


@pytest.mark.parametrize(("text", "inputs"), [(text, inputs) for text, *inputs in CASES])
def test_as_tensorflow(text: str, inputs: list[Any], case: Callable[[str], Any]) -> None:
    values = [made(spec, seed) for seed, spec in enumerate(inputs)]
    case(text).check(*values, traced=True)


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("tf.zeros(x.shape)", [None, 3]),
        ("tf.ones([x.shape[0], 2])", [None, 2]),
        ("tf.random.stateless_uniform(x.shape, [1, 2])", [None, 3]),
        ("tf.pad(x, [[1, 1], [0, 2]])", [None, 5]),
        ("tf.repeat(x, 2, axis=1)", [None, 6]),
        ("tf.tensordot(x, tf.ones([3, 4]), 1)", [None, 4]),
        ("tf.nn.moments(x, [1])[0]", [None]),
    ],
)
def test_dims_that_are_known_stay_known(
    text: str, dims: list[int | None], case: Callable[[str], Any]
) -> None:
    op = case(text).op([tf.ones([2, 3])], "float32")
    traced = tf.function(op.__call__, input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    assert traced.get_concrete_function().output_shapes.as_list() == dims
