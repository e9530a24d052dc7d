"""The gradient of an op, beside that of its Python function and beside numeric differences.

Both are pulled back from the same random gradients of the outputs, and at second order once more
from a direction. No gradient and a gradient of zeros are the same.

Not for: how differences are taken (differences.py), and orders above the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.binding import settings
from composite.checking import differences
from composite.checking import traced as tracing
from composite.checking.compare import Closeness, Difference, Reruns, compare
from composite.checking.oracle import (
    Case,
    Outcome,
    as_array,
    outcome,
    runs,
)
from composite.checking.sample import Sample
from composite.checking.skipped import Skipped

Array = np.ndarray[Any, Any]


def derived(case: Case) -> Closeness:
    """The op's gradient in a traced step beside the gradient of the Python function.

    There the forward keeps values for it. The gradients of the other ways are eager calls'.
    """
    require_floats(case)
    with settings.options(backend="tf"):
        found = outcome(lambda: traced(case))
    return agree(case, found)


def agree(case: Case, found: Outcome) -> Closeness:
    """Compares gradients that were computed in some way with those of the Python function."""
    expected = outcome(lambda: _gradients(case, case.python, case.sample))
    if expected.error is not None and found.error is not None:
        return Closeness()
    if found.error is not None:
        _require_not_refused(case, found)
        _require_traced(case)
        raise Difference(f"it raises {found.told}, and the Python function's gradient does not")
    if expected.error is not None:
        raise Difference(f"the gradient of the Python function raises {expected.told}")

    graph = None
    if not case.sample.variables:
        graph = tracing.traced(_of_flat(case, case.python), list(case.sample.arrays()))
    reruns = Reruns(
        lambda: runs(case.sample.nearby(), lambda near: _gradients(case, case.python, near)),
        lambda: tracing.moved(graph),
        lambda: tracing.undetermined(graph),
    )
    return compare(
        found.values, expected.values, lambda: tracing.in_double(graph, expected.values), reruns
    )


def numeric(case: Case) -> Closeness:
    """The op's gradient beside central differences of the Python function, in float64."""
    wide = _finite(case)
    with settings.options(backend="tf"):
        found = outcome(lambda: _gradients(wide, _op(wide), wide.sample))
    own = outcome(lambda: _gradients(wide, wide.python, wide.sample))
    if found.error is not None or own.error is not None:
        raise Skipped(f"no gradient: {found.told or own.told}")
    return differences.agree(
        found.values, own.values, lambda arrays: _total(wide, arrays), list(wide.sample.arrays())
    )


def second(case: Case) -> Closeness:
    """The gradient of the op's gradient beside the Python function's, and central differences.

    The differences are of the op's own gradient; both are along one random direction.
    """
    wide = _finite(case)
    own = outcome(lambda: _second(wide, wide.python))
    with settings.options(backend="tf"):
        found = outcome(lambda: _second(wide, _op(wide)))
    if own.error is not None:
        raise Skipped(f"no second gradient: {own.told}")
    if found.error is not None:
        _require_not_refused(wide, found)
        _require_traced(wide)
        raise Difference(
            f"it raises {found.told}, and the Python function's second gradient does not"
        )
    if not all(np.isfinite(x).all() for x in own.values):
        raise Skipped("not finite")
    same = differences.same(found.values, own.values)

    def total(arrays: Sequence[Array]) -> float:
        inputs = wide.sample.tensors(arrays)
        with settings.options(backend="tf"):
            slopes = outcome(lambda: _along(_pulled_back(_op(wide), inputs, iter(_seeds(wide)))))
        return float("nan") if slopes.error is not None else float(slopes.values[0])

    arrays = list(wide.sample.arrays())
    return same.worse(differences.agree(found.values, own.values, total, arrays))


def _require_not_refused(case: Case, found: Outcome) -> None:
    """A derived gradient is refused where it needs a variable as it was before the body wrote."""
    if case.sample.variables and isinstance(found.error, LookupError):
        raise Skipped(f"no gradient: {found.told}")


