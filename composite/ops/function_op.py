"""CompositeCall: the one op for functions that have no op of their own, such as backwards.

A function is named by what it computes, so that equal ones are one, kernels in the cache are found
again, and a node in a saved model says by itself which version it means.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue, NameAttrList
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding import native, settings
from composite.binding.records import PROGRAM, NodeDef
from composite.ops import call, direct, function_digest, functions, recorded, traced_call
from composite.ops.registry import OPS

NAME = "CompositeCall"
# A saving forward has them (see saving_forward.h): the name of the node whose place it may take,
# and what that node computes.
SAVING_FORWARD = "_composite_twin"
SAVING_FORWARD_OF = "_composite_twin_of"
HAS_SAVING_FORWARD = "_composite_has_twin"  # on that node, in a function
_PREFIX = "__composite_"  # of functions in which TensorFlow's own ops stay what they are
REGION_PREFIX = "__composite_region_"  # begins the names of the functions of regions


def is_region(function: str) -> bool:
    """Whether a function of this name is that of a region."""
    return function.startswith(REGION_PREFIX)


def canonical(library: Any, stem: str) -> Any:
    """The same functions under names that follow from what they compute.

    function[0] becomes `__composite_<stem>_<hash>`; those that it reaches get that name and a
    number, in the order in which they are reached, and the others are left out. Attributes that
    say nothing of the meaning (where a function was made, shapes of its arguments) are dropped.
    """
    result = function_digest.bare(library)
    # By the runtime, which holds the functions of models that it meets to their names.
    reply = NodeDef.FromString(native.call("composite_function_digest", result))
    main = f"{_PREFIX}{stem}_{reply.attr['digest'].s.decode()}"
    names = (function.signature.name for function in result.function)
    functions.rename(
        result.function, {name: f"{main}_{i}" if i else main for i, name in enumerate(names)}
    )
    return result


def is_canonical(name: str) -> bool:
    """Whether a function is named by what it computes."""
    return name.startswith(_PREFIX)


def stem(name: str) -> str:
    """The stem of a canonical name."""
    return name.removeprefix(_PREFIX).rpartition("_")[0]


def keeps_state(library: Any) -> bool:
    """Whether any op of these functions does; CompositeCall takes none that do."""
    own = {f.signature.name for f in library.function}
    return any(
        definition.is_stateful
        for function in library.function
        for node in function.node_def
        if node.op not in own and (definition := call.op_def(node.op)) is not None
    )


def constants_last(library: Any) -> tuple[list[int], int]:
    """Puts the arguments of function[0] whose values XLA has to know behind the others.

    Returns the arguments in their new order, and how many of them are constants.
    """
    reply = native.call("composite_constant_arguments", library)
    constants = list(NodeDef.FromString(reply).attr["arguments"].list.i)
    arguments = list(library.function[0].signature.input_arg)
    order = [i for i in range(len(arguments)) if i not in constants] + constants
    del library.function[0].signature.input_arg[:]
    library.function[0].signature.input_arg.extend(arguments[i] for i in order)
    return order, len(constants)


def define(library: Any) -> Any:
    """Makes function[0] of a canonical library known to the runtime and to eager execution.

    Returns the library to use: one that was defined before may have its places from another line.
    """
    return OPS.define_function(library, _make_known)


def _make_known(library: FunctionDefLibrary) -> None:
    native.call("composite_register_function", library)
    call.add_functions(library)


def ensure_defined(op: Any) -> None:
    """Defines the function of a node that came with a loaded model; other nodes' are defined."""
    node = recorded.node_of(op)
    if node is None or OPS.has_function(node.get_attr("f").name):
        return
    name = node.get_attr("f").name
    library = {f.signature.name: f for f in node.graph.as_graph_def().library.function}
    if name in library:
        order = functions.reachable(name, library)
        define(FunctionDefLibrary(function=[library[n] for n in order]))


class _EagerCalls:
    """The eager calls of a defined function, the last `constants` of whose inputs are constants."""

    def __init__(self, library: Any, constants: int) -> None:
        signature = library.function[0].signature  # protos are slow to read
        inputs, outputs = signature.input_arg, signature.output_arg
        self._attrs = ["f", signature.name, "Tout", [arg.type for arg in outputs]]
        self._constants = constants
        self._direct = None
        if outputs and not {arg.type for arg in inputs} & _HANDLES:
            arguments = functools.partial(_arguments, signature, constants)
            self._direct = direct.FixedOp(call.op_def(NAME), len(inputs), arguments)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        if self._direct is not None and (outputs := self._direct(inputs)) is not None:
            return outputs
        return call.fast_call(NAME, _split(self._constants, inputs), self._attrs)


def _split(constants: int, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The inputs, and the last of them, which are constants."""
    first = len(inputs) - constants
    return list(inputs[:first]), list(inputs[first:])


def _arguments(signature: Any, constants: int, inputs: Sequence[Any]) -> dict[str, Any]:
    """All arguments of a call of a function."""
    given, known = _split(constants, inputs)
    return {
        "args": given,
        "constants": known,
        "f": NameAttrList(name=signature.name),
        "Tout": [tf.as_dtype(arg.type) for arg in signature.output_arg],
    }


_HANDLES = frozenset({tf.resource.as_datatype_enum, tf.variant.as_datatype_enum})
_known: dict[tuple[str, int], _EagerCalls] = {}  # as many as defined functions, which last


def invoke(
    library: Any, inputs: Sequence[Any], constants: int, stamps: Mapping[str, AttrValue]
) -> list[Any]:
    """Calls a defined function on tensors: one node, or one eager op. Returns its outputs.

    The last `constants` inputs are those that `constants_last` put there.
    """
    is_eager = tf.executing_eagerly()
    signature = library.function[0].signature
    if is_eager and not traced_call.carries_options():
        key = (signature.name, constants)
        if key not in _known:
            _known[key] = _EagerCalls(library, constants)
        return _known[key](inputs)
    arguments = _arguments(signature, constants, inputs)
    marks = {PROGRAM: AttrValue(s=signature.name.encode())}
    if is_eager:
        own = {**stamps, **settings.node_attrs(), **marks}
        return list(traced_call.traced_call(NAME, arguments, own, None))
    # The functions travel with the graph, into a saved model for one.
    tf.graph_util.import_graph_def(
        GraphDef(versions={"producer": tf.version.GRAPH_DEF_VERSION}, library=library), name=""
    )
    return list(call.graph_call(NAME, arguments, {**stamps, **marks}, None))


def in_short(name: str) -> str:
    """A function's name for people, as reports have those of regions: "region 1a2b3c4d"."""
    return f"{stem(name).replace('_', ' ')} {name[-8:]}".strip()
