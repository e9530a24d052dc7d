"""The regions of a frozen function, each with its kernel: as `composite.accelerate` forms them.

Where the compiler has no kernel for a region, its nodes are TensorFlow's, or regions of their own
around the node that is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.binding import native
from composite.binding.kernel_request import KernelRequest
from composite.compiler.tvm import Kernel, NotCovered, Target, linked
from composite.compiler_process.client import UNMADE
from composite.editing.scope import Edge
from composite.hybrid import packing
from composite.hybrid.freezing import Frozen
from composite.hybrid.graph import Graph, graph_of
from composite.hybrid.values import Dims, Value, Values
from composite.kernels import algebra, memory, produce, refusals, shapes, verify
from composite.kernels.expansions import Inexpandable
from composite.ops import call, function_op, functions


class RegionKernel(NamedTuple):
    """A kernel, and what its symbols are in a call.

    Attributes:
        kernel: the compiled kernel, which was checked.
        symbols: by its own symbols, expressions of the function's.
        outputs: what it returns.
        packed: what it takes after its outputs.
    """

    kernel: Kernel
    symbols: Mapping[str, str]
    outputs: tuple[Value, ...]
    packed: list[Any]


@dataclass(frozen=True)
class Partition:
    """A function in two parts.

    Attributes:
        graph: its nodes, those of regions among them.
        values: what is known of its values.
        kernels: by the nodes of regions.
        refused: regions without kernels, by what begins their names, and why.
    """

    graph: Graph
    values: Values
    kernels: Mapping[str, RegionKernel]
    refused: Mapping[str, str]


class _Made(NamedTuple):
    """A kernel, and the bytes of its loadable library."""

    kernel: Kernel
    library: bytes


_Known = dict[tuple[str, tuple[Dims, ...], tuple[int, ...]], _Made]


class _RefusedError(Exception):
    """A region has no kernel.

    Attributes:
        function: the region's.
        reason: why.
        node: the node of the function that is in the way, or "".
        at_any_size: whether the node has no lowering at any size.
    """

    def __init__(
        self, function: str, reason: str, node: str = "", *, at_any_size: bool = False
    ) -> None:
        super().__init__(reason)
        self.function = function
        self.reason = reason
        self.node = node
        self.at_any_size = at_any_size

    @property
    def entry(self) -> str:
        """What of the region stays outside in this model."""
        if self.node:
            return f"node:{self.function}:{self.node}"
        return f"region:{self.function}"


def partition(frozen: Frozen, deny: Sequence[str]) -> Partition:
    """The regions of a function, none with what `deny` names, and their kernels."""
    refusals.announce()
    denied, refused = list(deny), dict[str, str]()
    made: _Known = {}
    values = Values(frozen.library, frozen.inputs, frozen.shapes, frozen.parts)
    while True:
        graph = graph_of(_with_regions(frozen, denied), frozen.library)
        try:
            kernels = {
                name: _kernel(graph, values, name, made)
                for name in graph.nodes
                if graph.region(name)
            }
        except _RefusedError as error:
            if error.at_any_size and error.function not in refused:
                refusals.refuse(error.function, error.node)
            else:
                is_again = error.entry in denied
                denied.append(f"region:{error.function}" if is_again else error.entry)
            refused[error.function] = error.reason
            continue
        return Partition(graph, values, kernels, refused)


def _with_regions(frozen: Frozen, denied: Sequence[str]) -> Any:
    """The function with nodes of regions, and what these run; the regions' are defined."""
    request = FunctionDefLibrary.FromString(frozen.library.SerializeToString())
    request.function[0].attr["_composite_denied"].list.s.extend(e.encode() for e in denied)
    reply = FunctionDefLibrary.FromString(native.call("composite_find_regions", request))
    library = {function.signature.name: function for function in reply.function[1:]}
    for region in functions.called(reply.function[0], library):
        reached = functions.reachable(region, library)
        function_op.define(FunctionDefLibrary(function=[library[name] for name in reached]))
    return reply


