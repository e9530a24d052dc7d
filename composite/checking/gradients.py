"""The gradient of an op, beside that of its Python function and beside numeric differences.

Both are pulled back from the same random gradients of the outputs. No gradient and a gradient of
zeros are the same.

Not for: gradients of gradients; TensorFlow makes those from the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite import settings
from composite.checking.compare import Closeness, Difference, compare
from composite.checking.oracle import Case, Outcome, as_array, in_double, outcome
from composite.checking.sample import Sample
from composite.checking.skipped import Skipped

Array = np.ndarray[Any, Any]

_STEP = 1e-5  # of central differences in float64: rounding and curvature weigh the same near here
_TOLERANCE = 1e-4
_ELEMENTS = 12  # of each input: two calls each


def derived(case: Case) -> Closeness:
    """The op's gradient beside the gradient of the Python function."""
    _require_floats(case)
    expected = outcome(lambda: _gradients(case, case.python, case.sample))
    with settings.options(backend="tf"):
        found = outcome(lambda: _gradients(case, _op(case), case.sample))
    if expected.error is not None and found.error is not None:
        return Closeness()
    if found.error is not None:
        raise Difference(f"it raises {found.told}, and the Python function's gradient does not")
    if expected.error is not None:
        raise Difference(f"the gradient of the Python function raises {expected.told}")

    def reference() -> list[Array]:
        def traced(*flat: Any) -> Any:
            seeds = iter(_seeds(case))
            return _pulled_back(case.python, case.sample.rebuilt(flat), seeds)

        return in_double(traced, list(case.sample.arrays()), expected.values)

    return compare(found.values, expected.values, reference)


def numeric(case: Case) -> Closeness:
    """The op's gradient beside central differences of the Python function, in float64."""
    _require_floats(case)
    sample = _widened(case)
    wide = Case(case.op, sample)
    if wide.expected.error is not None:
        raise Skipped("the call raises")
    if not all(np.isfinite(x).all() for x in [*sample.arrays(), *wide.expected.values]):
        raise Skipped("not finite")
    with settings.options(backend="tf"):
        found = outcome(lambda: _gradients(wide, _op(wide), sample))
    own = outcome(lambda: _gradients(wide, wide.python, sample))
    if found.error is not None or own.error is not None:
        raise Skipped(f"no gradient: {found.told or own.told}")
    worst = 0.0
    for position, at, slope, scale in _differences(wide):
        error = abs(float(found.values[position][at]) - slope) / scale
        if error <= _TOLERANCE:
            worst = max(worst, error)
        elif abs(float(own.values[position][at]) - slope) / scale <= _TOLERANCE:
            index = ", ".join(map(str, at))
            raise Difference(
                f"the gradient of input tensor {position} at [{index}] is "
                f"{found.values[position][at]}, and numeric differences give {slope}"
            )
        else:
            raise Skipped("the body's own gradient is not the numeric one (tf.stop_gradient?)")
    return Closeness(worst, _TOLERANCE)


def _op(case: Case) -> Callable[[Sequence[Any]], Any]:
    return lambda inputs: case.op(*inputs, **case.sample.attrs)


def _require_floats(case: Case) -> None:
    if case.expected.error is not None:
        raise Skipped("the call raises")
    dtypes = [tf.as_dtype(x.dtype) for x in case.sample.arrays()]
    if not any(d.is_floating for d in dtypes) or not any(d.is_floating for d in case.dtypes):
        raise Skipped("nothing floating to differentiate")


def _seeds(case: Case) -> list[Any]:
    """A gradient for each floating output: fixed, and different in every element."""
    random = np.random.default_rng(0)
    seeds = []
    for value in case.expected.values:
        dtype = tf.as_dtype(value.dtype)
        if dtype.is_floating:
            seeds.append(tf.constant(random.uniform(0.5, 1.5, value.shape), dtype))
    return seeds


def _gradients(case: Case, function: Callable[[Any], Any], sample: Sample) -> list[Any]:
    return _pulled_back(function, sample.tensors(), iter(_seeds(case)))


def _pulled_back(function: Callable[[Any], Any], inputs: Any, seeds: Any) -> list[Any]:
    """The gradient of each floating input tensor, in order; zeros where there is none."""
    watched = [x for x in tf.nest.flatten(inputs) if x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = [y for y in tf.nest.flatten(function(inputs)) if y.dtype.is_floating]
    return list(
        map(
            tf.convert_to_tensor,
            tape.gradient(
                outputs,
                watched,
                output_gradients=list(seeds),
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            ),
        )
    )


def _widened(case: Case) -> Sample:
    """The sample with its floating inputs in float64. Skipped where that is not declared."""
    wide = case.sample.replaced(case.sample.label, _as_double)
    try:
        Case(case.op, wide)
    except (TypeError, ValueError) as error:
        raise Skipped("float64 is not declared") from error
    return wide


def _as_double(array: Array) -> Array:
    return array.astype(np.float64) if tf.as_dtype(array.dtype).is_floating else array


def _differences(case: Case) -> Any:
    """For some elements of each floating input: its position, index, slope, and a scale.

    An element at which the slopes to its two sides differ has no derivative, and is left out.
    """
    arrays = list(case.sample.arrays())
    random = np.random.default_rng(1)
    floats = [i for i, x in enumerate(arrays) if tf.as_dtype(x.dtype).is_floating]
    middle = _total(case, arrays)
    for position, i in enumerate(floats):
        count = min(_ELEMENTS, arrays[i].size)
        for flat in random.choice(arrays[i].size, count, replace=False):
            at = tuple(int(k) for k in np.unravel_index(flat, arrays[i].shape))
            step = _STEP * max(1.0, abs(float(arrays[i][at])))
            sides = [_total(case, _moved(arrays, i, at, s)) for s in (step, -step)]
            right, left = (sides[0] - middle) / step, (middle - sides[1]) / step
            slope = (sides[0] - sides[1]) / (2 * step)
            # Below the sum's own rounding, a difference of sums says nothing.
            scale = max(1.0, abs(slope), abs(middle))
            if np.isfinite(slope) and abs(right - left) <= 1e-2 * scale:
                yield position, at, slope, scale


def _moved(arrays: Sequence[Array], i: int, at: tuple[int, ...], step: float) -> list[Array]:
    copy = arrays[i].copy()
    copy[at] += step
    return [*arrays[:i], copy, *arrays[i + 1 :]]


def _total(case: Case, arrays: Sequence[Array]) -> float:
    """The floating outputs, weighed by their gradients and summed."""
    outputs: Outcome = outcome(
        lambda: case.python(case.sample.rebuilt([tf.constant(x) for x in arrays]))
    )
    if outputs.error is not None:
        return float("nan")
    floats = [y for y in outputs.values if tf.as_dtype(y.dtype).is_floating]
    seeds = [as_array(s) for s in _seeds(case)]
    total = sum(float(np.sum(y.astype(np.float64) * s)) for y, s in zip(floats, seeds, strict=True))
    return float(total)
