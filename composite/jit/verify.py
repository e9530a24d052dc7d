"""Compares a new kernel with the expansion, before anybody is given its results.

Floating outputs are held against the expansion computed in float64, within the bounds of `bounds`,
on ordinary inputs and on those of `adversarial`; infinities and NaNs stand where the expansion has
them. The rest must be equal. Inputs and outputs lie at addresses with no alignment but that of an
element, and outputs between guards, so a kernel that assumes more or writes outside is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite import functions
from composite.jit import adversarial, bounds, evaluate, native_kernel

Array = np.ndarray[Any, Any]

_GUARD = 32  # elements


class Accuracy(NamedTuple):
    """How near a kernel was to its expansion on all inputs of its check."""

    error: float  # the largest, to two digits; 0 when every output was equal
    unit: str
    same_bits: bool  # whether every output had the expansion's bits


class Mismatch(Exception):  # noqa: N818 - the verdict on a kernel
    """The kernel does not compute what the expansion does; the message says how far off."""


def check(
    library: Path,
    name: str,
    expansions: Callable[[Sequence[tuple[int, ...]]], Any],
    cases: Sequence[Sequence[tuple[int, ...]]],
) -> Accuracy:
    """Runs the kernel on ordinary inputs of each case's shapes, on adversarial ones of the last's.

    `expansions(shapes)` gives the expansion (a FunctionDefLibrary) for exact shapes.
    Mismatch when an output is wrong.
    """
    worst, same_bits, referred = 0.0, True, True
    for number, shapes in enumerate(cases):
        source = _Source(functions.body(expansions(shapes)))
        last = number == len(cases) - 1
        dtypes = source.body.input_dtypes
        for draw in adversarial.draws(dtypes, shapes, number, all_kinds=last):
            inputs = [bounds.unaligned(x) for x in draw.arrays]
            expected = source.run(inputs)
            exact = source.reference(inputs, expected)
            found = run_kernel(library, name, inputs, expected)
            for i, outputs in enumerate(zip(found, expected, exact, strict=True)):
                what = f"output {i} of {list(shapes)}, {draw.kind},"
                worst = max(worst, _compare(what, *outputs, draw))
                same_bits = same_bits and outputs[0].tobytes() == outputs[1].tobytes()
        referred = referred and source.double is not None
    unit = "|y| against float64" if referred else "|y| against the expansion"
    return Accuracy(float(f"{worst:.2g}"), unit, same_bits)


class _Source:
    """An expansion for exact shapes, and the same in float64."""

    def __init__(self, body: functions.Body) -> None:
        self.body = body
        # None where an op has no float64 kernel: then the expansion is its own reference.
        self.double: functions.Body | None = functions.in_double(body)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        return [y.numpy() for y in evaluate.evaluate(self.body, inputs)]

    def reference(self, inputs: Sequence[Array], expected: Sequence[Array]) -> list[Array]:
        """The outputs computed in float64."""
        if self.double is None or not any(d.is_floating for d in self.body.input_dtypes):
            return list(expected)
        wide = [x.astype(np.float64) if bounds.is_floating(x) else x for x in inputs]
        try:
            return [y.numpy() for y in evaluate.evaluate(self.double, wide)]
        except (tf.errors.OpError, TypeError, ValueError):
            self.double = None
            return list(expected)


def run_kernel(
    library: Path, name: str, inputs: Sequence[Array], like: Sequence[Array], threads: int = 1
) -> list[Array]:
    """The outputs of a kernel, which are like the arrays of `like`, by a team of threads.

    Mismatch when it writes outside of them, RuntimeError when it refuses its arguments.
    """
    rooms = [np.full(y.size + 2 * _GUARD + 1, 77, y.dtype) for y in like]
    outputs = [
        room[_GUARD + 1 : _GUARD + 1 + y.size].reshape(y.shape)
        for room, y in zip(rooms, like, strict=True)
    ]
    with native_kernel.opened(library, name, threads) as kernel:
        kernel([*inputs, *outputs])
    for room, y in zip(rooms, like, strict=True):
        guards = np.concatenate([room[: _GUARD + 1], room[_GUARD + 1 + y.size :]])
        if (guards != np.full(1, 77, y.dtype)).any():
            raise Mismatch("the kernel wrote outside its output")
    return outputs


_ORDINARY = adversarial.Draw("", [])


def _compare(
    what: str,
    kernel: Array,
    expansion: Array,
    exact: Array,
    draw: adversarial.Draw = _ORDINARY,
) -> float:
    """The kernel's error, as a part of |y|. Mismatch when it is more than allowed."""
    if kernel.size == 0:
        return 0.0
    if not bounds.is_floating(kernel):
        other = kernel != expansion
        if draw.denormal:
            other &= kernel != exact
        if other.any():
            raise Mismatch(f"{what} differs in {np.count_nonzero(other)} elements")
        return 0.0
    exact = bounds.in_range(exact, kernel.dtype)
    _compare_places(what, kernel, expansion, exact, draw)
    error = _error(kernel, exact)
    allowed = bounds.allowed(_error(expansion, exact), expansion.dtype)
    if error > allowed:
        raise Mismatch(f"{what} is off by {error:.2g} of |y|; {allowed:.2g} is allowed")
    return error


def _compare_places(
    what: str, kernel: Array, expansion: Array, exact: Array, draw: adversarial.Draw
) -> None:
    """Mismatch unless infinities and NaNs stand where the expansion has them."""
    other = np.isfinite(kernel) != np.isfinite(expansion)
    if not draw.special:
        # The expansion overflows on its way to a number; the kernel is held to that number.
        other &= ~(np.isfinite(kernel) & np.isfinite(exact))
    if draw.denormal:
        other &= np.isfinite(kernel) != np.isfinite(exact)
    if other.any():
        raise Mismatch(f"{what} has infinities or NaNs in other places")
    both = ~np.isfinite(kernel) & ~np.isfinite(expansion)
    # Of ordinary numbers, which one it is may depend on the order of a sum.
    if draw.special and not np.array_equal(kernel[both], expansion[both], equal_nan=True):
        raise Mismatch(f"{what} has an infinity for another or for a NaN")


def _error(found: Array, exact: Array) -> float:
    both = np.isfinite(found) & np.isfinite(exact)
    return float(np.max(bounds.errors(found[both], exact[both]), initial=0.0))