def _kernel(graph: Graph, values: Values, name: str, made: _Known) -> RegionKernel:
    """The kernel of a region's node, whose outputs are values from then on."""
    node, function = graph.nodes[name], graph.region(name)
    in_shapes, symbols = _own_symbols([_dims(values.of(x), function) for x in graph.operands(name)])
    constants = packing.candidates(graph, name)
    key = (function, in_shapes, constants)
    if key not in made:
        attrs = {key: value for key, value in node.attr.items() if not key.startswith("_")}
        made[key] = _made(
            KernelRequest(
                op=function_op.NAME,
                attrs=attrs,
                program=function,
                in_shapes=in_shapes,
                constants=constants,
            )
        )
    kernel = made[key].kernel
    dtypes = [tf.as_dtype(dtype) for dtype in node.attr["Tout"].list.type]
    outputs = tuple(
        Value(dtype, _substituted(text, symbols))
        for dtype, text in zip(dtypes, kernel.out_shapes, strict=True)
    )
    for k, value in enumerate(outputs):
        values.define(Edge(name, k), value)
    with memory.file(made[key].library) as path:
        return RegionKernel(kernel, symbols, outputs, packing.packed(graph, name, kernel, path))


def _made(request: KernelRequest) -> _Made:
    """A kernel, compiled and checked against the region's ops."""
    try:
        kernel = _compiled(request)
        library = linked(kernel, native.library_path())
        with memory.file(library) as path, call.eager_mode():
            produce.check(request, kernel, path)
    except NotCovered as answer:
        raise _RefusedError(
            request.program,
            str(answer),
            answer.node,
            at_any_size=_is_at_any_size(request, answer),
        ) from answer
    except tf.errors.OpError as error:
        why = f"its ops take none of the inputs that are drawn to check it: {error.message}"
        raise _RefusedError(request.program, why) from error
    except (verify.Mismatch, Inexpandable, *UNMADE) as error:
        raise _RefusedError(request.program, str(error)) from error
    return _Made(kernel, library)


def _compiled(request: KernelRequest) -> Kernel:
    """A kernel that takes constants in its own form, if it would have another one for them."""
    target = Target.host()
    if request.constants:
        try:
            return produce.compile_object(request, target, over_ring=algebra.is_wanted())
        except NotCovered:  # it reads them where they lie, or there is no kernel at all
            request = replace(request, constants=())
    return produce.compile_object(request, target, over_ring=algebra.is_wanted())


def _is_at_any_size(request: KernelRequest, answer: NotCovered) -> bool:
    """Whether the node that an answer names has no kernel at any size."""
    names = shapes.symbols(request.in_shapes)
    if not names or not answer.node:
        return bool(refusals.refused_node(request, answer))
    sizes = shapes.samples(names, (), (), ())
    exact = replace(request, in_shapes=tuple(shapes.substitute(request.in_shapes, sizes)))
    try:
        produce.write(exact, Target.host())
    except NotCovered as of_sizes:
        return refusals.refused_node(exact, of_sizes) == answer.node
    except (Inexpandable, *UNMADE):
        return False
    return False


def _dims(value: Value, function: str) -> Dims:
    if value.dims is None:
        raise _RefusedError(function, "the rank of an input is not known")
    return value.dims


def _own_symbols(shapes_of: Sequence[Dims]) -> tuple[tuple[Dims, ...], dict[str, str]]:
    """Shapes whose unknown dims are symbols s0, s1, ...; and what these are."""
    own: dict[str, str] = {}
    for dims in shapes_of:
        for dim in dims:
            if isinstance(dim, str):
                own.setdefault(dim, f"s{len(own)}")
    named = tuple(tuple(own[d] if isinstance(d, str) else d for d in dims) for dims in shapes_of)
    return named, {symbol: text for text, symbol in own.items()}


def _substituted(shape: str, symbols: Mapping[str, str]) -> Dims:
    """The dims of an output, in postfix, with other expressions for symbols."""
    texts = shape.split(",") if shape else []
    dims = [" ".join(symbols.get(token, token) for token in text.split()) for text in texts]
    return tuple(int(dim) if dim.lstrip("-").isdigit() else dim for dim in dims)
