"""The dtype and shape of an expression that raises: what is known of it without its value.

They follow from dtypes and ranks. So the expression is traced with tensors of these of which no dim
is known, where shapes that do not fit are no error; some dims of the result are known all the same:
two rows that are stacked are two.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import tensorflow as tf


def later(expression: Callable[[], Any]) -> Callable[[], tf.TensorSpec | None]:
    """Tells the dtype and shape of the tensor that a `lambda: ...` makes of what its names are now.

    None if it makes no tensor, or needs a value. Names stand for tensors, for values that have a
    `known` spec only, and for lists of them.
    """
    try:
        cells = [cell.cell_contents for cell in expression.__closure__ or ()]
    except ValueError:  # a name without a value
        return lambda: None
    return lambda: _spec_of(expression, cells)


def _spec_of(expression: Callable[[], Any], cells: list[Any]) -> tf.TensorSpec | None:
    specs: list[tf.TensorSpec] = []
    tf.nest.map_structure(lambda value: _add_spec(value, specs), cells)

    def traced(*tensors: Any) -> Any:
        given = iter(tensors)
        filled = tf.nest.map_structure(lambda v: v if _spec(v) is None else next(given), cells)
        return _with_cells(expression, filled)()

    try:
        concrete = tf.function(traced, autograph=False).get_concrete_function(*specs)
    except Exception:  # noqa: BLE001 - it asks for more than dtypes, or raises whatever it is given
        return None
    result = concrete.structured_outputs
    return tf.TensorSpec(result.shape, result.dtype) if hasattr(result, "dtype") else None


def _spec(value: Any) -> tf.TensorSpec | None:
    if tf.is_tensor(value):
        rank = value.shape.rank
        return tf.TensorSpec(None if rank is None else [None] * rank, value.dtype)
    return getattr(value, "known", None)


def _add_spec(value: Any, specs: list[tf.TensorSpec]) -> None:
    spec = _spec(value)
    if spec is not None:
        specs.append(spec)


def _with_cells(function: Any, values: list[Any]) -> Callable[[], Any]:
    cells = tuple(map(types.CellType, values))
    return types.FunctionType(function.__code__, function.__globals__, closure=cells)
