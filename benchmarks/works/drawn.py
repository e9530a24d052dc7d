"""Works whose shapes nobody chose: drawn from a seed, sizes evenly over their logarithm."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.works.layers import Shape
from benchmarks.works.work import Work

Draw = Callable[[int, int], int]
"""A size from the least to the greatest, both included."""


@dataclass(frozen=True)
class Drawn:
    """Works of one kind of layer.

    Attributes:
        count: How many are drawn.
        shape: Draws a shape.
        aim: The least geometric mean of the ratios of the fastest of the others to ours; None
            where there is none.
        distinct: Each layer of a stack has weights of its own.
    """

    count: int
    shape: Callable[[Draw], Shape]
    aim: float | None = None
    distinct: bool = False


KINDS: Mapping[str, Drawn] = {
    "dense": Drawn(
        24, lambda d: (d(1, 512), d(32, 2048), d(32, 2048)), aim=1.10, distinct=True
    ),
    "softmax": Drawn(6, lambda d: (d(1, 2048), d(8, 4096)), aim=1.3),
    "layer norm": Drawn(6, lambda d: (d(1, 2048), d(8, 4096)), aim=1.3),
    "RMS norm": Drawn(6, lambda d: (d(1, 2048), d(8, 4096)), aim=1.3),
    "attention": Drawn(6, lambda d: (d(1, 32), d(8, 512), 8 * d(2, 16)), aim=1.10),
    "LSTM": Drawn(4, lambda d: (d(1, 32), d(4, 64), d(32, 512), d(32, 512)), aim=1.15),
    "GRU": Drawn(4, lambda d: (d(1, 32), d(4, 64), d(32, 512), d(32, 512)), aim=1.15),
    "conv 3x3": Drawn(6, lambda d: (d(1, 8), *2 * (d(7, 56),), d(3, 128), d(8, 128))),
}  # fmt: skip


def works(
    seed: int, *, quick: bool = False, kinds: Collection[str] = ()
) -> Iterator[tuple[str, list[Work]]]:
    """The works of each kind, of `kinds` or of all: stacks, every other one of constant weights.

    The shapes of a kind depend on the seed and the kind alone.
    """
    for number, (kind, drawn) in enumerate(KINDS.items()):
        if kinds and kind not in kinds:
            continue
        random = np.random.default_rng([seed, number])

        def draw(least: int, most: int, random: np.random.Generator = random) -> int:
            return int(np.exp(random.uniform(np.log(least), np.log(most + 1))))

        constants = itertools.cycle([True, False])
        count = 2 if quick else drawn.count
        yield (
            kind,
            [
                Work(kind, drawn.shape(draw), constant=constant).stacked(distinct=drawn.distinct)
                for constant in itertools.islice(constants, count)
            ],
        )
