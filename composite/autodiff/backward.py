"""The backward of an op: its expansion, differentiated by TensorFlow, as a function.

For given attributes, dtypes and shapes; the op's own outputs stand in place of what would be
computed again. It is called by CompositeCall, so it may have a compiled kernel, and is
differentiated in the same way: gradients of any order follow.

Not for which gradient an op has, see `gradient`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.autodiff import carriers, graph_cut, places, residuals, state
from composite.autodiff.gradient_graph import GradientGraph
from composite.binding import native
from composite.binding.call_request import CallRequest
from composite.binding.records import PROGRAM, AttrValue, NodeDef
from composite.ops import call, function_op, functions, recorded

# A backward holds some 0.3 MB. Batch sizes share one (see gradient._Family), so this is about
# attributes.
LIMIT = 256

NAME = "composite_backward_"  # begins the names of functions
FORWARD = "composite_forward_"

_differentiated = itertools.count()
_traces = itertools.count()

Shape = tuple[int | None, ...] | None  # None: unknown rank


class _Function(NamedTuple):
    """A function of some of a backward's arguments."""

    # A canonical library, which CompositeCall takes; a ConcreteFunction where an op keeps state or
    # the function is not to last; None where there is nothing to compute.
    function: Any
    takes: list[int]  # the arguments, in its order
    constants: int  # how many of them, the last, XLA has to know

    def __call__(self, arguments: Sequence[Any], stamps: Mapping[str, AttrValue]) -> list[Any]:
        taken = [arguments[i] for i in self.takes]
        if self.function is None:
            return []
        if isinstance(self.function, FunctionDefLibrary):
            return function_op.invoke(self.function, taken, self.constants, stamps)
        results: list[Any] = tf.nest.flatten(self.function(*taken))
        return results


class Slices(NamedTuple):
    """A gradient that is tf.IndexedSlices: which of a backward's arguments and results it is."""

    values: int
    indices: int


class Backward(NamedTuple):
    """A differentiated expansion.

    Its arguments are inputs, outputs, gradients of outputs, and residuals. `saving_forward` is the
    forward once more, of the same inputs, with the residuals behind its outputs; the graph pass
    puts it in the place of the forward node, and `ops.saving_call` in that of an eager call.
    """

    function: _Function
    # By input: which of arguments and results; None: no gradient.
    gives: list[int | Slices | None]
    saving_forward: _Function | None
    saved: list[str]  # what the forward saves, for people: "MatMul (64, 512)"
    recomputed: list[str]  # the ops of the forward that the backward computes again

    def __call__(
        self,
        op: Any,
        gradients: Sequence[Any],
        stamps: Mapping[str, AttrValue],
        saved: Sequence[Any] = (),
    ) -> list[Any | None]:
        """The gradient of each input of `op`, whose node it is; its own nodes have `stamps`.

        `saved`: the residuals, where the call has saved them.
        """
        outputs = [*op.outputs, *saved]
        if self.saving_forward is not None and not saved:
            outputs = _saving_forward_outputs(self.saving_forward, recorded.node_of(op), stamps)
        count = len(op.outputs)
        arguments = [*op.inputs, *outputs[:count], *gradients, *outputs[count:]]
        values = [*arguments, *self.function(arguments, stamps)]
        return [_taken(one, values, x) for one, x in zip(self.gives, op.inputs, strict=True)]


def _taken(given: int | Slices | None, values: Sequence[Any], of: Any) -> Any:
    """One of a backward's gradients, of its arguments and results: that of the input `of`."""
    if isinstance(given, Slices):
        return tf.IndexedSlices(values[given.values], values[given.indices], tf.shape(of))
    return None if given is None else values[given]


def _saving_forward_outputs(
    saving_forward: _Function, node: Any, stamps: Mapping[str, AttrValue]
) -> list[Any]:
    """The outputs of a node's saving forward, made once for all gradients of the node."""
    name = saving_forward.function.function[0].signature.name
    for reader in node.inputs[saving_forward.takes[0]].consumers() if saving_forward.takes else ():
        attrs = reader.node_def.attr if reader.type == function_op.NAME else {}
        same = function_op.SAVING_FORWARD in attrs and attrs["f"].func.name == name
        if same and attrs[function_op.SAVING_FORWARD].s.decode() == node.name:
            return list(reader.outputs)
    if node.graph.building_function:  # a session's graph may have run, and stays
        node._set_attr(function_op.HAS_SAVING_FORWARD, AttrValue(b=True))
    with _beside(node):
        return saving_forward(node.inputs, {**stamps, **_marks(node)})


