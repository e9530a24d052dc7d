"""The models that are accelerated: what they take and give."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.works import models
from benchmarks.works.models import WORDS, inputs


def test_what_models_of_layers_give() -> None:
    made = {
        (2, 5, 8): models.encoder(layers=1, width=8, heads=2, length=5),
        (2, 5, 10): models.tagger(width=4, length=5),
        (2, 1): models.wide_and_deep(columns=3, numbers=4),
        (2, 6): models.dense_stack(layers=3, width=6),
    }
    for shape, model in made.items():
        assert model(inputs(model, 2)).shape == shape


def test_words_are_drawn_as_integers() -> None:
    categories, numbers = inputs(models.wide_and_deep(columns=30, numbers=4), 2)
    assert (categories.shape, numbers.shape) == ((2, 30), (2, 4))
    assert categories.dtype == tf.int32 and numbers.dtype == tf.float32
    assert 0 <= categories.numpy().min() < categories.numpy().max() < WORDS


def test_named_inputs_have_their_limits() -> None:
    keras = tf.keras
    named = {
        name: keras.Input((None,), dtype="int32", name=name)
        for name in ("token_ids", "segment_ids", "padding_mask")
    }
    given = inputs(keras.Model(named, keras.layers.Add()(list(named.values()))), 3)
    assert {x.shape for x in given.values()} == {(3, models.LENGTH)}
    assert {name: int(x.numpy().max()) for name, x in given.items() if name != "token_ids"} == {
        "segment_ids": 1,
        "padding_mask": 1,
    }
    assert given["padding_mask"].numpy().min() == 1
    assert given["token_ids"].numpy().max() > 1


def test_the_products_of_a_ranking_model_are_of_each_pair_once() -> None:
    model = models.dlrm(columns=3, numbers=4, width=5)
    given = inputs(model, 2)
    products = next(one for one in model.layers if isinstance(one, tf.keras.layers.Dot)).input
    top = model.layers[-4].input
    tensors = tf.keras.Model(model.inputs, [products[0], *top])(given)
    vectors, bottom, pairs = (tensor.numpy() for tensor in tensors)
    assert vectors.shape == (2, 4, 5)
    np.testing.assert_array_equal(vectors[:, 0], bottom)
    expected = [
        np.sum(vectors[:, one] * vectors[:, other], -1) for one in range(4) for other in range(one)
    ]
    np.testing.assert_allclose(pairs, np.stack(expected, -1), rtol=1e-5, atol=1e-6)
    assert model(given).shape == (2, 1)


def test_without_keras_hub_its_models_say_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    with pytest.raises(ImportError, match=r"keras-hub is not installed .*: `make bench` does so"):
        models.MODELS["BERT"]()
