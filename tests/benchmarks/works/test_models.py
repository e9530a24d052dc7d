"""The models that are accelerated: what they take and give."""

from __future__ import annotations

import numpy as np

from benchmarks.works.models import WORDS, encoder, inputs, tagger, wide_and_deep


def test_what_models_of_layers_give() -> None:
    models = {
        (2, 5, 8): encoder(layers=1, width=8, heads=2, length=5),
        (2, 5, 10): tagger(width=4, length=5),
        (2, 1): wide_and_deep(columns=3, numbers=4),
    }
    for shape, model in models.items():
        given = inputs(model, 2)
        first = given[0].numpy()
        assert first.dtype == np.int32
        assert 0 <= first.min() < first.max() < WORDS
        assert model(given if len(given) > 1 else given[0]).shape == shape
