"""`composite.accelerate`: a function with regions beside the one without, and which one runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.acceleration import graph
from composite.acceleration.report import AccelerationReport, Deviation
from composite.binding import settings
from composite.jit import worker

# The runtime knows functions that get regions by their names (composite/runtime/regions).
_NAME = "composite_accelerated_"
_ROUNDS = 25
_BUDGET = 2.0  # seconds of timed runs of each function, roughly
_WARM = 12  # calls in which nodes ask for their kernels

Array = np.ndarray[Any, Any]


class Accelerated:
    """A function with regions; calling it calls whichever was measured to be faster.

    Attributes:
        report: what was found, compared and measured.
        function: the tf.function that is called: with regions, or the original's.
    """

    def __init__(self, function: Any, report: AccelerationReport) -> None:
        """Made by `composite.accelerate`."""
        self.function = function
        self.report = report

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function as the original is called."""
        return self.function(*args, **kwargs)


def accelerate(
    function: Callable[..., Any],
    *inputs: Any,
    rtol: float | None = None,
    timeout: float | None = None,
) -> Accelerated:
    """Gives parts of a function's graph kernels, where that makes it faster.

    No composite has to be written: regions of TensorFlow's own ops become nodes, each of which has
    a kernel where one covers it and was measured to be no slower. The function is run on `inputs`
    without and with regions; the results are compared and both are timed.

    Args:
        function: a Python function, a tf.function, or a Keras model, which is called for
            inference. What it returns must follow from its inputs and its variables.
        *inputs: the arguments of one call, as large as calls will be. Of a Keras model they may be
            left out: eight rows are drawn then, integers as 0 and 1.
        rtol: how far results may be from those without regions, as a part of the largest |y| of the
            output: 1e-3 by default, 5e-2 where the output has 16 bits.
        timeout: seconds to wait for kernels at most; those that come later are used all the same.

    Returns:
        An Accelerated, which is called as `function` is. It runs the original where regions change
        results by more than `rtol` or gain nothing; `print` its `report`.

    Raises:
        TypeError: if `function` is not callable.
        ValueError: without inputs, unless a Keras model tells them.
    """
    if not callable(function):
        raise TypeError(f"composite.accelerate takes a function or a model, not {function!r}")
    given = list(inputs) or _drawn(function)
    call = _inference(function)
    original, regions = _traced(call, "original_"), _traced(call, _NAME)
    with settings.options(regions=False):
        wanted = _flat(original(*given))
    worker.start()
    found = _flat(regions(*given))
    for _ in range(_WARM):
        regions(*given)
    is_complete = worker.wait(timeout)
    found = _flat(regions(*given))
    deviation = _deviation(found, wanted, rtol)
    times = _times([original, regions], given)
    report = AccelerationReport(
        name=_name(function),
        partition=graph.partition(regions.get_concrete_function(*given)),
        deviation=deviation,
        original_us=1e6 * times[0],
        accelerated_us=1e6 * times[1],
        is_complete=is_complete,
    )
    return Accelerated(regions if report.is_gain else original, report)


def _name(function: Any) -> str:
    return str(getattr(function, "name", None) or getattr(function, "__name__", "function"))


def _inference(function: Any) -> Callable[..., Any]:
    """What is called: a Keras model's inference, any other function as it is."""
    if not isinstance(function, tf.keras.Model):
        return function

    def infer(*args: Any) -> Any:
        return function(*args, training=False)

    return infer


def _traced(call: Callable[..., Any], prefix: str) -> Any:
    def traced(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    traced.__name__ = prefix + _name(call)
    return tf.function(traced)


def _drawn(model: Any) -> list[Any]:
    """One call of a Keras model, drawn."""
    if not isinstance(model, tf.keras.Model) or not model.built:
        raise ValueError("composite.accelerate needs the inputs of one call of the function")
    random = np.random.default_rng(0)

    def draw(tensor: Any) -> Any:
        shape = [8 if size is None else size for size in tensor.shape]
        dtype = tf.as_dtype(tensor.dtype)
        drawn = random.random(shape) if dtype.is_floating else random.integers(0, 2, shape)
        return tf.cast(drawn, dtype)

    return [tf.nest.map_structure(draw, model.input)]


def _flat(result: Any) -> list[Array]:
    return [np.asarray(tensor) for tensor in tf.nest.flatten(result)]


def _deviation(found: Sequence[Array], wanted: Sequence[Array], rtol: float | None) -> Deviation:
    """The output that is furthest from what it was, in units of its bound."""
    worst = Deviation(0, 0.0, 1e-3 if rtol is None else rtol)
    for index, (y, z) in enumerate(zip(found, wanted, strict=True)):
        if z.dtype.kind in "biuSUO":
            far, bound = float(not np.array_equal(y, z)), 0.0
        else:
            bound = rtol if rtol is not None else 5e-2 if z.dtype.itemsize == 2 else 1e-3
            far = _distance(y.astype(np.float64), z.astype(np.float64))
        if far > bound * (worst.distance / worst.bound if worst.bound else 0.0):
            worst = Deviation(index, far, bound)
    return worst


def _distance(y: Array, z: Array) -> float:
    """The largest |y - z| as a part of the largest |z|; infinite where NaNs or infinities do."""
    finite = np.isfinite(z)
    if not np.array_equal(y[~finite], z[~finite], equal_nan=True):
        return float("inf")
    y, z = y[finite], z[finite]
    if not np.isfinite(y).all():
        return float("inf")
    if not z.size:
        return 0.0
    return float(np.max(np.abs(y - z)) / max(np.max(np.abs(z)), np.finfo(np.float32).tiny))


def _times(functions: Sequence[Any], inputs: Sequence[Any]) -> list[float]:
    """The median seconds of a call of each function, in turns."""
    seconds: list[list[float]] = [[] for _ in functions]
    end = time.perf_counter() + _BUDGET * len(functions)
    while len(seconds[0]) < _ROUNDS or time.perf_counter() < end:
        for function, times in zip(functions, seconds, strict=True):
            start = time.perf_counter()
            result = function(*inputs)
            tf.nest.map_structure(lambda tensor: tensor.numpy(), result)
            times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in seconds]
