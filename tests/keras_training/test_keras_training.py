"""Keras models train the same with regions; `make soak` runs more, with kernels."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import keras
import pytest

from tests.keras_training import matrix, workflows
from tests.keras_training.compare import Counts
from tests.keras_training.table import CASES, LEFT_OUT

# Drawn once: what each of them found is in a test of its own.
SAMPLE = (("BatchNormalization", "Adam"), ("LSTM", "Ftrl"), ("Conv2DTranspose", "AdamW"))


def test_each_layer_of_keras_has_a_case_or_a_reason() -> None:
    named = vars(keras.layers).values()
    classes = {one.__name__ for one in named if inspect.isclass(one)}
    assert classes == CASES.keys() | LEFT_OUT.keys()
    assert not CASES.keys() & LEFT_OUT.keys()


def test_a_difference_is_found() -> None:
    """The comparison has to tell what no rounding explains."""
    counts = Counts()
    calls = []

    def run(away: float) -> dict[str, Any]:
        calls.append(away)
        return {"y": [1.0, 2.0 if len(calls) < 3 else 2.01]}

    counts.check("far", lambda: run, with_kernels=False)
    assert counts.failed == ["far"]


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "optimizer"), SAMPLE)
def test_layers_train_the_same(layer: str, optimizer: str, expansions_only: None) -> None:
    counts = Counts()
    counts.check(layer, matrix.training(layer, optimizer, seed=1), with_kernels=False)
    assert not counts.failed
    assert counts.regions > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["masks", "gradient_accumulation", "target_network"])
def test_workflows_compute_the_same(name: str, expansions_only: None) -> None:
    counts = Counts()
    counts.check(name, dict(workflows.makers())[name], with_kernels=False)
    assert not counts.failed
    assert counts.regions > 0


REPLICAS = """
from tests.keras_training import workflows
from tests.keras_training.compare import Counts

workflows.two_cpus()
counts = Counts()
counts.check("replicas", lambda: workflows.replicas, with_kernels=False)
assert not counts.failed, counts
"""


def test_replicas_compute_the_same(run_python: Callable[..., Any]) -> None:
    run_python(REPLICAS, env={"COMPOSITE_JIT": "0"})
