"""value.name: a member of a module or class, an output of an op, `.shape`, `.dtype`, `.rank`.

Not for: methods that are called (expressions.py), which ops and functions members are (calls.py).
"""

from __future__ import annotations

from typing import Any, Protocol

from composite.compiler import library
from composite.compiler.errors.expressions import NO_ATTRIBUTE, NO_OUTPUT
from composite.compiler.errors.names import NO_MEMBER
from composite.compiler.frontend.analysis import capture
from composite.compiler.frontend.analysis.capture import MISSING, Static
from composite.compiler.frontend.bindings import Instance, Method, Outputs, Translation
from composite.compiler.source import Source
from composite.compiler.tfr import Builder, dialect

_SHAPE_ADVICE = {
    "as_list": "it is a method without arguments, `.as_list()`",
    "ndims": "write `.rank`",
    "dims": "a shape is used as a list as it is",
    "num_elements": "multiply the dims",
}

_TENSOR_ADVICE = {
    "get_shape": "write `.shape`",
    "ndim": "write `.shape.rank`",
    "numpy": "a body is compiled; its tensors have no values yet",
    "T": "call tf.raw_ops.Transpose",
    "set_shape": "call tf.raw_ops.EnsureShape",
}

_VARIABLE_ADVICE = {
    "assign": "AssignVariableOp(resource=v, value=x)",
    "assign_add": "AssignAddVariableOp(resource=v, value=x)",
    "assign_sub": "AssignSubVariableOp(resource=v, value=x)",
    "read_value": "ReadVariableOp(resource=v, dtype=tf.float32)",
    "value": "ReadVariableOp(resource=v, dtype=tf.float32)",
}


class Pass(Protocol):
    """What is needed of `Expressions`."""

    def visit(self, node: Any) -> Any:
        """Translate a node to a binding."""


def translate(expressions: Pass, translation: Translation, node: Any) -> Any:
    """Translate a gast.Attribute that is read; returns its binding."""
    owner = expressions.visit(node.value)
    if isinstance(owner, Static):
        return _member(translation.source, node, owner)
    if isinstance(owner, Outputs):
        return _output(translation, node, owner)
    if isinstance(owner, Instance):
        return _method(translation.source, node, owner)
    return _property(
        translation.source, translation.builder, node, translation.value(owner, node.value)
    )


def _output(translation: Translation, node: Any, owner: Outputs) -> Any:
    if node.attr not in owner.names:
        outputs = ", ".join(owner.names)
        translation.source.fail(
            node, NO_OUTPUT, f"no output is called `{node.attr}`; there are {outputs}"
        )
    index, builder = owner.names.index(node.attr), translation.builder
    return builder.item(owner.value, builder.constant(index), owner.types[index])


def _method(source: Source, node: Any, owner: Instance) -> Method:
    names = library.methods(owner.class_)
    if node.attr not in names:
        listed = ", ".join(f".{name}()" for name in names)
        source.fail(
            node, NO_ATTRIBUTE, f"a {owner.spelling} has no `.{node.attr}` here: it has {listed}"
        )
    function = Static(getattr(owner.class_, node.attr), f"{owner.spelling}.{node.attr}")
    return Method(function, owner)


def _member(source: Source, node: Any, owner: Static) -> Static:
    member = capture.member(owner, node.attr)
    spelling = f"{owner.spelling}.{node.attr}"
    if member is MISSING:
        advice = "a body can read the members of modules and classes"
        if capture.is_variable(owner.object):
            advice = (
                f"`{owner.spelling}` is a variable: declare it as an input `v: resource`, give it "
                f"in calls, and call {_of_variable(node.attr)}"
            )
        source.fail(node, NO_MEMBER, f"`{spelling}` is not defined; {advice}")
    return Static(member, spelling)


def _property(source: Source, builder: Builder, node: Any, owner: Any) -> Any:
    type_, name = dialect.name_of(owner), node.attr
    if type_ in ("tensor", "any") and name == "shape":
        return builder.shape(owner)
    if type_ in ("tensor", "any") and name == "dtype":
        return builder.dtype(owner)
    if type_ == "dims" and name == "rank":
        return builder.rank(owner)
    return source.fail(node, NO_ATTRIBUTE, _advice(type_, name))


def _of_variable(name: str) -> str:
    """What to call in place of a method of variables, whose handle is `v`."""
    default = "the ops of tf.raw_ops that take `resource=v`"
    return f"tf.raw_ops.{_VARIABLE_ADVICE[name]}" if name in _VARIABLE_ADVICE else default


def _advice(type_: str, name: str) -> str:
    """Say that a value of this type has no such attribute, and what to write instead."""
    if type_ == "dims":
        advice = _SHAPE_ADVICE.get(name, "it has `.rank`, its dims `[i]`, and len()")
        return f"`.{name}` of a shape is not supported: {advice}"
    if type_ in ("tensor", "any"):
        advice = _TENSOR_ADVICE.get(name, "a tensor has `.shape` and `.dtype`")
        if name in _VARIABLE_ADVICE:
            advice = f"for a variable, declared as a resource `v`, call {_of_variable(name)}"
        return f"`.{name}` of a tensor is not supported: {advice}"
    what = "a list" if type_ == "sequence" else "an attribute"
    return f"{what} has no `.{name}` in the body of a composite"
