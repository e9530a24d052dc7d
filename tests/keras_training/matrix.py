"""Each layer of the table with each optimizer: fitted, evaluated, and asked for predictions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
from keras import optimizers

from tests.keras_training.compare import Arrays, Run
from tests.keras_training.table import CASES, ROWS, Case

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: optimizers.SGD(0.05, momentum=0.9),
    "Adam": lambda: optimizers.Adam(0.01),
    "AdamW": lambda: optimizers.AdamW(0.01, clipnorm=0.5),
    "RMSprop": lambda: optimizers.RMSprop(0.01),
    "Ftrl": lambda: optimizers.Ftrl(0.05),
    "Lion": lambda: optimizers.Lion(0.005),
}


def names() -> Iterator[tuple[str, str]]:
    """All pairs of a layer and an optimizer."""
    return itertools.product(CASES, OPTIMIZERS)


def training(layer: str, optimizer: str, seed: int) -> Callable[[], Run]:
    """Makes the training of a pair: two epochs of two batches, which one traced function serves."""
    case = CASES[layer]

    def make() -> Run:
        keras.utils.set_random_seed(seed)
        model = case.model()
        model.compile(OPTIMIZERS[optimizer](), "mse", jit_compile=False)
        model.optimizer.build(model.trainable_variables)
        start = [(v, v.numpy()) for v in (*model.variables, *model.optimizer.variables)]

        def run(away: float) -> Arrays:
            for variable, value in start:
                variable.assign(value)
            move(model, seed, away)
            return _trained(model, *_given(case, seed, away))

        return run

    return make


def _trained(model: Any, rows: Any, targets: Any) -> Arrays:
    fitted = model.fit(rows, targets, batch_size=4, epochs=2, shuffle=False, verbose=0)
    return {
        "the losses": fitted.history["loss"],
        "the evaluation": model.evaluate(rows, targets, batch_size=4, verbose=0),
        "the prediction": model.predict(rows, batch_size=4, verbose=0),
        **{f"weight {i}": v.numpy() for i, v in enumerate(model.weights)},
    }


def move(model: Any, seed: int, away: float) -> None:
    """Moves the weights of a model by so much of themselves."""
    numbers = np.random.default_rng(seed + 1)
    for weight in model.trainable_variables if away else ():
        value = weight.numpy()
        weight.assign(value * (1 + away * numbers.standard_normal(value.shape)))


def moved(values: Any, seed: int, away: float) -> Any:
    """The numbers, each by so much of itself away."""
    noise = np.random.default_rng(seed + 2).standard_normal(values.shape)
    return (values * (1 + away * noise)).astype(values.dtype) if away else values


def _given(case: Case, seed: int, away: float) -> tuple[Any, Any]:
    rows = case.inputs(seed)
    targets = np.random.default_rng(seed + 3).standard_normal((ROWS, 3)).astype(np.float32)
    return rows if case.given in ("ints", "words") else moved(rows, seed, away), targets