def _marks(node: Any) -> dict[str, AttrValue]:
    """What says whose saving forward a node is, and the colocations of that one."""
    attrs = node.node_def.attr
    marks = {
        function_op.SAVING_FORWARD: AttrValue(s=node.name.encode()),
        function_op.SAVING_FORWARD_OF: AttrValue(
            s=b"%s %s" % (node.type.encode(), attrs[PROGRAM].s)
        ),
    }
    return marks | ({"_class": attrs["_class"]} if "_class" in attrs else {})


@contextlib.contextmanager
def _beside(node: Any) -> Iterator[None]:
    """Has nodes be made where this one is: on its device, in its scope, run when it runs."""
    scope = node.name.rpartition("/")[0]
    with (
        node.graph.name_scope(f"{scope}/" if scope else None),
        tf.device(None),
        tf.device(node.device),
        tf.control_dependencies(None),
        tf.control_dependencies(node.control_inputs),
    ):
        yield


class Way(NamedTuple):
    """How a backward is to be made."""

    used: tuple[bool, ...]  # by output: a gradient of it comes in
    needed: tuple[bool, ...]  # by input: the gradient is asked for
    keeps: bool  # the forward may keep values for it
    lasts: bool  # it is a version of CompositeCall, which are never forgotten
    strict: bool = False  # its bits are those of TensorFlow's gradient of the ops


@functools.lru_cache(maxsize=LIMIT)
def differentiate(request: bytes, shapes: tuple[Shape, ...], way: Way) -> Backward:
    """The backward of a call: `request` is a CallRequest without shapes, serialized.

    LookupError: an op of the body has no gradient; FailedPreconditionError: the expansion needs a
    shape that is not known.
    """
    call = CallRequest.parse(NodeDef.FromString(request))
    asked = replace(call, in_shapes=tuple(map(tf.TensorShape, shapes))).to_node_def()
    library = FunctionDefLibrary.FromString(native.call("composite_expand", asked))
    carriers.without_booleans(library)
    body = functions.body(library)
    # TensorFlow's gradient of an If or a While makes functions of its own of the branches, or of
    # condition and body, named after them, in which what the gradient of this node needs is saved.
    # Equal functions have one name, in all nodes and all ops.
    functions.unshare_functions(body.graph_def, f"_differentiated_{next(_differentiated)}")
    name = name_of(call.op, call.attrs)
    try:
        with tf.init_scope():  # not a part of whatever is being traced: later traces share it
            return _Differentiation(name, body, shapes, way).backward()
    except state.Gone:
        raise
    except LookupError as error:
        raise places.no_gradient(name, body.graph_def, error) from error


def name_of(op_name: str, attrs: Mapping[str, AttrValue]) -> str:
    """What a call's backward is named after: the op, or the function that CompositeCall calls."""
    return function_op.stem(attrs["f"].func.name) if op_name == function_op.NAME else op_name


