"""A TFR module as a program: the FunctionDefLibrary that the runtime reads.

`function[0]` is the op: its signature is the whole OpDef, its nodes are the body in the order of
evaluation. A block of an `if` or a loop, and a continuation that several branches share, become
functions of their own ("then_0", "else_0", "body_0", "rest_0"), which see nothing of the outside
but their inputs. tfr.cast and tfr.truth, which compute nothing, leave no node.

Not for: the digest (digest.py), expanding a program (the runtime).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from composite.compiler.tfr import constants, dialect
from composite.compiler.tfr.captures import Captures
from composite.compiler.tfr.digest import digest
from composite.compiler.tfr.places import Places
from composite.compiler.tfr.state import is_stateful

if TYPE_CHECKING:
    from composite.compiler.schema import OpSchema

# Ops whose result is their operand with another type: nodes that use it read the operand.
_TRANSPARENT = frozenset({"tfr.cast", "tfr.truth"})


def serialize(module: Any, schema: OpSchema, place: str = "") -> Any:
    """Return the program of a module as a tensorflow.FunctionDefLibrary.

    Args:
        module: an optimized TFR module.
        schema: the op it is the body of.
        place: where the op is defined, "ops.py:12"; by default what the module says.
    """
    from tensorflow.core.framework import function_pb2

    library = function_pb2.FunctionDefLibrary()
    with dialect.lock:
        functions = {op.attributes["sym_name"].value: op for op in module.body.operations}
        attributes = module.operation.attributes
        body = library.function.add()
        body.signature.CopyFrom(_signature(schema, module))
        _Region(library, functions).write_body(functions[schema.op_name], body)
        place = place or _text(attributes, "tfr.place")
        module_name = _text(attributes, "tfr.module")
    for name, text in (("_place", place), ("_module", module_name)):
        body.attr[name].s = text.encode()
    body.attr["_digest"].s = digest(library).encode()
    return library


def _text(attributes: Any, name: str) -> str:
    return attributes[name].value if name in attributes else ""


def _signature(schema: OpSchema, module: Any) -> Any:
    signature = type(schema.op_def)()
    signature.CopyFrom(schema.op_def)
    signature.is_stateful = is_stateful(module)
    summary, _, description = _text(module.operation.attributes, "tfr.doc").partition("\n")
    if summary:
        signature.summary = summary.strip()
        signature.description = description.strip()
    return signature


class _Region:
    """Writes one function of the library; `functions` are the func.func ops by name."""

    def __init__(
        self, library: Any, functions: dict[str, Any], outer: _Region | None = None
    ) -> None:
        self._library = library
        self._functions = functions
        self._ids: dict[str, int] = {} if outer is None else outer._ids
        self._captures: Captures = Captures() if outer is None else outer._captures
        self._places: Places = Places() if outer is None else outer._places
        self._names: dict[Any, str] = {}
        self._function: Any = None

    def write_body(self, op: Any, function: Any) -> None:
        """Write the op's own function, whose signature is there already."""
        self._function = function
        block = op.regions[0].blocks[0]
        for argument, attributes in zip(block.arguments, op.attributes["arg_attrs"], strict=True):
            self._names[argument] = attributes["tfr.name"].value
        outputs = [output.name for output in function.signature.output_arg]
        self._write_block(block, outputs)

    def write_region(
        self, name: str, inputs: Sequence[Any], block: Any, gives: int | None = None
    ) -> None:
        """Write a function of `inputs`, named c0, c1, ..., that returns what the block yields.

        `gives` says how many of the yielded values it returns, if not all.
        """
        self._function = self._library.function.add()
        self._function.signature.name = name
        for index, value in enumerate(inputs):
            self._names[value] = f"c{index}"
            self._function.signature.input_arg.add(name=f"c{index}")
        terminator = list(block.operations)[-1]
        count = len(terminator.operands) if gives is None else gives
        outputs = [str(index) for index in range(count)]
        for output in outputs:
            self._function.signature.output_arg.add(name=output)
        self._write_block(block, outputs)

    def _write_block(self, block: Any, outputs: Sequence[str]) -> None:
        *ops, terminator = list(block.operations)
        for op in ops:
            self._write_op(op)
        for output, value in zip(outputs, terminator.operands, strict=False):
            self._function.ret[output] = self._name(value)

    def _name(self, value: Any) -> str:
        return self._names[value]

    def _write_op(self, op: Any) -> None:
        kind = op.name
        if kind in _TRANSPARENT:
            self._names[op.results[0]] = self._name(op.operands[0])
        elif kind == "scf.if":
            self._write_if(op)
        elif kind == "scf.while":
            self._write_while(op)
        elif kind == "func.call":
            self._write_apply(op)
        elif kind == "tfr.raise":
            self._write_raise(op)
        else:
            node = self._node(kind, op, op.operands)
            _WRITE_ATTRIBUTES.get(kind, _nothing)(op, node)

    def _node(self, kind: str, op: Any, inputs: Sequence[Any], named: bool = True) -> Any:
        nodes = self._function.node_def
        name, names = str(len(nodes)), [self._name(value) for value in inputs]
        node = nodes.add(name=name, op=kind, input=names)
        node.attr["_loc"].s = self._places.of(op)
        if named:
            for index, result in enumerate(op.results):
                self._names[result] = f"{name}:{index}" if index else name
        return node

    def _fresh(self, stem: str) -> str:
        """Number the functions of the library in the order in which they are met."""
        number = self._ids.get(stem, 0)
        self._ids[stem] = number + 1
        return f"{stem}_{number}"

    def _write_if(self, op: Any) -> None:
        blocks = [region.blocks[0] for region in op.regions]
        captured = self._captures.of(op)
        node = self._node("tfr.if", op, [op.operands[0], *captured])
        _write_results(op, node)
        number = self._fresh("if").removeprefix("if_")
        for branch, block in zip(("then", "else"), blocks, strict=True):
            name = f"{branch}_{number}"
            node.attr[branch].s = name.encode()
            _Region(self._library, self._functions, self).write_region(name, captured, block)

    def _write_while(self, op: Any) -> None:
        """Write a loop; its regions take the carried values and then the captures of both."""
        captured = self._captures.of(op)
        node = self._node("tfr.while", op, [*op.operands, *captured])
        _write_results(op, node)
        number = self._fresh("while").removeprefix("while_")
        # The condition passes its own arguments to the body, so only its result is returned.
        for role, region, gives in zip(("condition", "body"), op.regions, (1, None), strict=True):
            block, name = region.blocks[0], f"{role}_{number}"
            node.attr[role].s = name.encode()
            inner = _Region(self._library, self._functions, self)
            inner.write_region(name, [*block.arguments, *captured], block, gives)

    def _write_apply(self, op: Any) -> None:
        callee = op.attributes["callee"].value
        node = self._node("tfr.apply", op, op.operands)
        node.attr["size"].i = len(op.results)
        node.attr["region"].s = callee.encode()
        if callee not in self._ids:
            self._ids[callee] = 1
            block = self._functions[callee].regions[0].blocks[0]
            region = _Region(self._library, self._functions, self)
            region.write_region(callee, list(block.arguments), block)

    def _write_raise(self, op: Any) -> None:
        node = self._node("tfr.raise", op, op.operands, named=False)
        node.attr["error"].s = op.attributes["error"].value.encode()
        if len(op.results) == 0:
            return
        # Evaluation ends at the error: its results, which stand in for values, are never read.
        stand_in = self._node("tfr.constant", op, [], named=False)
        self._names.update(dict.fromkeys(op.results, stand_in.name))


