"""What judge.cc says of results."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_FLAGS = ("-std=c++17", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math",
          "-ffp-contract=off", "-fopenmp-simd", "-shared", "-fPIC")  # fmt: skip


class _Verdict(ctypes.Structure):
    _fields_ = (
        ("error", ctypes.c_double),
        ("error_at", ctypes.c_float),
        ("outside_at", ctypes.c_float),
        ("outside", ctypes.c_int64),
        ("signs", ctypes.c_int64),
    )


class _Steps(ctypes.Structure):
    _fields_ = (("count", ctypes.c_int64), ("most", ctypes.c_int64), ("at", ctypes.c_int64))


@dataclass
class Found:
    """What is known of the results of a function for some inputs.

    Attributes:
        inputs: How many there were.
        error: The largest error in units in the last place; infinite if NaN is where no NaN is
            to be, or the other way round.
        error_at: The input where it is, or the inputs.
        outside: Results outside of the function's range.
        outside_at: An input with such a result.
        signs: Zeros of the wrong sign.
        back: How often the function steps back between neighbouring inputs.
        back_most: The largest such step, in numbers of the dtype.
        back_at: The input where it is.
    """

    inputs: int = 0
    error: float = 0.0
    error_at: float | list[float] = 0.0
    outside: int = 0
    outside_at: float | list[float] = 0.0
    signs: int = 0
    back: int = 0
    back_most: int = 0
    back_at: float = 0.0

    def add(self, other: Found) -> None:
        """Take in what is known for other inputs."""
        self.inputs += other.inputs
        if other.error > self.error:
            self.error, self.error_at = other.error, other.error_at
        if not self.outside:
            self.outside_at = other.outside_at
        self.outside += other.outside
        self.signs += other.signs
        self.back += other.back
        if other.back_most > self.back_most:
            self.back_most, self.back_at = other.back_most, other.back_at


@functools.cache
def _library() -> Any:
    source = Path(__file__).parent / "judge.cc"
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "judge.so"
        subprocess.run(["g++", *_FLAGS, "-o", str(made), str(source), "-lmvec", "-lm"], check=True)
        library = ctypes.CDLL(str(made))
    library.Evaluate.restype = library.SetFlushes.restype = ctypes.c_bool
    return library


def _address(array: np.ndarray) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def evaluate(name: str, x: np.ndarray, exact: np.ndarray) -> None:
    """Write a function's values for float32 inputs, in float64."""
    assert x.dtype == np.float32 and exact.dtype == np.float64 and x.shape == exact.shape
    known = _library().Evaluate(name.encode(), _address(x), _address(exact), ctypes.c_int64(x.size))
    if not known:
        raise ValueError(f"judge.cc has no function {name}")


def judged(
    x: np.ndarray,
    exact: np.ndarray,
    results: np.ndarray,
    bounds: tuple[float, float],
    at_zero: float | None = None,
) -> Found:
    """Return what is to be said of float32 results, which ought to be within bounds.

    The results may also be those `at_zero`, if all inputs are denormals and taken for zeros.
    """
    if at_zero is not None and (results == np.float32(at_zero)).all():
        exact = np.full_like(exact, at_zero)
    verdict = _Verdict()
    low, high = map(ctypes.c_double, bounds)
    _library().Judge(
        _address(x), _address(exact), _address(results), ctypes.c_int64(x.size), low, high,
        ctypes.byref(verdict),
    )  # fmt: skip
    return Found(
        x.size, verdict.error, verdict.error_at, verdict.outside, verdict.outside_at, verdict.signs
    )


def steps_back(x: np.ndarray, results: np.ndarray, direction: int) -> Found:
    """Return where results of neighbouring inputs step back; inputs are in the order of bits."""
    steps = _Steps()
    count = ctypes.c_int64(results.size)
    _library().LookBack(_address(results), count, direction, ctypes.byref(steps))
    return Found(back=steps.count, back_most=steps.most, back_at=float(x[steps.at]))


@contextmanager
def denormals(flushes: bool) -> Iterator[None]:
    """Take denormals for zeros on this thread, as TensorFlow's threads do, or not."""
    before = _library().SetFlushes(flushes)
    yield
    _library().SetFlushes(before)
