"""The backward of an op: its expansion, differentiated by TensorFlow, as a function.

For given attributes, dtypes and shapes; the op's own outputs stand in place of what would be
computed again. It is called by CompositeCall, so it may have a compiled kernel, and is
differentiated in the same way: gradients of any order follow.

Not for which gradient an op has, see `gradient`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite import call, function_op, functions, native, places
from composite.records import AttrValue, NodeDef

# A backward holds some 0.3 MB. Batch sizes share one (see gradient._Family), so this is about
# attributes.
LIMIT = 256

NAME = "composite_backward_"  # in the names of functions that keep state, see _traced

Shape = tuple[int | None, ...] | None  # None: unknown rank


class _Given(NamedTuple):
    """Where a gradient comes from: an argument as it is, or a result of the function."""

    made: bool
    position: int


class Backward(NamedTuple):
    """A differentiated expansion; its arguments are inputs, outputs, and gradients of outputs."""

    function: Any  # see _traced
    takes: list[int]  # the arguments that the function reads, in its order
    constants: int  # how many of them, the last, XLA has to know
    gives: list[_Given | None]  # by input; None: there is no gradient

    def __call__(
        self, arguments: Sequence[Any], stamps: Mapping[str, AttrValue]
    ) -> list[Any | None]:
        """The gradient of each input; the node has `stamps`."""
        taken, results = [arguments[i] for i in self.takes], []
        if isinstance(self.function, FunctionDefLibrary):
            results = function_op.invoke(self.function, taken, self.constants, stamps)
        elif self.function is not None:
            results = tf.nest.flatten(self.function(*taken))
        return [
            None if one is None else (results if one.made else arguments)[one.position]
            for one in self.gives
        ]


@functools.lru_cache(maxsize=LIMIT)
def differentiate(request: bytes, used: tuple[bool, ...], shapes: tuple[Shape, ...]) -> Backward:
    """The backward of a call: `request` is a NodeDef of the op, its attributes and its version.

    `used` says of each output whether a gradient of it comes in. LookupError: an op of the body has
    no gradient; FailedPreconditionError: the expansion needs a shape that is not known.
    """
    asked = NodeDef.FromString(request)
    asked.attr["_in_shapes"].list.SetInParent()
    for shape in shapes:
        proto = tf.TensorShape(shape).as_proto()
        asked.attr["_in_shapes"].list.shape.add().CopyFrom(proto)
    library = FunctionDefLibrary.FromString(native.call("composite_expand", asked))
    body = functions.body(library)
    of_function = asked.op == function_op.NAME
    name = function_op.stem(asked.attr["f"].func.name) if of_function else asked.op
    try:
        with tf.init_scope():  # not a part of whatever is being traced: later traces share it
            return _differentiate_body(name, body, shapes, used)
    except LookupError as error:
        raise places.no_gradient(name, body.graph_def, error) from error


def _differentiate_body(
    op_name: str, expansion: functions.Body, shapes: Sequence[Shape], used: Sequence[bool]
) -> Backward:
    placeholder = tf.compat.v1.placeholder
    with tf.Graph().as_default() as graph:
        inputs = [placeholder(d, s) for d, s in zip(expansion.input_dtypes, shapes, strict=True)]
        outputs = functions.inline(expansion, inputs, name="forward")
        wanted = [y for y, use in zip(outputs, used, strict=True) if use]
        seeds = [placeholder(y.dtype, y.shape) for y in wanted]
        found = tf.gradients(wanted, inputs, grad_ys=seeds)
        results = [None if g is None else tf.convert_to_tensor(g) for g in found]
        rounded = {op.name for op in graph.get_operations() if _rounds(op)}
    graph_def = graph.as_graph_def()
    places.spread(graph_def)
    return _function(op_name, graph_def, [*inputs, *outputs, *seeds], results, rounded)


def _rounds(op: Any) -> bool:
    """Whether an operation may give other bits where it is computed again."""
    return op.type not in ("Const", "Placeholder") and any(
        y.dtype.is_floating or y.dtype.is_complex for y in op.outputs
    )


def _function(
    op_name: str,
    graph_def: Any,
    arguments: Sequence[Any],
    results: Sequence[Any],
    rounded: set[str],
) -> Backward:
    """The gradient graph as a function of those inputs, outputs and seeds that it reads.

    An output that the gradient reads (the mask of a ReLU, say) is fed from the forward call, and
    what only computed it again is left out. `rounded` names the nodes that have floating results.
    """
    names = [None if r is None else r.name for r in results]
    own = list(dict.fromkeys(name for name in names if name is not None))
    pruned, read = _consistent(graph_def, {t.name for t in arguments}, own, rounded)
    # TensorFlow forgets the functions of an If's or While's gradient with the graph they were made
    # in, and numbers them anew in the next: those of two backwards may have the same names.
    content = pruned.library.SerializeToString(deterministic=True)
    functions.rename_functions(pruned, f"_kept_{hashlib.sha256(content).hexdigest()[:16]}")
    first: dict[str, int] = {}  # an output that is an input: the input
    for position, tensor in enumerate(arguments):
        first.setdefault(tensor.name, position)
    taken = [name for name in first if name in read]
    made = [name for name in own if name not in first]
    function, order, constants = _traced(
        op_name, pruned, [arguments[first[name]] for name in taken], made
    )
    return Backward(
        function,
        [first[taken[i]] for i in order],
        constants,
        [None if name is None else _given(name, first, made) for name in names],
    )


def _given(name: str, arguments: Mapping[str, int], results: Sequence[str]) -> _Given:
    if name in arguments:
        return _Given(made=False, position=arguments[name])
    return _Given(made=True, position=results.index(name))


def _traced(
    op_name: str, graph_def: Any, inputs: Sequence[Any], outputs: Sequence[str]
) -> tuple[Any, list[int], int]:
    """Nodes of a graph as a canonical library that CompositeCall takes.

    A ConcreteFunction where an op keeps state; None where there is nothing to compute. With it, the
    order in which it takes the inputs, and how many of them, the last, are constants.
    """
    order = list(range(len(inputs)))
    if not outputs:
        return None, order, 0

    def backward(*values: Any) -> Any:
        fed = {tensor.name: value for tensor, value in zip(inputs, values, strict=True)}
        return tf.graph_util.import_graph_def(graph_def, fed, outputs, name="")

    call.add_functions(graph_def.library)
    backward.__name__ = f"{NAME}{op_name}"
    specs = [tf.TensorSpec(t.shape, t.dtype) for t in inputs]
    traced = tf.function(backward, input_signature=specs, autograph=False)
    concrete = traced.get_concrete_function()
    inner = concrete.graph.as_graph_def().library.function
    library = FunctionDefLibrary(function=[concrete.function_def, *inner])
    if function_op.keeps_state(library):
        return concrete, order, 0
    order, constants = function_op.constants_last(library)
    library = function_op.canonical(library, f"backward_{op_name}")
    return function_op.define(library), order, constants


def _consistent(
    graph_def: Any, fed: set[str], names: Sequence[str], rounded: set[str]
) -> tuple[Any, set[str]]:
    """As `_needed`; outputs are not fed beside what they were computed from, computed again.

    The gradient of a maximum looks for it among the values that it is of: a kernel rounds those
    otherwise than the ops of the backward, and none would be equal.
    """
    producers = {node.name: node.input for node in graph_def.node}
    fed = set(fed)
    while True:
        pruned, read = _needed(graph_def, fed, names)
        again = {node.name for node in pruned.node} & rounded
        mixed = {name for name in read if _ancestors(name, producers, fed) & again}
        if not mixed:
            return pruned, read
        fed -= mixed


def _ancestors(
    tensor: str, producers: Mapping[str, Sequence[str]], fed: Collection[str]
) -> set[str]:
    """The nodes that a tensor is computed from, without those behind other fed tensors."""
    found: set[str] = set()
    waiting = list(producers[tensor.split(":", maxsplit=1)[0]])
    while waiting:
        text = waiting.pop()
        name = text.lstrip("^").split(":")[0]
        if name not in found and (text if ":" in text else f"{text}:0") not in fed:
            found.add(name)
            waiting += producers[name]
    return found


def _needed(graph_def: Any, fed: set[str], names: Sequence[str]) -> tuple[Any, set[str]]:
    """The part that makes `names`, not looking behind fed tensors, and the fed ones it reads."""
    nodes = {node.name: node for node in graph_def.node}
    kept: set[str] = set()
    read: set[str] = set()
    waiting = [name.split(":")[0] for name in names if name not in fed]
    while waiting:
        name = waiting.pop()
        if name in kept:
            continue
        kept.add(name)
        for text in nodes[name].input:
            tensor = text if ":" in text else f"{text}:0"  # a GraphDef leaves ":0" out
            if tensor in fed:
                read.add(tensor)
            else:
                waiting.append(text.lstrip("^").split(":")[0])
    pruned = GraphDef(versions=graph_def.versions, library=graph_def.library)
    pruned.node.extend(node for node in graph_def.node if node.name in kept)
    for node in pruned.node:
        node.attr.pop("_class", None)  # "beside the forward node", which may be gone
    return pruned, read
