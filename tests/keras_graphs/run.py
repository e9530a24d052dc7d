"""Runs a random model without regions and with them, and compares."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

import composite
from tests.keras_graphs.graphs import Drawn

_RTOL = 1e-4  # of the largest |y| of an output: a dozen layers deep


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
        _compare(seed, "expansions", regions(drawn.inputs), wanted, counts)
    if with_kernels:
        composite.wait()
        for _ in range(2):
            _compare(seed, "kernels", regions(drawn.inputs), wanted, counts)
            composite.wait()
    counted = composite.stats() - before
    counts.regions += counted["regions"]
    counts.kernels += counted["answered"]
    counts.launches += counted["kernel_launches"]


def _traced(model: Any) -> Any:
    return tf.function(lambda inputs: model(inputs, training=False), autograph=False)


def _compare(seed: int, way: str, found: Any, wanted: Any, counts: Counts) -> None:
    for index, (y, z) in enumerate(
        zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True)
    ):
        scale = max(float(np.max(np.abs(z), initial=0.0)), 1e-6)
        if np.allclose(y, z, rtol=0.0, atol=_RTOL * scale, equal_nan=True):
            continue
        if seed not in counts.differ:
            counts.differ.append(seed)
        off = float(np.max(np.abs(np.asarray(y) - z)))
        print(f"seed {seed}, {way}: output {index} is {off:.3g} away, |y| up to {scale:.3g}")
