"""The dtype of an expression that raises: what is known of it without its value.

A dtype follows from dtypes. So the expression is traced with tensors of these dtypes of which no
dim is known, where shapes that do not fit are no error.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import tensorflow as tf


def later(expression: Callable[[], Any]) -> Callable[[], tf.DType | None]:
    """Tells the dtype of the tensor that a `lambda: ...` makes, with what its names are now.

    None if it makes no tensor, or needs a value. Names stand for tensors, for values that have a
    `known_dtype` only, and for lists of them.
    """
    try:
        cells = [cell.cell_contents for cell in expression.__closure__ or ()]
    except ValueError:  # a name without a value
        return lambda: None
    return lambda: _dtype_of(expression, cells)


def _dtype_of(expression: Callable[[], Any], cells: list[Any]) -> tf.DType | None:
    specs: list[tf.TensorSpec] = []
    tf.nest.map_structure(lambda value: _add_spec(value, specs), cells)

    def traced(*tensors: Any) -> Any:
        given = iter(tensors)
        filled = tf.nest.map_structure(lambda v: v if _spec(v) is None else next(given), cells)
        return _with_cells(expression, filled)()

    try:
        result = tf.function(traced, autograph=False).get_concrete_function(*specs)
    except Exception:  # noqa: BLE001 - it asks for more than dtypes, or raises whatever it is given
        return None
    return getattr(result.structured_outputs, "dtype", None)


def _spec(value: Any) -> tf.TensorSpec | None:
    if tf.is_tensor(value):
        rank = value.shape.rank
        return tf.TensorSpec(None if rank is None else [None] * rank, value.dtype)
    dtype = getattr(value, "known_dtype", None)
    return None if dtype is None else tf.TensorSpec(None, dtype)


def _add_spec(value: Any, specs: list[tf.TensorSpec]) -> None:
    spec = _spec(value)
    if spec is not None:
        specs.append(spec)


def _with_cells(function: Any, values: list[Any]) -> Callable[[], Any]:
    cells = tuple(map(types.CellType, values))
    return types.FunctionType(function.__code__, function.__globals__, closure=cells)
