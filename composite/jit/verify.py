"""Compares a new kernel with the expansion, before anybody is given its results.

Floating outputs are held against the expansion computed in float64, within the bounds of `bounds`.
The rest must be equal. Inputs and outputs lie at addresses with no alignment but an element's, and
outputs between guards, so a kernel that assumes more or writes outside is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from composite import functions
from composite.jit import bounds, evaluate, native_kernel

Array = np.ndarray[Any, Any]

_GUARD = 32  # elements


class Mismatch(Exception):  # noqa: N818 - the verdict on a kernel
    """The kernel does not compute what the expansion does; the message says how far off."""


def check(
    library: Path,
    name: str,
    expansions: Callable[[Sequence[tuple[int, ...]]], Any],
    cases: Sequence[Sequence[tuple[int, ...]]],
    packed: Sequence[native_kernel.PackedArgument] = (),
) -> str:
    """Runs the kernel on random inputs of each case's shapes. Returns the error bound found.

    `expansions(shapes)` gives the expansion (a FunctionDefLibrary) for exact shapes; `packed` is
    what the kernel takes after its outputs.
    Mismatch when an output is wrong.
    """
    worst = 0.0
    for number, shapes in enumerate(cases):
        source = functions.body(expansions(shapes))
        inputs = _inputs(source, shapes, np.random.default_rng(number))
        expected = _run(source, inputs)
        reference = _reference(source, inputs, expected)
        found = run_kernel(library, name, inputs, expected, packed=packed)
        for i, (kernel, ours, exact) in enumerate(zip(found, expected, reference, strict=True)):
            worst = max(worst, _compare(f"output {i} of {list(shapes)}", kernel, ours, exact))
    return f"{worst:.2g} of |y| against float64" if worst else "equal to the expansion"


def _inputs(
    source: functions.Body, shapes: Sequence[tuple[int, ...]], random: np.random.Generator
) -> list[Array]:
    return [
        bounds.unaligned(_draw(dtype, shape, random))
        for dtype, shape in zip(source.input_dtypes, shapes, strict=True)
    ]


def _draw(dtype: tf.DType, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    if dtype.is_floating:
        return random.standard_normal(shape).astype(dtype.as_numpy_dtype)
    # 0 and 1 are in range wherever an integer is an index, a flag or a count.
    return random.integers(0, 2, shape).astype(dtype.as_numpy_dtype)


def _run(source: functions.Body, inputs: Sequence[Array]) -> list[Array]:
    return [y.numpy() for y in evaluate.evaluate(source, inputs)]


def _reference(
    source: functions.Body, inputs: Sequence[Array], expected: Sequence[Array]
) -> list[Array]:
    """The expansion's outputs computed in float64; its own where an op has no float64 kernel."""
    if not any(dtype.is_floating for dtype in source.output_dtypes):
        return list(expected)
    try:
        double = functions.in_double(source)
        wide = [x.astype(np.float64) if bounds.is_floating(x) else x for x in inputs]
        return _run(double, wide)
    except (tf.errors.OpError, TypeError, ValueError):
        return list(expected)


def run_kernel(  # noqa: PLR0913 - a kernel and all that it is called with
    library: Path,
    name: str,
    inputs: Sequence[Array],
    like: Sequence[Array],
    threads: int = 1,
    *,
    packed: Sequence[native_kernel.PackedArgument] = (),
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
        kernel([*inputs, *outputs, *kernel.packed(inputs, packed)])
    for room, y in zip(rooms, like, strict=True):
        guards = np.concatenate([room[: _GUARD + 1], room[_GUARD + 1 + y.size :]])
        if (guards != np.full(1, 77, y.dtype)).any():
            raise Mismatch("the kernel wrote outside its output")
    return outputs


def _compare(what: str, kernel: Array, expansion: Array, exact: Array) -> float:
    """The kernel's error, as a part of |y|. Mismatch when it is more than allowed."""
    if kernel.size == 0:
        return 0.0
    if not bounds.is_floating(kernel):
        if not np.array_equal(kernel, expansion):
            raise Mismatch(f"{what} differs in {np.count_nonzero(kernel != expansion)} elements")
        return 0.0
    error = _error(what, kernel, exact)
    allowed = bounds.allowed(_error(what, expansion, exact), expansion.dtype)
    if error > allowed:
        raise Mismatch(f"{what} is off by {error:.2g} of |y|; {allowed:.2g} is allowed")
    return error


def _error(what: str, found: Array, exact: Array) -> float:
    if not np.array_equal(np.isfinite(found), np.isfinite(exact)):
        raise Mismatch(f"{what} has infinities or NaNs in other places")
    return float(np.max(bounds.errors(found, exact), initial=0.0))
