"""All that keeps a TF function from a kernel, where reading it stops at the first.

Not for what a plan or a strategy refuses: those see only whole functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from composite.compiler.node_place import of_node
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.tensor import Parameter, Tensor
from composite.compiler.tvm.nodes.node import dtype_name
from composite.compiler.tvm.read.reader import Body, argument_of, is_unlisted, unlisted


class Obstacle(NamedTuple):
    """One fact that prevents a kernel.

    Attributes:
        op: The TF op, or "" where it is not one op's.
        reason: As `NotCovered` says it.
        place: Where the author wrote that, "ops.py:12:5", or "".
        sizes: The inputs whose values would have to be known as sizes are, see `with_sizes`.
    """

    op: str
    reason: str
    place: str
    sizes: tuple[int, ...] = ()

    @classmethod
    def of(cls, answer: NotCovered, node: Any = None) -> Obstacle:
        """The obstacle that an answer about a node, or about the whole function, is."""
        if node is None:
            return cls("", answer.reason, answer.place, answer.sizes)
        return cls(node.op, answer.reason, answer.place or of_node(node), answer.sizes)


def obstacles(
    library: Any, in_shapes: Sequence[Sequence[int | str]], sizes: Collection[int] = ()
) -> list[Obstacle]:
    """Return what `read_function` would refuse of ``library.function[0]``.

    All ops that are not in the table come first. What is computed from the result of a refused node
    is not looked at; nor is what follows the first refusal in a function that is called.
    """
    functions = {f.signature.name: f for f in library.function}
    found = [
        Obstacle.of(unlisted(node), node)
        for function in library.function
        for node in function.node_def
        if is_unlisted(node)
    ]
    main = library.function[0]
    parameters: dict[str, Tensor] = {}
    for i, (arg, shape) in enumerate(zip(main.signature.input_arg, in_shapes, strict=True)):
        try:
            dtype = dtype_name(arg.type, arg.name)
        except NotCovered as answer:
            found.append(Obstacle.of(answer))
        else:
            parameter = Tensor(tuple(map(dims.parse, shape)), dtype, Parameter(i))
            parameters[arg.name] = argument_of(parameter, i in sizes)
    return [*found, *_refused(functions, main, parameters)]


def with_sizes(library: Any, in_shapes: Sequence[Sequence[int | str]]) -> Sized:
    """Return the inputs whose values a kernel would need to know, and what they may be.

    Each is a size of its own, unless there is a kernel only if all are equal to a dim of an input.
    """
    symbols = dims.symbols_of(tuple(map(dims.parse, shape)) for shape in in_shapes)
    own = itertools.count(int(symbols[-1][1:]) + 1 if symbols else 0)
    first = _with(library, in_shapes, (f"s{i}" for i in own))
    if not first.sizes or not obstacles(library, *first):
        return first
    for dim in dict.fromkeys(d for shape in in_shapes for d in shape):
        found = _with(library, in_shapes, itertools.repeat(dim))
        if not obstacles(library, *found):
            return found
    return first


class Sized(NamedTuple):
    """Shapes, and the inputs of which they have the value in the place of the shape."""

    in_shapes: Sequence[Sequence[int | str]]
    sizes: Sequence[int]


def _with(
    library: Any, in_shapes: Sequence[Sequence[int | str]], values: Iterator[int | str]
) -> Sized:
    shapes: list[Sequence[int | str]] = list(in_shapes)
    sizes: set[int] = set()
    while True:
        found = obstacles(library, shapes, sizes)
        others = {i for one in found for i in one.sizes} - sizes
        if not others:
            return Sized(shapes, sorted(sizes))
        sizes |= others
        for i in sorted(others):
            shapes[i] = (next(values),)


def _refused(
    functions: dict[str, Any], main: Any, parameters: Mapping[str, Tensor]
) -> Iterator[Obstacle]:
    """What the lowerings refuse of the nodes whose operands are all known."""
    unread = _with_unlisted(functions)
    listed = type(main)()
    listed.CopyFrom(main)
    del listed.node_def[:], listed.signature.input_arg[:]
    listed.node_def.extend(node for node in main.node_def if not is_unlisted(node))
    listed.signature.input_arg.extend(a for a in main.signature.input_arg if a.name in parameters)
    body = Body(functions, listed, list(parameters.values()), {})
    known = set(parameters)
    for node in _ordered(main):  # what unlisted ops read included
        names = {value.func.name for value in node.attr.values()}
        if is_unlisted(node) or not known.issuperset(_operands(node)) or names & unread:
            continue
        try:
            body.evaluate(node.name)
        except NotCovered as answer:
            yield Obstacle.of(answer, node)
        else:
            known.add(node.name)


def _operands(node: Any) -> list[str]:
    return [name.split(":")[0] for name in node.input if not name.startswith("^")]


def _with_unlisted(functions: Mapping[str, Any]) -> set[str]:
    """The functions that hold an op that is not in the table, or run one that does."""
    found: set[str] = set()
    while True:
        more = {
            name
            for name, function in functions.items()
            for node in function.node_def
            if is_unlisted(node) or any(v.func.name in found for v in node.attr.values())
        }
        if more == found:
            return found
        found = more


def _ordered(function: Any) -> Iterator[Any]:
    """The nodes that the returned values need, operands first, without Python's recursion."""
    nodes = {node.name: node for node in function.node_def}
    results = [function.ret[arg.name] for arg in function.signature.output_arg]
    stack = [(reference.split(":")[0], False) for reference in reversed(results)]
    done: set[str] = set()
    while stack:
        name, is_ready = stack.pop()
        if name not in nodes or name in done:
            continue
        if is_ready:
            done.add(name)
            yield nodes[name]
        else:
            stack += [
                (name, True),
                *((operand, False) for operand in reversed(_operands(nodes[name]))),
            ]
