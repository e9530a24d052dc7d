"""All 16-bit floats, and samples of the others, against MPFR."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from tests.exhaustive import judge, kernels, numbers, records
from tests.exhaustive.functions import Function
from tests.exhaustive.judge import Found
from tests.exhaustive.sweep import GRADUAL

DTYPES = {"float16": np.dtype(np.float16), "bfloat16": numbers.BFLOAT16,
          "float32": np.dtype(np.float32), "float64": np.dtype(np.float64)}  # fmt: skip


def inputs(function: Function, dtype: str, runs: int, length: int) -> list[np.ndarray]:
    """Return operands: all numbers of 16 bits, or runs of neighbours of each sign and exponent.

    Those of the largest errors that are known are among them.
    """
    kind = DTYPES[dtype]
    if function.arity > 1:
        drawn = [numbers.sample(kind, runs, length, seed) for seed in range(function.arity)]
        random = np.random.default_rng(0)
        return [random.permutation(x) for x in drawn]
    if kind.itemsize == 2:
        x = numbers.from_bits(np.arange(1 << 16), kind)
    else:
        known = records.read().get(function.name, {}).get(dtype, {})
        worst = np.array([one.error_at for one in known.values()], kind)
        x = np.concatenate([numbers.sample(kind, runs, length), worst])
    low, high = function.domain
    wide = numbers.wide(x)
    return [x[~((wide < low) | (wide > high))]]


def tested(
    function: Function, dtype: str, levels: Iterable[str], folder: Path, runs: tuple[int, int]
) -> dict[str, Found]:
    """Judge the results of kernels, by level, for so many runs of so many neighbours."""
    operands = inputs(function, dtype, *runs)
    exact = numbers.exactly(function.exact, operands)
    as_zeros = _with_denormals_as_zeros(function, operands, exact)
    found: dict[str, Found] = {}
    made = kernels.by_code(function, dtype, operands[0].size, levels, folder)
    for level, kernel in made.items():
        results = np.empty_like(operands[0])
        for flushes in (True, False):
            with judge.denormals(flushes):
                kernel.write(operands, [results])
            error = numbers.errors(results, *exact)
            if flushes:
                error = np.minimum(error, numbers.errors(results, *as_zeros))
                if function.arity > 1:  # libm's functions of two numbers rely on denormals
                    error[_are_denormal(operands).any(axis=0)] = 0
            own = judged(function, operands, results, exact[0], error)
            found[level if flushes else level + GRADUAL] = own
    return found


def _with_denormals_as_zeros(
    function: Function, operands: Sequence[np.ndarray], exact: Sequence[np.ndarray]
) -> Sequence[np.ndarray]:
    """Return what is exact where denormals are taken for zeros; those of half never are."""
    dtype = operands[0].dtype
    if dtype == np.float16:
        return exact
    are_small = _are_denormal(operands)
    where = np.flatnonzero(np.any(are_small, axis=0))
    zeros = [np.where(s, np.copysign(dtype.type(0), x), x)[where]
             for s, x in zip(are_small, operands, strict=True)]  # fmt: skip
    parts = [part.copy() for part in exact]
    for part, value in zip(parts, numbers.exactly(function.exact, zeros), strict=True):
        part[where] = value
    return parts


def _are_denormal(operands: Sequence[np.ndarray]) -> np.ndarray:
    least = 2.0 ** numbers.format_of(operands[0].dtype)[1]
    return np.array([np.abs(numbers.wide(x)) < least for x in operands])


def judged(
    function: Function,
    operands: Sequence[np.ndarray],
    results: np.ndarray,
    exact: np.ndarray,
    error: np.ndarray,
) -> Found:
    """Return what is to be said of results whose errors are known."""
    worst = int(np.argmax(error))
    given = results.astype(np.float64)
    outside = np.flatnonzero((given < function.low) | (given > function.high))
    zeros = (exact == 0) & (given == 0)
    found = Found(
        inputs=results.size,
        error=float(error[worst]),
        error_at=_at(operands, worst),
        outside=outside.size,
        outside_at=_at(operands, outside[0]) if outside.size else 0.0,
        signs=int((zeros & (np.signbit(exact) != np.signbit(given))).sum()),
    )
    if function.arity == 1:
        _look_back(function, operands[0], results, found)
    return found


def _at(operands: Sequence[np.ndarray], index: int) -> float | list[float]:
    place = [float(x[index]) for x in operands]
    return place[0] if len(place) == 1 else place


def _look_back(function: Function, x: np.ndarray, results: np.ndarray, found: Found) -> None:
    wide = numbers.wide(x)
    order = np.argsort(wide, kind="stable")  # NaNs are at the end
    inputs, at = wide[order], numbers.places(results[order])
    for low, high, direction in function.pieces:
        begin, end = np.searchsorted(inputs, low), np.searchsorted(inputs, high, "right")
        back = -np.diff(at[begin:end]) * direction
        found.back += int((back > 0).sum())
        if back.size and (most := int(back.max())) > found.back_most:
            found.back_most = most
            found.back_at = float(inputs[begin + int(np.argmax(back))])
