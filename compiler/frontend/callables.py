"""Callees that are not ops: helpers, functions of the library, functions defined in the body.

Not for: ops (tf_ops.py), translating what is found (inline.py).
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import types
from collections.abc import Sequence
from typing import Any, NoReturn

from composite.compiler import library
from composite.compiler.errors.calls import NO_TRANSLATION, NOT_CALLABLE, RANDOM_STATE
from composite.compiler.frontend import advice, tf_ops
from composite.compiler.frontend.analysis import flow
from composite.compiler.frontend.analysis.capture import Static
from composite.compiler.frontend.arguments import Signature
from composite.compiler.frontend.bindings import Function, Method
from composite.compiler.frontend.body import Body, body_of
from composite.compiler.frontend.tf_ops import Parameter
from composite.compiler.source import (
    CompositeSyntaxError,
    NotAFunctionError,
    Source,
    SourceNotFoundError,
)
from composite.compiler.tfr.canonicalize import ABSENT

# Built-in functions that have no meaning in a body, and what to write instead.
_BUILTIN_ADVICE = {
    "print": "call tf.raw_ops.PrintV2",
    "map": "write a comprehension, `[f(x) for x in xs]`",
    "filter": "write a comprehension, `[x for x in xs if f(x)]`",
    "iter": "go through it in a `for`",
    "next": "take the element by its index, `xs[0]`",
    "complex": "call tf.complex",
    "slice": "write the slice out, `xs[a:b]`",
}

# Packages whose functions are not inlined: they are not written in the language of bodies.
_FOREIGN = ("numpy", "scipy", "builtins")


@dataclasses.dataclass(frozen=True)
class Callee:
    """A function about to be inlined; `gives` is the class that its result is an object of."""

    function: Function
    signature: Signature
    in_library: bool = False
    gives: type | None = None


def written(function: Function) -> Callee:
    """Return the callee for a function or lambda that is defined in a body."""
    definition = function.body.source.tree
    positional = len(definition.args.posonlyargs) + len(definition.args.args)
    missing = Parameter("", "").default
    parameters = tuple(
        Parameter(name, name, function.defaults.get(name, missing))
        for name in flow.parameters(definition)
    )
    return Callee(function, Signature(function.body.name, parameters, positional))


def find(source: Source, node: Any, static: Static) -> Callee | None:
    """Return the callee for an object that is a Python function; None if it cannot be inlined.

    Raises:
        CompositeSyntaxError: at `node` if it has no source text, at the function's own line if its
            syntax is not supported.
    """
    entry = library.find(static.object)
    if entry is not None:
        return _of_library(entry, static.spelling)
    function = _helper(static.object)
    if function is None:
        return None
    body = _body(source, node, static.spelling, function)
    return _spelled(written(Function(body, {}, _defaults(function))), static.spelling)


@functools.cache
def _of_library(entry: library.Entry, spelling: str) -> Callee:
    function: Any = entry.function
    callee = _spelled(written(Function(body_of(function), {}, _defaults(function))), spelling)
    signature = callee.signature.with_rest(entry.rest) if entry.rest else callee.signature
    return dataclasses.replace(
        callee, signature=signature, in_library=True, gives=entry.class_given()
    )


def method(found: Method, whole: Any) -> Callee:
    """Return the callee of a method, whose first argument is `whole`, the value of its object."""
    entry = library.find(found.function.object)
    assert entry is not None
    callee = _of_library(entry, found.function.spelling)
    own, *others = callee.signature.parameters
    function = dataclasses.replace(
        callee.function, defaults={**callee.function.defaults, own.name: whole}
    )
    signature = dataclasses.replace(
        callee.signature, parameters=tuple(others), positional=callee.signature.positional - 1
    )
    return dataclasses.replace(callee, function=function, signature=signature)


def _spelled(callee: Callee, spelling: str) -> Callee:
    return dataclasses.replace(
        callee, signature=dataclasses.replace(callee.signature, spelling=spelling)
    )


def _helper(value: Any) -> types.FunctionType | None:
    if not isinstance(value, types.FunctionType):
        import tensorflow as tf

        if not isinstance(value, tf.types.experimental.PolymorphicFunction):
            return None
        value = value.python_function
    if tf_ops.is_tensorflow(value):
        return None
    return None if (value.__module__ or "").split(".")[0] in _FOREIGN else value


def _body(source: Source, node: Any, spelling: str, function: types.FunctionType) -> Body:
    try:
        return body_of(function)
    except CompositeSyntaxError as error:
        raise error.called_at(spelling, source.locate(node)) from error
    except (SourceNotFoundError, NotAFunctionError) as error:
        raise source.error(node, error.mistake, error.message) from error


def _defaults(function: types.FunctionType) -> dict[str, Any]:
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    values = function.__defaults__ or ()
    defaults = dict(zip(names[len(names) - len(values) :], values, strict=True))
    defaults.update(function.__kwdefaults__ or {})
    return {name: Static(value, name) for name, value in defaults.items()}


def conversions() -> tuple[Any, Any]:
    """Return tf.convert_to_tensor and tf.constant, which have a meaning of their own in a body."""
    import tensorflow as tf

    return tf.convert_to_tensor, tf.constant


@functools.cache
def type_names() -> dict[Any, str]:
    """Return the types that isinstance() asks for when the op is expanded, and their names."""
    import tensorflow as tf

    plain = (int, float, bool, str, list, tuple, range, type(None))
    return {one: one.__name__ for one in (*plain, tf.Tensor, tf.TensorShape)} | {tf.DType: "DType"}


def is_instance(value: Any, type_: str, kinds: Sequence[Any]) -> bool | None:
    """Answer isinstance() for a known value, or one of a static type; None if it is not known."""
    import tensorflow as tf

    tensor, shape, lists = tf.Tensor, tf.TensorShape, {list, tuple}
    if not all(isinstance(kind, type) for kind in kinds):
        return None
    if value is not ABSENT:
        return isinstance(value, tuple(kinds))
    asked = set(kinds)
    if type_ == "tensor" and asked <= {tensor, shape, *lists, int, float, bool, str}:
        return tensor in asked
    if type_ == "sequence" and (asked >= lists or not asked & lists):
        return bool(asked & lists)
    if type_ in ("attr", "dims") and asked <= {tensor, shape, *lists}:
        return type_ == "dims" and shape in asked
    return None


def refuse(source: Source, node: Any, function: Static) -> NoReturn:
    """Fail at a call of an object that a body cannot call."""
    mistake = NO_TRANSLATION if callable(function.object) else NOT_CALLABLE
    if tf_ops.is_random(function.object) and tf_ops.is_tensorflow(function.object):
        mistake = RANDOM_STATE
    source.fail(node, mistake, _advice(function))


def _advice(function: Static) -> str:
    """Say why an object cannot be called in a body, and what to write instead."""
    name = getattr(function.object, "__name__", function.spelling)
    if name in _BUILTIN_ADVICE and function.object is getattr(builtins, name, None):
        return f"`{name}` is not supported in the body of a composite: {_BUILTIN_ADVICE[name]}"
    if tf_ops.is_tensorflow(function.object):
        return _tensorflow_advice(function, name)
    if not callable(function.object):
        return f"`{function.spelling}` is not a function"
    if tf_ops.has_custom_gradient(function.object):
        instead = advice.instead_of("custom_gradient")
        return f"`{function.spelling}` is decorated with tf.custom_gradient: {instead}"
    raw = tf_ops.nearest_raw_op(name)
    instead = f"call tf.raw_ops.{raw}" if raw else "write what it does here, or in a function"
    return (
        f"`{function.spelling}` is no op of TensorFlow, no composite and no function of yours: "
        f"{instead}"
    )


def _tensorflow_advice(function: Static, name: str) -> str:
    if tf_ops.is_random(function.object):
        twin = tf_ops.public_twin(function.object)
        instead = f"call {twin} with a `seed` input" if twin else "make what it draws an input"
        return (
            f"{function.spelling} keeps its own random state, which a gradient that computes "
            f"the body again would not see; {instead} of the composite"
        )
    if advised := advice.instead_of(name):
        return f"{function.spelling} is not supported in the body of a composite: {advised}"
    raw = tf_ops.nearest_raw_op(name)
    instead = f"tf.raw_ops.{raw}" if raw else "the raw ops that it is made of (tf.raw_ops.*)"
    return f"{function.spelling} is a Python function of TensorFlow, not one op; call {instead}"
