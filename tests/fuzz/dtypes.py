"""The dtype and shape of an expression: what is known of it without the values of tensors.

They follow from dtypes and ranks. So the expression is traced with tensors of these of which no dim
is known, where shapes that do not fit are no error; some dims of the result are known all the same:
two rows that are stacked are two.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import tensorflow as tf

_Told = Callable[[], tf.TensorSpec | None]


class Known:
    """What is known of the tensors of a run."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[tf.Tensor, _Told]] = {}  # by id; the tensors live as long

    def remember(self, value: Any, expression: Callable[[], Any]) -> None:
        """Notes that `lambda: ...` made a value of what its names are now, and is none of these."""
        if _is_eager(value) and id(value) not in self._of and not _is_given(value, expression):
            self._of[id(value)] = value, self.later(expression)

    def later(self, expression: Callable[[], Any]) -> _Told:
        """Tells the dtype and shape of the tensor that a `lambda: ...` makes of its names.

        None if it makes no tensor, or needs a value. Names stand for tensors, for values that have
        a `known` spec only, and for lists of them.
        """
        try:
            cells = [cell.cell_contents for cell in expression.__closure__ or ()]
        except ValueError:  # a name without a value
            return lambda: None
        return functools.cache(lambda: self._spec_of(expression, cells))

    def _spec_of(self, expression: Callable[[], Any], cells: list[Any]) -> tf.TensorSpec | None:
        of_cells = tf.nest.map_structure(self._spec, cells)
        specs = [one for one in tf.nest.flatten(of_cells) if one is not None]

        def traced(*tensors: Any) -> Any:
            given = iter(tensors)
            fill = lambda value, spec: value if spec is None else next(given)  # noqa: E731
            return _with_cells(expression, tf.nest.map_structure(fill, cells, of_cells))()

        try:
            concrete = tf.function(traced, autograph=False).get_concrete_function(*specs)
        except Exception:  # noqa: BLE001 - it asks for more than dtypes, or raises for any values
            return None
        result = concrete.structured_outputs
        return tf.TensorSpec(result.shape, result.dtype) if hasattr(result, "dtype") else None

    def _spec(self, value: Any) -> tf.TensorSpec | None:
        if not tf.is_tensor(value):
            return getattr(value, "known", None)
        if not _is_eager(value):
            return tf.TensorSpec(value.shape, value.dtype)
        told = self._of[id(value)][1]() if id(value) in self._of else None
        return told or tf.TensorSpec([None] * value.shape.rank, value.dtype)


class Dims(tuple[Any, ...]):
    """The shape of a traced tensor: its dims are numbers, or scalar tensors that only a run knows.

    With these, what a shape that does not depend on them has of known dims is found.
    """

    @property
    def rank(self) -> int:
        return len(self)


def shape(value: Any) -> Any:
    """`value.shape`, in a trace with the dims that only a run knows."""
    static = value.shape
    if not tf.is_tensor(value) or _is_eager(value) or static.rank is None:
        return static
    dims = tf.shape(value)
    return Dims(dims[n] if dim is None else dim for n, dim in enumerate(static))


def _is_eager(value: Any) -> bool:
    return tf.is_tensor(value) and hasattr(value, "numpy")


def _is_given(value: Any, expression: Callable[[], Any]) -> bool:
    """Whether an expression gives back what one of its names stands for."""
    cells = [cell.cell_contents for cell in expression.__closure__ or ()]
    return any(one is value for one in tf.nest.flatten(cells))


def _with_cells(function: Any, values: list[Any]) -> Callable[[], Any]:
    cells = tuple(map(types.CellType, values))
    return types.FunctionType(function.__code__, function.__globals__, closure=cells)
