"""Calls in a body: which op they call, and whether the call fits its declaration.

A call is checked where it is written: unknown and missing arguments, attributes that are tensors,
values that the OpDef does not allow.

Not for: dtypes and shapes of tensors, which only the expansion knows.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from composite.compiler.frontend import tf_ops
from composite.compiler.frontend.bindings import Outputs, Translation
from composite.compiler.frontend.capture import Static
from composite.compiler.frontend.tf_ops import Parameter
from composite.compiler.schema import AttrSpec, Composable, OpSchema
from composite.compiler.tfr import Call, constants, dialect
from composite.compiler.tfr.canonicalize import ABSENT, constant_of

Resolve = Callable[[object], "Composable | None"]

# Calls of Python's own that users reach for, and what to write instead.
_BUILTIN_ADVICE = {
    "print": "call tf.raw_ops.PrintV2",
    "range": "write the steps out",
    "enumerate": "write the steps out",
    "zip": "write the steps out",
    "isinstance": "compare `x.dtype`, or make it an attribute",
    "float": "use the number as it is, beside a tensor it takes its dtype",
    "int": "use `//` for whole numbers",
    "bool": "compare, `k != 0`",
    "abs": "write `-k if k < 0 else k`, or tf.raw_ops.Abs for a tensor",
    "max": "write `a if a > b else b`, or tf.raw_ops.Maximum for tensors",
    "min": "write `a if a < b else b`, or tf.raw_ops.Minimum for tensors",
    "sum": "write the additions out, or call tf.raw_ops.AddN",
    "tuple": "write the elements out",
    "list": "write the elements out",
}

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "string": (str,),
}


@dataclasses.dataclass(frozen=True)
class _Callee:
    """An op about to be called, from TensorFlow or from `@Composite`."""

    spelling: str
    schema: OpSchema
    parameters: tuple[Parameter, ...]
    positional: int  # how many parameters can be given by position
    program: str = ""


@dataclasses.dataclass(frozen=True)
class _Argument:
    node: Any
    parameter: Parameter
    value: Any


class Calls:
    """Translates calls. `visit` is the expression pass: it gives the binding of a node."""

    def __init__(
        self, translation: Translation, visit: Callable[[Any], Any], resolve: Resolve
    ) -> None:
        self._translation = translation
        self._source = translation.source
        self._builder = translation.builder
        self._visit = visit
        self._resolve = resolve

    def call(self, node: Any) -> Any:
        """Translate a gast.Call; returns its binding."""
        function = self._visit(node.func)
        if not isinstance(function, Static):
            self._source.fail(
                node.func, "this is a value, not a function; call an op or a composite by its name"
            )
        if function.object is len:
            return self._length(node)
        callee = self._callee(node, function)
        advice = tf_ops.random_advice(callee.schema)
        if advice is not None:
            self._source.fail(
                node.func,
                f"{callee.schema.op_name} keeps its own random state, which a gradient that "
                f"computes the body again would not see; use {advice}",
            )
        return self._build(node, callee)

    def _length(self, node: Any) -> Any:
        if len(node.args) != 1 or node.keywords:
            self._source.fail(node, "len() takes one argument")
        value = self._translation.value(self._visit(node.args[0]), node.args[0])
        if dialect.name_of(value) == "tensor":
            self._source.fail(node, "len() of a tensor: write `x.shape[0]`")
        return self._builder.length(value)

    def _callee(self, node: Any, function: Static) -> _Callee:
        if function.object is self._source.function:
            self._source.fail(
                node.func, f"`{function.spelling}` calls itself, and that would never end"
            )
        composable = self._resolve(function.object)
        if composable is not None:
            return _composite(function.spelling, composable)
        op = tf_ops.find(function.object)
        if op is not None:
            positional = 0 if op.keyword_only else len(op.parameters)
            return _Callee(function.spelling, op.schema, op.parameters, positional)
        raise self._source.error(node.func, _not_an_op(function))

    def _build(self, node: Any, callee: _Callee) -> Any:
        name, arguments = self._arguments(node, callee)
        for argument in arguments:
            self._check(callee, argument)
        given = {argument.parameter.op_name: argument.value for argument in arguments}
        given |= self._python_defaults(callee, given)
        keywords = tuple(name for name in callee.schema.parameters if name in given)
        types = tuple(
            "sequence" if output.is_list else "tensor" for output in callee.schema.outputs
        )
        call = Call(
            op=callee.schema.op_name,
            keywords=keywords,
            stateful=callee.schema.is_stateful,
            result={0: "attr", 1: types[0] if types else ""}.get(len(types), "sequence"),
            program=callee.program,
            name=name,
        )
        result = self._builder.call(call, [given[keyword] for keyword in keywords])
        if dialect.name_of(result) == "sequence":
            mixed = len(types) > 1 and "sequence" in types
            self._builder.note_elements(result, "any" if mixed else "tensor")
        if len(types) < 2:
            return result
        return Outputs(result, tuple(output.name for output in callee.schema.outputs), types)

    def _python_defaults(self, callee: _Callee, given: dict[str, Any]) -> dict[str, Any]:
        """Write out the defaults of the Python wrapper that the OpDef does not have."""
        return {
            one.op_name: self._translation.value(Static(one.default, one.name), None)
            for one in callee.parameters
            if one.differs and one.op_name not in given
        }

    def _arguments(self, node: Any, callee: _Callee) -> tuple[str, list[_Argument]]:
        """Evaluate the arguments, left to right, and match them with the parameters."""
        by_name = {parameter.name: parameter for parameter in callee.parameters}
        name, arguments = "", []
        for index, argument in enumerate(node.args):
            parameter = self._positional(callee, argument, index)
            arguments.append(self._argument(argument, by_name.pop(parameter.name)))
        for keyword in node.keywords:
            if keyword.arg == "name":
                name = self._node_name(keyword.value)
                continue
            if keyword.arg not in by_name:
                self._source.fail(keyword.value, self._unknown(callee, keyword.arg))
            arguments.append(self._argument(keyword.value, by_name.pop(keyword.arg)))
        missing = [f"`{one.name}`" for one in by_name.values() if one.required]
        if missing:
            self._source.fail(node, f"{callee.spelling} is called without {' and '.join(missing)}")
        return name, arguments

    def _argument(self, node: Any, parameter: Parameter) -> _Argument:
        return _Argument(node, parameter, self._translation.value(self._visit(node), node))

    def _positional(self, callee: _Callee, node: Any, index: int) -> Parameter:
        if index < callee.positional:
            return callee.parameters[index]
        if callee.positional:
            self._source.fail(
                node,
                f"{callee.spelling} takes {callee.positional} arguments by position: name this one",
            )
        names = ", ".join(f"{parameter.name}=" for parameter in callee.parameters)
        raise self._source.error(node, f"{callee.spelling} takes its arguments by name: {names}")

    def _unknown(self, callee: _Callee, name: str) -> str:
        if name in {parameter.name for parameter in callee.parameters}:
            return f"{callee.spelling} is given `{name}` twice"
        if name in {attr.name for attr in callee.schema.derived}:
            return f"{callee.spelling} is not given `{name}`: its inputs determine it; leave it out"
        names = ", ".join(parameter.name for parameter in callee.parameters)
        return f"{callee.spelling} has no argument `{name}`; it has {names}"

    def _node_name(self, node: Any) -> str:
        name = known(self._visit(node))
        if not isinstance(name, str):
            self._source.fail(node, "the name of a node is a string that is written out")
        return name

    def _check(self, callee: _Callee, argument: _Argument) -> None:
        """Compare an argument with the declaration, as far as the source shows it."""
        spec = callee.schema.input_or_attr(argument.parameter.op_name)
        value = known(argument.value)
        spelling = f"`{argument.parameter.name}` of {callee.spelling}"
        if not isinstance(spec, AttrSpec):
            if value is None:
                self._source.fail(argument.node, f"the input {spelling} cannot be None")
            return
        if dialect.name_of(argument.value) == "tensor" and spec.type != "tensor":
            self._source.fail(
                argument.node,
                f"the attribute {spelling} must be known when the op is expanded, and this is a "
                "tensor; give an attribute of the composite or a constant",
            )
        if value is None and argument.parameter.required:
            self._source.fail(argument.node, f"the attribute {spelling} cannot be None")
        if value is not ABSENT and value is not None:
            self._check_attr(spec, spelling, argument.node, value)

    def _check_attr(self, spec: AttrSpec, spelling: str, node: Any, value: object) -> None:
        types = _PYTHON_TYPES.get(spec.type)
        if spec.type == "type" and not constants.is_dtype(value):
            self._source.fail(node, f"the attribute {spelling} is a dtype: write tf.float32")
        if types is not None and not isinstance(value, types):
            self._source.fail(
                node, f"the attribute {spelling} is of type {spec.type}, and this is {value!r}"
            )
        if not spec.accepts(value):
            allowed = ", ".join(repr(getattr(one, "name", one)) for one in spec.allowed)
            self._source.fail(
                node,
                f"the attribute {spelling} is one of {allowed}, and this is "
                f"{getattr(value, 'name', value)!r}",
            )
        if spec.minimum is not None and isinstance(value, int) and value < spec.minimum:
            self._source.fail(
                node, f"the attribute {spelling} is at least {spec.minimum}, and this is {value}"
            )


def known(binding: Any) -> Any:
    """Return the Python constant that a binding is known to be, ABSENT if it is not."""
    if isinstance(binding, Static):
        return binding.object
    if isinstance(binding, Outputs):
        return ABSENT
    return constant_of(binding)


def _composite(spelling: str, composable: Composable) -> _Callee:
    signature = composable.schema.signature()
    parameters = tuple(
        Parameter(one.name, one.name, one.default)
        for one in signature.parameters.values()
        if one.name != "name"
    )
    by_position = [
        one
        for one in signature.parameters.values()
        if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    return _Callee(
        spelling, composable.schema, parameters, len(by_position), program=composable.digest
    )


def _not_an_op(function: Static) -> str:
    name = getattr(function.object, "__name__", function.spelling)
    if name in _BUILTIN_ADVICE and function.object is getattr(_builtins(), name, None):
        return f"`{name}` is not supported in the body of a composite: {_BUILTIN_ADVICE[name]}"
    if tf_ops.is_tensorflow(function.object):
        if tf_ops.is_random(function.object):
            return (
                f"{function.spelling} keeps its own random state, which a gradient that computes "
                "the body again would not see; call tf.raw_ops.StatelessRandomUniformV2 or its "
                "like with a `seed` input of the composite"
            )
        raw = tf_ops.nearest_raw_op(name)
        instead = f"tf.raw_ops.{raw}" if raw else "the raw ops that it is made of (tf.raw_ops.*)"
        also = ", or write `a @ b`" if name == "matmul" else ""
        return (
            f"{function.spelling} is a Python function of TensorFlow, not one op; "
            f"call {instead}{also}"
        )
    if not callable(function.object):
        return f"`{function.spelling}` is not a function"
    return (
        f"`{function.spelling}` is neither an op of TensorFlow nor a composite: decorate it with "
        "@Composite, or write its body here"
    )


def _builtins() -> Any:
    import builtins

    return builtins
