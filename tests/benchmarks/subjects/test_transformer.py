"""Both models of the transformer compute the same, from the same weights, in both policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import composite
from benchmarks.subjects.transformer import POLICIES, Size, _fit_step, _tokens, transformer

SMALL = Size(batch=2, length=6, width=8, heads=2)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES.values())
def test_ours_is_the_same_model(policy: str) -> None:
    with composite.options(backend="tf"):
        ours, theirs = (transformer(SMALL, policy, ours=own) for own in (True, False))
        assert [w.shape for w in ours.weights] == [w.shape for w in theirs.weights]
        ours.set_weights(theirs.get_weights())
        tokens = _tokens(SMALL)
        rtol = {"float32": 1e-4, "mixed_bfloat16": 0.02}[policy]
        np.testing.assert_allclose(ours(tokens), theirs(tokens), rtol=rtol, atol=rtol)
        found, expected = (losses(_fit_step(model, SMALL, xla=False)) for model in (ours, theirs))
    np.testing.assert_allclose(found, expected, rtol=rtol)
    assert found[-1] < found[0]


def losses(step: Callable[[], Any]) -> list[float]:
    return [float(step()["loss"]) for _ in range(5)]