def _nothing(op: Any, node: Any) -> None:
    """These nodes are their kind and their inputs."""


def _write_constant(op: Any, node: Any) -> None:
    value = constants.to_attr_value(op.attributes["value"])
    if value.WhichOneof("value") is not None:
        node.attr["value"].CopyFrom(value)


def _write_list(op: Any, node: Any) -> None:
    if kind := _text(op.attributes, "kind"):
        node.attr["kind"].s = kind.encode()


def _write_operator(op: Any, node: Any) -> None:
    node.attr["operator"].s = op.attributes["operator"].value.encode()


def _write_builtin(op: Any, node: Any) -> None:
    node.attr["function"].s = op.attributes["function"].value.encode()


def _write_subscript(op: Any, node: Any) -> None:
    node.attr["spec"].s = op.attributes["spec"].value.encode()


def _write_results(op: Any, node: Any) -> None:
    node.attr["size"].i = len(op.results)
    if dialect.NAMES in op.attributes:
        names = [name.value.encode() for name in op.attributes[dialect.NAMES]]
        node.attr["_names"].list.s.extend(names)


def _write_size(op: Any, node: Any) -> None:
    node.attr["size"].i = len(op.results)


def _write_call(op: Any, node: Any) -> None:
    attributes = op.attributes
    node.attr["op"].s = attributes["op"].value.encode()
    keywords = [keyword.value.encode() for keyword in attributes["keywords"]]
    node.attr["keywords"].list.s.extend(keywords)
    for source, target in (("program", "_composite_program"), ("name", "_name")):
        if text := _text(attributes, source):
            node.attr[target].s = text.encode()


_WRITE_ATTRIBUTES = {
    "tfr.constant": _write_constant,
    "tfr.list": _write_list,
    "tfr.unary": _write_operator,
    "tfr.binary": _write_operator,
    "tfr.compare": _write_operator,
    "tfr.unpack": _write_size,
    "tfr.builtin": _write_builtin,
    "tfr.subscript": _write_subscript,
    "tfr.call": _write_call,
}
