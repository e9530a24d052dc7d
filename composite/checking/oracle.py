"""The Python function of an op, run eagerly: what every other way of running it is held to.

Not for: the ways themselves (ways.py), tolerances (compare.py).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.binding import settings
from composite.checking import variables
from composite.checking.compare import Closeness, Difference, Reruns, compare
from composite.checking.sample import Sample, output_dtypes
from composite.checking.traced import Traced, in_double, moved, traced, undetermined
from composite.ops import call
from composite.ops.op import DecoratedOp

Array = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run gave: output arrays, or the error that it raised."""

    values: list[Array]
    error: Exception | None = None

    @property
    def told(self) -> str:
        """The error in one line; "" where there is none."""
        if self.error is None:
            return ""
        message = getattr(self.error, "message", None) or str(self.error)
        return f"{type(self.error).__name__}: {_line(message)}"


def _line(message: str) -> str:
    """The line of a message that says what is wrong: the last, if the first announces a trace."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines or lines[0] not in ("in user code:", "Graph execution error:"):
        return lines[0] if lines else ""
    return next((line for line in reversed(lines) if not line.startswith("[[")), lines[0])


def outcome(function: Callable[[], Any]) -> Outcome:
    """Runs a call; its result flattened to arrays."""
    try:
        return Outcome([as_array(value) for value in flat(function())])
    except Exception as error:  # noqa: BLE001 - a body may raise anything
        return Outcome([], error)


def flat(result: Any) -> list[Any]:
    """The tensors of a result; an op without outputs gives None."""
    return [] if result is None else list(tf.nest.flatten(result))


def as_array(value: Any) -> Array:
    """The value of an eager tensor; a gradient that is sliced is made dense."""
    return np.asarray(tf.convert_to_tensor(value).numpy())


class Case:
    """A sample with what Python makes of it, computed when it is first asked for.

    `function` stands in for the op's Python function.
    """

    def __init__(
        self, op: DecoratedOp, sample: Sample, function: Callable[..., Any] | None = None
    ) -> None:
        self.op = op
        self.sample = sample
        self._function = function or op.python_function
        self.dtypes = output_dtypes(op.schema, sample)

    def python(self, inputs: Sequence[Any]) -> list[Any]:
        """The Python function on tensors of this sample's structure: its outputs, flat.

        A number that it returns is an output of the declared dtype. ValueError for a result of
        another structure.
        """
        # Attributes stand in the order of the declaration, which may not be the OpDef's.
        attrs = {spec.name: self.sample.attrs[spec.name] for spec in self.op.schema.attrs}
        eager = tf.executing_eagerly()
        function = self._function if eager else _for_graphs(self._function)
        call.forget_scalars()
        with settings.options(backend="tf"):  # composites in it are held to their ops as well
            values = flat(function(*variables.handles(inputs), **attrs))
        if len(values) != len(self.dtypes):
            raise ValueError(f"{len(values)} results for {len(self.dtypes)} outputs")
        return [
            value if tf.is_tensor(value) else tf.convert_to_tensor(value, dtype)
            for value, dtype in zip(values, self.dtypes, strict=True)
        ]

    @functools.cached_property
    def expected(self) -> Outcome:
        """What the Python function gives, and leaves in variables."""
        return outcome(lambda: variables.results(self.python, self.sample.tensors()))

    @functools.cached_property
    def names(self) -> list[str]:
        """What the expected values are, for people."""
        names = [f"output {index}" for index in range(len(self.dtypes))]
        for position in sorted(self.sample.variables):
            name, held = self.op.schema.inputs[position].name, self.sample.inputs[position]
            each = [f"{name}[{k}]" for k in range(len(held))] if isinstance(held, list) else [name]
            names += [f"after the call, the variable {one!r}" for one in each]
        return names

    @functools.cached_property
    def graph(self) -> Traced | None:
        """The Python function as a graph; None where it has none, as with variables."""
        if self.sample.variables:
            return None
        return traced(
            lambda *flat: self.python(self.sample.rebuilt(flat)), list(self.sample.arrays())
        )

    def reference(self) -> list[Array]:
        """The Python function computed in float64; `expected` where that cannot be."""
        return in_double(self.graph, self.expected.values)

    @property
    def reruns(self) -> Reruns:
        """What rounding makes of the Python function's results."""
        return Reruns(
            lambda: runs(
                self.sample.nearby(), lambda near: variables.results(self.python, near.tensors())
            ),
            lambda: moved(self.graph),
            lambda: undetermined(self.graph),
        )

    def agree(self, found: Outcome) -> Closeness:
        """Compares a run with Python's. Two errors agree, whatever they are called."""
        if self.expected.error is not None and found.error is not None:
            return Closeness()
        if found.error is not None:
            raise Difference(f"it raises {found.told}, and the Python function does not")
        if self.expected.error is not None:
            raise Difference(f"it gives a result, and the Python function raises "
                             f"{self.expected.told}")  # fmt: skip
        return self.compared(found, self.expected)

    def compared(self, found: Outcome, expected: Outcome) -> Closeness:
        """Compares two runs that raised nothing, by what rounding does to the Python function."""
        return compare(found.values, expected.values, self.reference, self.reruns, self.names)


def writes_variables(case: Case) -> bool:
    """Whether the call leaves anything else in a variable than it found there."""
    arrays = zip(case.sample.arrays(), case.sample.of_variables(), strict=True)
    before = [array for array, is_variable in arrays if is_variable]
    after = case.expected.values[len(case.dtypes) :]
    return any(a.tobytes() != b.tobytes() for a, b in zip(before, after, strict=True))


@functools.lru_cache(maxsize=64)
def _for_graphs(function: Callable[..., Any]) -> Callable[..., Any]:
    """A Python function as tf.function runs it: tensors may decide its branches and loops."""
    try:
        converted: Callable[..., Any] = tf.autograph.to_graph(function)
    except Exception:  # noqa: BLE001 - one without source, or with what AutoGraph does not know
        return function
    return converted


def runs(samples: Iterable[Sample], function: Callable[[Sample], Any]) -> Iterator[list[Array]]:
    """What a function gives for samples, where it raises nothing."""
    for sample in samples:
        result = outcome(functools.partial(function, sample))
        if result.error is None:
            yield result.values
