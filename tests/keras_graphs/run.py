"""Runs a random model without regions and with them, and compares."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

import composite
from tests.keras_graphs.graphs import Drawn

_RTOL = 1e-4  # of the largest |y| of an output: a dozen layers deep
_NUDGES = 8  # runs of a model whose numbers are an ulp off


@dataclasses.dataclass
class Counts:
    """What many models gave."""

    models: int = 0
    invalid: int = 0  # Keras could not build them
    regions: int = 0
    kernels: int = 0
    launches: int = 0
    differ: list[int] = dataclasses.field(default_factory=list)  # seeds


def run(seed: int, counts: Counts, *, with_kernels: bool) -> None:
    """Runs the model of a seed; adds to `counts`, and prints what differs."""
    try:
        drawn = Drawn(seed)
    except ValueError:  # a valid convolution of too small an image, for one
        counts.invalid += 1
        return
    counts.models += 1
    wanted = _traced(drawn.model)(drawn.inputs)
    regions = _traced(drawn.model)
    before = composite.stats()
    with composite.options(regions=True):
        told = differences("expansions", regions(drawn.inputs), wanted, drawn)
    if with_kernels:
        composite.wait()
        for _ in range(2):
            told += differences("kernels", regions(drawn.inputs), wanted, drawn)
            composite.wait()
    for line in told:
        print(f"seed {seed}, {line}")
    counts.differ += [seed] if told else []
    counted = composite.stats() - before
    counts.regions += counted["regions"]
    counts.kernels += counted["answered"]
    counts.launches += counted["kernel_launches"]


def _traced(model: Any) -> Any:
    return tf.function(lambda inputs: model(inputs, training=False), autograph=False)


def differences(way: str, found: Any, wanted: Any, drawn: Drawn) -> list[str]:
    """Where outputs are further off than both `_RTOL` and twice what an ulp of each input moves."""
    told = []
    for index, (y, z) in enumerate(_pairs(found, wanted)):
        scale = max(float(np.max(np.abs(z), initial=0.0)), 1e-6)
        if np.allclose(y, z, rtol=0.0, atol=_RTOL * scale, equal_nan=True):
            continue
        off = float(np.max(np.abs(y - z)))
        moved = _moved(drawn, index)
        if not off <= 2 * moved:
            told.append(
                f"{way}: output {index} is {off:.3g} away, |y| up to {scale:.3g};"
                f" an ulp of the inputs moves it by {moved:.3g}"
            )
    return told


def _pairs(found: Any, wanted: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    flat = map(tf.nest.flatten, (found, wanted))
    return ((np.asarray(y), np.asarray(z)) for y, z in zip(*flat, strict=True))


def _moved(drawn: Drawn, index: int) -> float:
    """How far an output moves where weights and inputs move by an ulp: some models cancel."""
    random = np.random.default_rng(0)
    weights = drawn.model.get_weights()
    run = _traced(drawn.model)
    first = np.asarray(tf.nest.flatten(run(drawn.inputs))[index])
    most = 0.0
    for _ in range(_NUDGES):
        drawn.model.set_weights([_nudged(w, random) for w in weights])
        inputs = tf.nest.map_structure(lambda x: _nudged(np.asarray(x), random), drawn.inputs)
        other = np.asarray(tf.nest.flatten(run(inputs))[index])
        most = max(most, float(np.max(np.abs(other - first), initial=0.0)))
    drawn.model.set_weights(weights)
    return most


def _nudged(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    if x.dtype.kind != "f":
        return x
    towards = random.choice(np.array([-np.inf, np.inf], x.dtype), x.shape)
    return np.nextafter(x, towards)
