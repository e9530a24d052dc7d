"""TensorFlow's AttrValue as a Python value.

Not for: the way back; what a value means, the declaration says (schema.py). A leaf.
"""

from __future__ import annotations

from typing import Any


def attr_value_to_python(value: Any, type_: str = "") -> Any:
    """Return an AttrValue as Python: lists as lists, types as tf.DType, shapes as tf.TensorShape.

    `type_` ("list(int)") tells an empty list from nothing.
    """
    kind = value.WhichOneof("value")
    if kind == "list":
        for field, items in value.list.ListFields():
            return [_scalar(field.name, item) for item in items]
        return []
    if kind is None:
        return [] if type_.startswith("list(") else None
    return _scalar(kind, getattr(value, kind))


def _scalar(kind: str, value: Any) -> Any:
    if kind == "s":
        # A string attribute is bytes; one that is no UTF-8 has no Python string and stays bytes.
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if kind == "type":
        import tensorflow as tf

        return tf.as_dtype(value)
    if kind == "shape":
        import tensorflow as tf

        return tf.TensorShape(value)
    return value