class _Differentiation:
    """The graph of an expansion and of its gradient, from which functions are cut."""

    def __init__(
        self,
        op_name: str,
        expansion: functions.Body,
        shapes: Sequence[Shape],
        way: Way,
    ) -> None:
        placeholder = tf.compat.v1.placeholder
        self._op_name = op_name
        self._way = way
        with tf.Graph().as_default() as graph:
            inputs = [
                placeholder(d, s) for d, s in zip(expansion.input_dtypes, shapes, strict=True)
            ]
            outputs = functions.inline(expansion, inputs, name="forward")
            wanted = [y for y, use in zip(outputs, way.used, strict=True) if use]
            seeds = [placeholder(y.dtype, y.shape) for y in wanted]
            forward = {op.name for op in graph.get_operations()} - {y.op.name for y in seeds}
            asked = [x for x, need in zip(inputs, way.needed, strict=True) if need]
            found = iter(tf.gradients(wanted, asked, grad_ys=seeds))
            gradients = [next(found) if need else None for need in way.needed]
            results = [_parts(g) for g in gradients]
        self._graph = GradientGraph.of(graph, forward, results)
        places.spread(self._graph.graph_def)
        self._inputs, self._outputs, self._seeds = (
            [tensor.name for tensor in tensors] for tensors in (inputs, outputs, seeds)
        )
        self._keeps = way.keeps and residuals.is_possible(graph, inputs, outputs)
        if self._keeps:
            self._graph = self._graph.without_lists()
        if self._keeps and not way.strict:
            self._graph = self._graph.with_factors(self._arguments)

    @property
    def _arguments(self) -> list[str]:
        return [*self._inputs, *self._outputs, *self._seeds]

    def backward(self) -> Backward:
        """The function of those inputs, outputs and seeds that the gradient reads.

        An output that it reads (the mask of a ReLU, say) is fed from the forward call, as is what
        that keeps, and what only computed it again is left out.
        """
        graph, arguments = self._graph, self._arguments
        saved = graph.to_keep(arguments) if self._keeps else []
        pruned, read = graph.cut([*arguments, *saved])
        saved = [name for name in saved if name in read]
        arguments += saved
        state.require(self._op_name, pruned, graph.graph_def, graph.forward)
        first: dict[str, int] = {}  # an output that is an input: the input
        for position, name in enumerate(arguments):
            first.setdefault(name, position)
        made = [name for name in graph.own if name not in first]
        places_of = {name: len(arguments) + k for k, name in enumerate(made)} | first
        taken = {at: name for name, at in first.items() if name in read}
        return Backward(
            self._function(f"{NAME}{self._op_name}", pruned, taken, made, lasts=self._way.lasts),
            [_given([places_of[name] for name in names]) for names in graph.results],
            self._saving_forward(saved) if saved else None,
            [graph.described(name) for name in saved],
            [n.op for n in pruned.node if n.name in graph.forward & graph.rounded],
        )

    def _saving_forward(self, saved: Sequence[str]) -> _Function:
        names = [*self._outputs, *saved]
        pruned, read = graph_cut.needed(self._graph.graph_def, set(self._inputs), names)
        taken = {i: name for i, name in enumerate(self._inputs) if name in read}
        return self._function(f"{FORWARD}{self._op_name}", pruned, taken, names, lasts=True)

    def _function(
        self,
        name: str,
        graph_def: Any,
        taken: Mapping[int, str],
        made: Sequence[str],
        *,
        lasts: bool,
    ) -> _Function:
        """What `made` names as a function of the tensors that `taken` names, by position."""
        order = list(taken)
        if not made:
            return _Function(None, order, 0)
        concrete = _traced(name, graph_def, self._graph.tensors(taken.values()), made)
        inner = concrete.graph.as_graph_def().library.function
        library = FunctionDefLibrary(function=[concrete.function_def, *inner])
        if not lasts or function_op.keeps_state(library):
            call.register_functions(concrete.graph)
            return _Function(concrete, order, 0)
        places_of, constants = function_op.constants_last(library)
        library = function_op.canonical(library, name.removeprefix("composite_"))
        return _Function(function_op.define(library), [order[i] for i in places_of], constants)


def _parts(gradient: Any) -> list[Any]:
    """The tensors that a gradient of tf.gradients is: none, one, or values and indices."""
    if isinstance(gradient, tf.IndexedSlices):
        return [gradient.values, gradient.indices]
    return [] if gradient is None else [tf.convert_to_tensor(gradient)]


def _given(parts: Sequence[int]) -> int | Slices | None:
    """A gradient of which these are the parts."""
    if len(parts) > 1:
        return Slices(*parts)
    return parts[0] if parts else None


def _traced(name: str, graph_def: Any, inputs: Sequence[Any], outputs: Sequence[str]) -> Any:
    """Nodes of a graph as a ConcreteFunction."""
    # TensorFlow numbers the functions of an If's or While's gradient anew in each graph: those of
    # two backwards may have the same names.
    functions.rename_functions(graph_def, f"_kept_{next(_traces)}")

    def function(*values: Any) -> Any:
        fed = {tensor.name: value for tensor, value in zip(inputs, values, strict=True)}
        return tf.graph_util.import_graph_def(graph_def, fed, outputs, name="")

    function.__name__ = name
    specs = [tf.TensorSpec(t.shape, t.dtype) for t in inputs]
    return tf.function(function, input_signature=specs, autograph=False).get_concrete_function()
