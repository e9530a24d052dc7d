"""Eager calls that have to be nodes: a call runs as a function of one node.

TensorFlow 2.21 cannot set an attribute that is a tensor from Python when it runs an op eagerly
("unhandled type 6"), but a node may have it. Nor can it set those that carry an op's version and
options, and an op that runs on another thread than the caller's does not find the caller's options.
The function is traced once for its attributes.

Private APIs of TF 2.21: the eager context's. tests/composite/ops/test_traced_call.py pins them.
Not for: any other op (call.py calls it directly, in a hundredth of the time).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from composite.binding import settings
from composite.binding.records import EAGER, PORTABLE, AttrValue
from composite.ops import call, call_arguments

_MOST_FUNCTIONS = 128


def needed(definition: Any) -> bool:
    """Whether an op's eager calls have to go this way."""
    return any(attr.type in ("tensor", "list(tensor)") for attr in definition.attr)


def carries_options() -> bool:
    """Whether options are chosen that an op which is run eagerly might not see.

    Asynchronous ops run on a thread of the context, and those of a device of a cluster in its
    process. Under a cluster all calls count: where an op runs is TensorFlow's to choose. A portable
    call is a function.
    """
    eager = context.context()
    return settings.portable() or (
        settings.chosen() and (eager.is_async() or eager.get_server_def() is not None)
    )


def traced_call(
    op_name: str, arguments: Mapping[str, Any], stamps: Mapping[str, AttrValue], name: str | None
) -> Any:
    """Runs an op on inputs that convert to tensors; errors as TensorFlow's own ops raise them."""
    definition = call.op_def(op_name)
    bound = call_arguments.bind(definition, arguments)
    function = _function(op_name, _frozen(bound.attrs), _frozen(stamps), name)
    return function(*bound.inputs)


def _frozen(attrs: Mapping[str, AttrValue]) -> tuple[tuple[str, bytes], ...]:
    return tuple((one, attrs[one].SerializeToString(deterministic=True)) for one in sorted(attrs))


@functools.lru_cache(maxsize=_MOST_FUNCTIONS)
def _function(
    op_name: str,
    attrs: tuple[tuple[str, bytes], ...],
    stamps: tuple[tuple[str, bytes], ...],
    name: str | None,
) -> Any:
    definition = call.op_def(op_name)
    values, marks = (
        {one: AttrValue.FromString(text) for one, text in frozen} for frozen in (attrs, stamps)
    )
    derived = call_arguments.inferred(definition)

    def node(*inputs: Any) -> Any:
        arguments = call_arguments.keywords(definition, derived, values, inputs)
        made = call.graph_call(op_name, arguments, marks | {EAGER: AttrValue(s=b"true")}, name)
        return made if definition.output_arg else None

    # A portable call is expanded for the shapes that are known here.
    return tf.function(node, autograph=False, reduce_retracing=PORTABLE not in marks)
