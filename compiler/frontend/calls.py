"""Calls in a body: which op or function they call, and whether the call fits its declaration.

A call is checked where it is written: unknown and missing arguments, attributes that are tensors,
values that the OpDef does not allow.

Not for: dtypes and shapes of tensors, which only the expansion knows; the inside of a function that
is called (inline.py).
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, Protocol

from composite.compiler.errors.calls import (
    ATTRIBUTE_VALUE,
    NODE_NAME,
    NOT_CALLABLE,
    NOT_NONE,
    RANDOM_STATE,
    TENSOR_ATTRIBUTE,
)
from composite.compiler.errors.names import ENDLESS
from composite.compiler.frontend import callables, tf_ops
from composite.compiler.frontend.analysis.capture import Static
from composite.compiler.frontend.arguments import Argument, Signature, match
from composite.compiler.frontend.bindings import (
    Function,
    Instance,
    Method,
    Outputs,
    Translation,
    known,
    like,
)
from composite.compiler.frontend.callables import Callee
from composite.compiler.frontend.kinds import is_text
from composite.compiler.frontend.specials import Specials
from composite.compiler.frontend.tf_ops import Parameter
from composite.compiler.schema import AttrSpec, Composable, OpSchema
from composite.compiler.tfr import Call, constants, dialect
from composite.compiler.tfr.canonicalize import ABSENT

Resolve = Callable[[object], "Composable | None"]

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "string": (str,),
}


class Unit(Protocol):
    """What `Calls` needs of the translation of a whole op."""

    resolve: Resolve

    def inline(self, caller: Translation, node: Any, callee: Callee, bound: dict[str, Any]) -> Any:
        """Translate a function where it is called; returns the binding of its result."""


@dataclasses.dataclass(frozen=True)
class _Op:
    """An op about to be called, from TensorFlow or from `@Composite`."""

    schema: OpSchema
    signature: Signature
    program: str = ""

    @property
    def spelling(self) -> str:
        """How the source names it."""
        return self.signature.spelling


class Calls:
    """Translates calls. `visit` translates an expression and returns its binding."""

    def __init__(self, translation: Translation, visit: Callable[[Any], Any], unit: Unit) -> None:
        self._translation = translation
        self._source = translation.source
        self._builder = translation.builder
        self._visit = visit
        self._unit = unit
        self._specials = Specials(translation, visit)

    def call(self, node: Any) -> Any:
        """Translate a gast.Call; returns its binding."""
        function = self._visit(node.func)
        if isinstance(function, Function):
            return self._inline(node, callables.written(function))
        if isinstance(function, Method):
            whole = self._translation.whole(function.owner, node)
            return self._inline(node, callables.method(function, whole), function.owner)
        if not isinstance(function, Static):
            self._source.fail(
                node.func,
                NOT_CALLABLE,
                "this is a value, not a function; call an op or a composite by its name",
            )
        special = self._specials.find(function.object)
        if special is not None:
            return special(node)
        if self._translation.caller is None and function.object is self._source.function:
            self._source.fail(
                node.func, ENDLESS, f"`{function.spelling}` calls itself, and that would never end"
            )
        op = self._op(function)
        if op is not None:
            return self._call_op(node, op)
        callee = callables.find(self._source, node.func, function)
        if callee is None:
            callables.refuse(self._source, node.func, function)
        return self._inline(node, callee)

    def _inline(self, node: Any, callee: Callee, owner: Instance | None = None) -> Any:
        arguments = match(self._source, node, callee.signature, self._visit)
        bound = {argument.parameter.name: argument.value for argument in arguments}
        if callee.signature.rest is not None:
            given = [
                self._translation.value(one, node) for one in bound[callee.signature.rest.name]
            ]
            bound[callee.signature.rest.name] = self._builder.make_list(given)
        result = self._unit.inline(self._translation, node, callee, bound)
        if owner is not None and callee.gives and dialect.name_of(result) == "tensor":
            return like(result, owner)
        return self._translation.from_whole(result, callee.gives)

    def _call_op(self, node: Any, op: _Op) -> Any:
        advice = tf_ops.random_advice(op.schema)
        if advice is not None:
            self._source.fail(
                node.func,
                RANDOM_STATE,
                f"{op.schema.op_name} keeps its own random state, which a gradient that "
                f"computes the body again would not see; use {advice}",
            )
        return self._build(node, op)

    def _op(self, function: Static) -> _Op | None:
        composable = self._unit.resolve(function.object)
        if composable is not None:
            return _composite(function.spelling, composable)
        op = tf_ops.find(function.object)
        if op is None:
            return None
        positional = 0 if op.keyword_only else len(op.parameters)
        return _Op(op.schema, _signature(function.spelling, op.schema, op.parameters, positional))

    def _build(self, node: Any, op: _Op) -> Any:
        arguments = match(self._source, node, op.signature, self._value)
        name: Any = self._node_name(arguments)
        arguments = [one for one in arguments if one.parameter is not _NAME]
        for argument in arguments:
            self._check(op, argument)
        given = {one.parameter.op_name: one.value for one in arguments}
        given |= self._python_defaults(op, given)
        keywords = tuple(name for name in op.schema.parameters if name in given)
        if not isinstance(name, str):  # the expansion knows it
            given[_NAME.name], keywords, name = name, (*keywords, _NAME.name), ""
        types = tuple("sequence" if output.is_list else "tensor" for output in op.schema.outputs)
        call = Call(
            op=op.schema.op_name,
            keywords=keywords,
            stateful=op.schema.is_stateful,
            result={0: "attr", 1: types[0] if types else ""}.get(len(types), "sequence"),
            program=op.program,
            name=name,
        )
        result = self._builder.call(call, [given[keyword] for keyword in keywords])
        if dialect.name_of(result) == "sequence":
            mixed = len(types) > 1 and "sequence" in types
            self._builder.note_elements(result, "any" if mixed else "tensor")
        if len(types) < 2:
            return result
        return Outputs(result, tuple(output.name for output in op.schema.outputs), types)

    def _value(self, node: Any) -> Any:
        return self._translation.value(self._visit(node), node)

    def _python_defaults(self, op: _Op, given: dict[str, Any]) -> dict[str, Any]:
        """Pass explicitly the defaults of the Python wrapper that the OpDef does not have."""
        return {
            one.op_name: self._translation.value(Static(one.default, one.name), None)
            for one in op.signature.parameters
            if one.differs and one.op_name not in given
        }

    def _node_name(self, arguments: list[Argument]) -> Any:
        """Return the name that a call gives its node, or text of the IR; "" for none and None."""
        for argument in arguments:
            if argument.parameter is _NAME:
                name = known(argument.value)
                if name is None:
                    return ""
                if isinstance(name, str):
                    return name
                if is_text(argument.value):
                    return argument.value
                self._source.fail(
                    argument.node,
                    NODE_NAME,
                    "the name of a node is a string that is written out, or an f-string",
                )
        return ""

    def _check(self, op: _Op, argument: Argument) -> None:
        """Check an argument against the declaration, as far as the source shows its value."""
        spec = op.schema.input_or_attr(argument.parameter.op_name)
        value = known(argument.value)
        spelling = f"`{argument.parameter.name}` of {op.spelling}"
        if not isinstance(spec, AttrSpec):
            if value is None:
                self._source.fail(argument.node, NOT_NONE, f"the input {spelling} cannot be None")
            return
        if dialect.name_of(argument.value) == "tensor" and spec.type != "tensor":
            self._source.fail(
                argument.node,
                TENSOR_ATTRIBUTE,
                f"the attribute {spelling} must be known when the op is expanded, and this is a "
                "tensor; give an attribute of the composite or a constant",
            )
        if value is None and argument.parameter.required:
            self._source.fail(argument.node, NOT_NONE, f"the attribute {spelling} cannot be None")
        if value is not ABSENT and value is not None:
            self._check_attr(spec, spelling, argument.node, value)

    def _check_attr(self, spec: AttrSpec, spelling: str, node: Any, value: object) -> None:
        types = _PYTHON_TYPES.get(spec.type)
        if spec.type == "type" and not constants.is_dtype(value):
            self._source.fail(
                node, ATTRIBUTE_VALUE, f"the attribute {spelling} is a dtype: write tf.float32"
            )
        if types is not None and not isinstance(value, types):
            self._source.fail(
                node,
                ATTRIBUTE_VALUE,
                f"the attribute {spelling} is of type {spec.type}, and this is {value!r}",
            )
        if not spec.accepts(value):
            allowed = ", ".join(repr(getattr(one, "name", one)) for one in spec.allowed)
            self._source.fail(
                node,
                ATTRIBUTE_VALUE,
                f"the attribute {spelling} is one of {allowed}, and this is "
                f"{getattr(value, 'name', value)!r}",
            )
        if spec.minimum is not None and isinstance(value, int) and value < spec.minimum:
            self._source.fail(
                node,
                ATTRIBUTE_VALUE,
                f"the attribute {spelling} is at least {spec.minimum}, and this is {value}",
            )


# Every op takes a name for its node.
_NAME = Parameter("name", "name", None)


def _signature(
    spelling: str, schema: OpSchema, parameters: tuple[Parameter, ...], positional: int
) -> Signature:
    derived = tuple(attr.name for attr in schema.derived)
    return Signature(spelling, (*parameters, _NAME), positional, derived, unlisted=("name",))


def _composite(spelling: str, composable: Composable) -> _Op:
    schema = composable.schema
    signature = schema.signature()
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
    return _Op(
        schema,
        _signature(spelling, schema, parameters, len(by_position)),
        program=composable.digest,
    )
