"""Resources of other kinds, as nodes that make them anew: their own initializers.

Not for: variables and tables, whose contents are read (captures.py, tables.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from composite.binding.records import NodeDef, record
from composite.hybrid import assets
from composite.ops import functions


class Remade(NamedTuple):
    """A resource as nodes.

    Attributes:
        nodes: the last one is the handle, initialized.
        functions: what they call.
    """

    nodes: list[NodeDef]
    functions: list[Any]


def is_remade(handle: Any) -> bool:
    """Whether it is known how a resource was made."""
    return _owner(handle) is not None


def remade(name: str, handle: Any) -> Remade:
    """Nodes that make a resource and initialize it. ValueError for what needs other resources."""
    owner = _owner(handle)

    @tf.function(autograph=False, input_signature=[])
    def created() -> Any:
        return owner._create_resource()

    @tf.function(autograph=False, input_signature=[])
    def initialized() -> Any:
        owner._initialize()
        return tf.constant(True)

    nodes, library = [], []
    for k, function in enumerate((created, initialized)):
        concrete = function.get_concrete_function()
        made = f"{name}/made:output:0" if k else ""
        inputs = _inputs(f"{name}/{k}", concrete, handle, made)
        call = _call(f"{name}/{'initialized' if k else 'made'}", concrete, inputs)
        nodes += [x for x in inputs if isinstance(x, NodeDef)] + [call]
        library += [concrete.function_def, *concrete.graph.as_graph_def().library.function]
    kept = record("Identity", name, T=tf.resource)
    kept.input.extend([f"{name}/made:output:0", f"^{name}/initialized"])
    return Remade([*nodes, kept], library)


def _owner(handle: Any) -> Any:
    """What made a handle, a tf.saved_model.experimental.TrackableResource; None if nobody knows.

    TensorFlow 2.21 notes it in each handle, for its own saving.
    """
    noted = getattr(handle, "_parent_trackable", None)
    return None if noted is None else noted()


def _inputs(name: str, concrete: Any, handle: Any, made: str) -> list[NodeDef | str]:
    """What a function captures: nodes of constants, or `made` for the resource itself."""
    found: list[NodeDef | str] = []
    for k, (outer, _) in enumerate(concrete.graph.captures):
        if outer is handle and made:
            found.append(made)
            continue
        if functions.is_handle(outer.dtype):
            raise ValueError(f"the initializer of {name} needs another resource, {outer}")
        found.append(_constant(f"{name}/{k}", outer))
    return found


def _constant(name: str, value: Any) -> NodeDef:
    """A constant, or a file that the module has where its value is the path of one."""
    is_text = value.dtype == tf.string and not value.shape.rank
    if is_text and (file := Path(value.numpy().decode(errors="replace"))).is_file():
        return assets.constant(name, file)
    return record("Const", name, value=tf.make_tensor_proto(value), dtype=value.dtype)


def _call(name: str, concrete: Any, inputs: Sequence[NodeDef | str]) -> NodeDef:
    definition = concrete.function_def.signature
    call = record("StatefulPartitionedCall", name, config="", config_proto="", executor_type="")
    call.attr["f"].func.name = definition.name
    for attr, arguments in (("Tin", definition.input_arg), ("Tout", definition.output_arg)):
        call.attr[attr].list.SetInParent()
        call.attr[attr].list.type.extend(x.type for x in arguments)
    named = (x if isinstance(x, str) else f"{x.name}:output:0" for x in inputs)
    call.input.extend(named)
    return call
