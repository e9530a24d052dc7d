"""The rows of a body's kernels: alone and in batches, by any number of threads, of each class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from composite.compiler import tvm as backend
from tests.compiler.tvm.conftest import Compiler
from tests.compiler.tvm.host import Loaded
from tests.invariance.bodies import Array, Body

ROWS = 64


class Kind(NamedTuple):
    """What a kernel is made for: so many rows, or any number; packed weights; cores."""

    rows: int | None
    packed: bool = False
    cores: int = 4


KINDS = tuple(
    Kind(rows, packed, cores)
    for cores in (4, 1)
    for packed in (False, True)
    for rows in (None, 1, 3, ROWS)
)


def target(cores: int) -> backend.Target:
    """This machine with so many cores, for invariant kernels."""
    return replace(backend.Target.host(), cores=cores, invariant=True)


def differences(
    compiler: Compiler, body: Body, rng: np.random.Generator, kinds: tuple[Kind, ...] = KINDS
) -> list[str]:
    """Where a row has other bits than before, in words; none if each row has the same always."""
    x = rng.standard_normal((ROWS, *body.row)).astype(np.float32)
    expected = np.asarray(body.function(*map(np_constant, (x, *body.weights))))
    seen: dict[int, bytes] = {}
    found = []
    for kind in kinds:
        try:
            kernels = _kernels(compiler, body, x, kind)
        except backend.NotCovered:
            assert kind.packed, "only a body without anything to pack may have no kernel"
            continue
        for tasks, kernel in kernels:
            for first, count in _slices(kind, rng):
                part = np.ascontiguousarray(x[first : first + count])
                shape = (count, *expected.shape[1:])
                (got,) = kernel([part, *body.weights], [shape], [expected.dtype])
                wanted = expected[first : first + count]
                np.testing.assert_allclose(got, wanted, rtol=5e-3, atol=5e-4)
                bits = [row.tobytes() for row in got]
                others = [i for i, b in enumerate(bits) if seen.setdefault(first + i, b) != b]
                if others:
                    strategy = kernel.kernel.strategy
                    found.append(f"{kind}, {tasks} threads, {count} rows: {others} ({strategy})")
    return found


def np_constant(array: Array) -> object:
    """The array as a tensor."""
    import tensorflow as tf

    return tf.constant(array)


def _kernels(
    compiler: Compiler, body: Body, x: Array, kind: Kind
) -> Iterator[tuple[int, Loaded]] | list[tuple[int, Loaded]]:
    """The kernel of a kind, with each number of threads that it may run on."""
    some = x[: kind.rows or 5]
    shapes = None
    if kind.rows is None:
        shapes = [("s0", *body.row), *(w.shape for w in body.weights)]
    return [
        (
            tasks,
            compiler.compile(
                body.function,
                [some, *body.weights],
                shapes,
                target=target(kind.cores),
                tasks=tasks,
                constants=range(1, 1 + len(body.weights)) if kind.packed else (),
            ),
        )
        for tasks in ((1, 2, 3, 4) if kind.cores > 1 and kind.rows is None else (kind.cores,))
    ]


def _slices(kind: Kind, rng: np.random.Generator) -> list[tuple[int, int]]:
    """First rows and counts: all that the kernel takes at either end and between."""
    counts = [kind.rows] if kind.rows is not None else [1, 2, int(rng.integers(3, ROWS)), ROWS]
    places = [(0, count) for count in counts] + [(ROWS - count, count) for count in counts]
    return [*places, *((int(rng.integers(0, ROWS - count + 1)), count) for count in counts)]