def _finite(case: Case) -> Case:
    """The case in float64. Skipped where it has no numbers to take differences of."""
    require_floats(case)
    wide = Case(case.op, _widened(case))
    if wide.expected.error is not None:
        raise Skipped("the call raises")
    if not all(np.isfinite(x).all() for x in [*wide.sample.arrays(), *wide.expected.values]):
        raise Skipped("not finite")
    return wide


def _second(case: Case, function: Callable[[Any], Any]) -> list[Any]:
    return _pulled_back(
        lambda inputs: [_along(_pulled_back(function, inputs, iter(_seeds(case))))],
        case.sample.tensors(),
        [tf.constant(1.0, tf.float64)],
    )


def _along(gradients: Sequence[Any]) -> Any:
    """The derivative in a direction: one number, in float64."""
    random = np.random.default_rng(2)
    parts = [
        tf.reduce_sum(tf.cast(g, tf.float64) * random.uniform(0.5, 1.5, g.shape)) for g in gradients
    ]
    return tf.add_n(parts)


def _op(case: Case) -> Callable[[Sequence[Any]], Any]:
    return lambda inputs: case.op(*inputs, **case.sample.attrs)


def require_floats(case: Case) -> None:
    """Skipped where there is nothing to differentiate."""
    if case.expected.error is not None:
        raise Skipped("the call raises")
    dtypes = [tf.as_dtype(x.dtype) for x in case.sample.arrays()]
    if not any(d.is_floating for d in dtypes) or not any(d.is_floating for d in case.dtypes):
        raise Skipped("nothing floating to differentiate")


def _seeds(case: Case) -> list[Any]:
    """A gradient for each floating output: fixed, and different in every element."""
    random = np.random.default_rng(0)
    seeds = []
    for value in case.expected.values[: len(case.dtypes)]:  # behind them, what variables hold
        dtype = tf.as_dtype(value.dtype)
        if dtype.is_floating:
            seeds.append(tf.constant(random.uniform(0.5, 1.5, value.shape), dtype))
    return seeds


def _gradients(case: Case, function: Callable[[Any], Any], sample: Sample) -> list[Any]:
    with settings.options(backend="tf"):
        return _pulled_back(function, sample.tensors(), iter(_seeds(case)))


def traced(case: Case) -> list[Any]:
    """The op's gradients in a traced step."""
    return _traced(case, _op(case))


def _traced(case: Case, function: Callable[[Any], Any]) -> list[Any]:
    inputs = tf.nest.flatten(case.sample.tensors())
    found: list[Any] = tf.function(_of_flat(case, function), autograph=False)(*inputs)
    return found


def _require_traced(case: Case) -> None:
    """Skipped where the Python function has an eager gradient alone.

    TensorFlow's gradient of MatrixDiagPartV3 raises in graphs with unknown dims, for one.
    """
    own = outcome(lambda: _traced(case, case.python))
    if own.error is not None:
        raise Skipped(f"TensorFlow has no gradient in a graph: {own.told}")


def _of_flat(case: Case, function: Callable[[Any], Any]) -> Callable[..., list[Any]]:
    """The gradients as a function of the case's tensors, lists flattened."""
    return lambda *flat: _pulled_back(function, case.sample.rebuilt(flat), iter(_seeds(case)))


def _pulled_back(function: Callable[[Any], Any], inputs: Any, seeds: Any) -> list[Any]:
    """The gradient of each floating input, in order, variables too; zeros where there is none."""
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


def _total(case: Case, arrays: Sequence[Array]) -> float:
    """The floating outputs, weighed by their gradients and summed."""
    outputs: Outcome = outcome(lambda: case.python(case.sample.tensors(arrays)))
    if outputs.error is not None:
        return float("nan")
    floats = [y for y in outputs.values if tf.as_dtype(y.dtype).is_floating]
    seeds = [as_array(s) for s in _seeds(case)]
    with np.errstate(over="ignore"):  # there is no difference of infinities then
        return float(sum(float(np.sum(y * s)) for y, s in zip(floats, seeds, strict=True)))
