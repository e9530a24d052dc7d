"""Ragged and sparse values as inputs and outputs of modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import hybrid
from composite.hybrid.parts import Parts

WEIGHTS = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)


@pytest.mark.parametrize(
    "spec",
    [
        tf.RaggedTensorSpec([None, None], tf.string, 1, tf.int64),
        tf.RaggedTensorSpec([None, None, None, 3], tf.float32, 2, tf.int32),
        tf.SparseTensorSpec([None, 8], tf.bfloat16),
        tf.SparseTensorSpec(None, tf.int32),
    ],
    ids=str,
)
def test_a_place_is_read_as_it_was_written(spec: Any) -> None:
    place = Parts.at(spec, 5)
    assert place is not None
    parts = 3 if isinstance(spec, tf.SparseTensorSpec) else 1 + spec.ragged_rank
    assert place.indices == tuple(range(5, 5 + parts))
    assert Parts.of_json(place.to_json()) == place
    assert Parts.at(tf.TensorSpec([2]), 0) is None


def assert_same(found: Any, wanted: Any) -> None:
    tf.nest.assert_same_structure(found, wanted, expand_composites=True)
    parts = (tf.nest.flatten(one, expand_composites=True) for one in (found, wanted))
    for y, z in zip(*parts, strict=True):
        if z.dtype == tf.string:
            np.testing.assert_array_equal(y, z)
        else:
            np.testing.assert_allclose(y, z, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_ragged_words_and_sparse_numbers(tmp_path: Path) -> None:
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), 0
    )
    rows = tf.constant(WEIGHTS)

    def model(words: Any, more: Any) -> Any:
        ids = tf.ragged.map_flat_values(table.lookup, words)
        h = tf.gather(rows, ids.flat_values) + 0.0
        h = tf.math.unsorted_segment_sum(h, ids.value_rowids(), ids.nrows())
        h += tf.sparse.sparse_dense_matmul(more["n"], tf.constant(WEIGHTS))
        p = tf.nn.softmax(tf.matmul(tf.nn.gelu(h), WEIGHTS) + 1.0)
        return {"p": p, "ids": ids, "sparse": [tf.sparse.map_values(tf.abs, more["n"])]}

    def given(words: Any, seed: int) -> Any:
        found = np.random.default_rng(seed).standard_normal((len(words), 16))
        numbers = np.where(found > 1, found, 0)
        sparse = tf.sparse.from_dense(tf.constant(numbers, tf.float32))
        return tf.ragged.constant(words, dtype=tf.string), {"n": sparse}

    specs = (
        tf.RaggedTensorSpec([None, None], tf.string),
        {"n": tf.SparseTensorSpec([None, 16], tf.float32)},
    )
    module = hybrid.compile(model, *specs)
    assert module.report is not None
    assert module.report.kernels >= 1
    assert module.report.deviation is not None  # of inputs that were drawn
    module.save(tmp_path / "model.so")
    calls = [given([["a", "?"], [], ["b"]], 1), given([["b"]], 2)]
    for one in (module, hybrid.load(tmp_path / "model.so")):
        for words, more in calls:
            assert_same(one(words, more), model(words, more))
    with pytest.raises(TypeError, match=r"takes RaggedTensorSpec\(.*SparseTensorSpec\("):
        module(tf.constant([["a"]]), calls[0][1])
    with pytest.raises(TypeError, match="takes RaggedTensorSpec"):
        module(tf.ragged.constant([[1]]), calls[0][1])
    again = hybrid.compile(model, *calls[0])
    assert_same(again(*calls[0]), model(*calls[0]))


@pytest.mark.slow
def test_a_keras_model_of_a_sparse_input() -> None:
    layers = tf.keras.layers
    some, others = tf.keras.Input((16,), sparse=True), tf.keras.Input((4,))
    h = layers.Concatenate()([layers.Dense(16, "gelu")(some), others])
    model = tf.keras.Model([some, others], layers.Dense(4, "softmax")(h))
    module = hybrid.compile(model)
    assert module.report is not None
    assert sum(p.ops["MatMul"] for p in module.report.parts if p.where == "kernel") == 1
    for rows in (3, 1):
        given = [tf.sparse.from_dense(tf.eye(rows, 16)), tf.ones([rows, 4])]
        assert_same(module(given), model(given))
