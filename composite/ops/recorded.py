"""What gradient functions are given: a node of a graph, or what a tape recorded of a call.

The only user of private APIs of TensorFlow 2.21: the number that each tensor gets when it is made,
that of its dtype, its shape as a tuple, the functions of forward-mode gradients and their cache.
tests/composite/ops/test_recorded.py pins them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.python.eager import forwardprop
from tensorflow.python.framework import ops

from composite.ops import call, call_arguments

SAVED = "_composite_saved"  # behind the attributes of a call that saved: names the last, a Saved


Kind = tuple[int, tuple[int, ...]]


class Saved(NamedTuple):
    """What an eager call has saved for its gradient."""

    gradient: Any  # whose tensors these are
    tensors: list[Any]


def node_of(op: Any) -> Any:
    """The Operation of what a gradient function was given; None for an eager call.

    A tape gives a stand-in that knows the outputs, in a graph as well.
    """
    if isinstance(op, tf.Operation):
        return op
    graph_outputs = [y for y in op.outputs if tf.is_symbolic_tensor(y)]
    return graph_outputs[0].op if graph_outputs and graph_outputs[0].op.type == op.type else None


def attrs_of(op: Any) -> dict[str, AttrValue]:
    """The attributes, stamps included, of an op that a gradient function was given.

    From a graph that is an Operation; from an eager tape a stand-in that has the flat tuple.
    """
    if isinstance(op, tf.Operation):
        return dict(op.node_def.attr)
    kinds = {attr.name: attr.type for attr in call.op_def(op.type).attr}
    result = {}
    attrs = own_attrs(op)
    for name, value in zip(attrs[::2], attrs[1::2], strict=True):
        key = name.decode() if isinstance(name, bytes) else name
        result[key] = call_arguments.attr_value(value, kinds.get(key, "string"), key)
    return result


def saved_for(op: Any) -> Saved | None:
    """What the call that an eager tape recorded has saved; None where it saved nothing."""
    attrs = op.attrs
    return attrs[-1] if attrs and attrs[-2] == SAVED else None


def own_attrs(op: Any) -> tuple[Any, ...]:
    """The attributes of the op itself, as an eager tape recorded them: name, value, name, value."""
    attrs: tuple[Any, ...] = op.attrs
    return attrs if saved_for(op) is None else attrs[:-2]


def key_of(op: Any) -> tuple[Hashable, ...]:
    """The attributes of what an eager tape recorded, as a key: equal for equal attributes."""
    attrs = own_attrs(op)
    return (*attrs[::2], *map(value_key, attrs[1::2]))


def value_key(value: Any) -> Hashable:
    """The value of an attribute as a key: equal values are equal, and -0.0 is not 0.0."""
    if isinstance(value, float):
        return value.hex()  # and nan is nan
    if value is None or isinstance(value, (int, str, bytes, tf.DType)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(map(value_key, value))
    if isinstance(value, (np.generic, np.ndarray)):
        return value.dtype.str, value.shape, value.tobytes()
    return value if isinstance(value, Hashable) else str(value)  # a shape, a function, a proto


def shape_of(tensor: Any) -> tuple[int, ...]:
    """The shape of an eager tensor, as a tuple."""
    shape: tuple[int, ...] = tensor._shape_tuple()
    return shape


def kind_of(tensor: Any) -> Kind:
    """The dtype, as TensorFlow numbers it, and the shape of an eager tensor: quick, for keys."""
    return tensor._datatype_enum(), tensor._shape_tuple()


def forget_forward_gradients() -> None:
    """Has tf.autodiff.ForwardAccumulator ask for gradients again.

    It keeps what it traces of the gradient of an eager op by the op's name and attributes.
    """
    forwardprop._jvp_function_cache.clear()


def is_forward_mode() -> bool:
    """Whether tf.autodiff.ForwardAccumulator is tracing what it makes of a gradient.

    It asks for the gradient of that again, which TensorFlow has for no tf.IndexedSlices.
    """
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    while graph is not None:
        if getattr(graph, "name", "").startswith("_jvp_"):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False


def moment() -> int:
    """Now, on the clock of `made_at`."""
    return int(ops.uid())


def made_at(tensor: Any) -> int:
    """When a tensor was made: TensorFlow numbers all of them as they are made."""
    return int(tensor._id)
