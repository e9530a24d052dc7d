"""Goes through the float32 numbers in the order of their bits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.exhaustive import judge, kernels
from tests.exhaustive.functions import Function
from tests.exhaustive.judge import Found
from tests.exhaustive.records import TENSORFLOW

CHUNK = 1 << 17
CHUNKS = (1 << 32) // CHUNK
GRADUAL = " denormals"
"""Behind a level: on a thread that takes denormals for what they are."""
SAMPLED = 16
"""One of so many chunks goes through a kernel on such a thread, and through TensorFlow's op, and so
do all denormals."""

_SIGN = 1 << 31
_SMALLEST = 1 << 23  # bits of the smallest normal number
Apply = Callable[[np.ndarray, np.ndarray], None]


@dataclass
class Ways:
    """The ways to compute a function.

    Attributes:
        function: Which.
        kernels: For each level what writes the results of a chunk.
        tensorflow: TensorFlow's op.
    """

    function: Function
    kernels: dict[str, Apply]
    tensorflow: Apply | None

    @property
    def all(self) -> dict[str, Apply]:
        """All of them, by level."""
        others = {TENSORFLOW: self.tensorflow} if self.tensorflow is not None else {}
        return self.kernels | others

    @classmethod
    def of(cls, function: Function, levels: Iterable[str], folder: Path) -> Ways:
        """Compile the kernels."""
        made = kernels.by_code(function, "float32", CHUNK, levels, folder)
        found = {level: _writes(kernel) for level, kernel in made.items()}
        return cls(function, found, _in_tensorflow(function.op) if function.op else None)


def _writes(kernel: Any) -> Apply:
    return lambda x, results: kernel.write([x], [results])


def _in_tensorflow(op: Callable[[Any], Any]) -> Apply:
    import tensorflow as tf

    def apply(x: np.ndarray, results: np.ndarray) -> None:
        results[:] = op(tf.constant(x)).numpy()

    return apply


def ordinals(x: float) -> int:
    """The bits of a float32."""
    return int(np.float32(x).view(np.uint32))


def _ranges(pieces: Iterable[tuple[float, float, int]]) -> Iterator[tuple[int, int, int]]:
    """Pieces of the function as ranges of bits, both ends included, in which bits order inputs."""
    for low, high, direction in pieces:
        if high > 0:
            yield ordinals(max(low, 0.0)), ordinals(high), direction
        if low < 0:
            yield ordinals(min(high, -0.0) or -0.0), ordinals(low), -direction


def swept(ways: Ways, chunks: Iterable[int]) -> dict[str, Found]:
    """Judge the results for the inputs of some chunks, by level."""
    found: dict[str, Found] = defaultdict(Found)
    exact = np.empty(CHUNK)
    results = {level: np.empty(CHUNK + 1, np.float32) for level in ways.all}
    gradual = np.empty(CHUNK, np.float32)
    before = None  # the chunk whose last result is in front of `results`
    for chunk in chunks:
        x = np.arange(chunk * CHUNK, (chunk + 1) * CHUNK, dtype=np.uint32).view(np.float32)
        if not _reaches(x, ways.function.domain):
            continue
        np.clip(x, *ways.function.domain, out=x)
        judge.evaluate(ways.function.name, x, exact)
        at_zero = _at_zero(ways.function.name, chunk)
        judged: list[tuple[np.ndarray, Found]] = []
        is_sampled = at_zero is not None or chunk % SAMPLED == 0
        for level, apply in ways.all.items():
            if level == TENSORFLOW and not is_sampled:
                continue
            own = results[level]
            with judge.denormals(flushes=True):
                apply(x, own[1:])
            known = next((one for other, one in judged if _same(own, other)), None)
            if known is None:
                known = _judged(ways.function, x, exact, own[1:], at_zero)
                joins = before == chunk - 1 and level != TENSORFLOW
                _look_back(ways.function, chunk, own, joins, known)
                judged.append((own, known))
            found[level].add(known)
            if level in ways.kernels and is_sampled:
                with judge.denormals(flushes=False):
                    apply(x, gradual)
                found[level + GRADUAL].add(_judged(ways.function, x, exact, gradual))
        for own in results.values():
            own[0] = own[-1]
        before = chunk
    return dict(found)


def _same(results: np.ndarray, others: np.ndarray) -> bool:
    return bool((results.view(np.int32) == others.view(np.int32)).all())


def _judged(
    function: Function,
    x: np.ndarray,
    exact: np.ndarray,
    results: np.ndarray,
    at_zero: float | None = None,
) -> Found:
    return judge.judged(x, exact, results, (function.low, function.high), at_zero)


def _reaches(x: np.ndarray, domain: tuple[float, float]) -> bool:
    """Whether inputs of a chunk, all of one sign, are in the domain, or NaN."""
    ends = sorted((x[0], x[-1]))
    return bool(np.isnan(x[-1]) or (ends[0] <= domain[1] and ends[1] >= domain[0]))


def _at_zero(name: str, chunk: int) -> float | None:
    """The value at zero if a chunk has denormals: it has them alone, or has none."""
    first = chunk * CHUNK
    if first % _SIGN >= _SMALLEST:
        return None
    value = np.empty(1)
    judge.evaluate(name, np.array([-0.0 if first >= _SIGN else 0.0], np.float32), value)
    return float(value[0])


def _look_back(
    function: Function, chunk: int, results: np.ndarray, joins: bool, found: Found
) -> None:
    """Look at the results of a chunk, and the one before if it `joins`, for steps back."""
    first = chunk * CHUNK
    begin = first if joins else first + 1  # the input's bits of results[0] are first - 1
    for low, high, direction in _ranges(function.pieces):
        start, end = max(begin - 1, low), min(first + CHUNK - 1, high)
        if end > start:
            part = results[start - first + 1 : end - first + 2]
            inputs = np.arange(start, end + 1, dtype=np.uint32).view(np.float32)
            found.add(judge.steps_back(inputs, part, direction))
