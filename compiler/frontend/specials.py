"""The few functions of Python and TensorFlow that have a meaning of their own in a body.

len(), bool() and isinstance(), and tf.convert_to_tensor, which makes an op's input of what is no
tensor.

Not for: functions of lists and numbers (python_calls.py) and of text (strings.py), functions that
are inlined (callables.py), ops (calls.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gast

from composite.compiler.errors.calls import BUILTIN_CALL
from composite.compiler.frontend import callables
from composite.compiler.frontend.analysis.capture import Static
from composite.compiler.frontend.arguments import Signature, match
from composite.compiler.frontend.bindings import Translation, known
from composite.compiler.frontend.kinds import may_be_array
from composite.compiler.frontend.python_calls import PythonCalls
from composite.compiler.frontend.strings import Strings
from composite.compiler.frontend.tf_ops import Parameter
from composite.compiler.tfr import Call, dialect

_VALUE = (Parameter("value", "value"), Parameter("dtype", "dtype", None))
_SHAPE, _NAME = Parameter("shape", "shape", None), Parameter("name", "name", None)
_CONVERT = Signature("tf.convert_to_tensor", (*_VALUE, _NAME), 2, unlisted=("name",))
_CONSTANT = Signature("tf.constant", (*_VALUE, _SHAPE, _NAME), 3, unlisted=("name",))


class Specials:
    """Translates their calls. `visit` translates an expression and returns its binding."""

    def __init__(self, translation: Translation, visit: Callable[[Any], Any]) -> None:
        self._translation = translation
        self._source = translation.source
        self._builder = translation.builder
        self._visit = visit
        self._python = PythonCalls(translation, visit)
        self._strings = Strings(translation, visit)

    def find(self, function: object) -> Callable[[Any], Any] | None:
        """Return the translator of calls of an object; None if it has no special meaning."""
        name = _translators().get(id(function))
        if name is not None:
            return getattr(self, name)
        return self._strings.find(function) or self._python.find(function)

    def _only_argument(self, node: Any, message: str) -> Any:
        if len(node.args) != 1 or node.keywords:
            self._source.fail(node, BUILTIN_CALL, message)
        return self._translation.value(self._visit(node.args[0]), node.args[0])

    def _length(self, node: Any) -> Any:
        value = self._only_argument(node, "len() takes one argument")
        if dialect.name_of(value) == "tensor":
            self._source.fail(node, BUILTIN_CALL, "len() of a tensor: write `x.shape[0]`")
        return self._builder.length(value)

    def _bool(self, node: Any) -> Any:
        value = self._only_argument(node, "bool() takes one argument")
        return self._builder.unary("not", self._builder.unary("not", value))

    def _isinstance(self, node: Any) -> Any:
        """Answer from the static type if it shows the answer: it decides what is translated."""
        if len(node.args) != 2 or node.keywords:
            self._source.fail(node, BUILTIN_CALL, "isinstance() takes two arguments")
        value = self._translation.value(self._visit(node.args[0]), node.args[0])
        asked = self._kinds(node.args[1])
        answer = callables.is_instance(known(value), dialect.name_of(value), asked)
        if answer is not None and not (dialect.name_of(value) == "tensor" and may_be_array(value)):
            return self._builder.constant(answer)
        types = callables.type_names()
        names = [types.get(kind) if isinstance(kind, type) else None for kind in asked]
        if None in names:
            self._source.fail(
                node.args[1],
                BUILTIN_CALL,
                "isinstance() knows int, float, bool, str, list, tuple, tf.Tensor, tf.TensorShape "
                "and tf.DType, and tuples of these",
            )
        texts = [self._builder.constant(name) for name in dict.fromkeys(names)]
        return self._builder.builtin("isinstance", [value, *texts])

    def _kinds(self, node: Any) -> list[Any]:
        """Return the types that isinstance() asks for."""
        if isinstance(node, gast.Tuple):
            return [kind for element in node.elts for kind in self._kinds(element)]
        binding = self._visit(node)
        kind = binding.object if isinstance(binding, Static) else known(binding)
        return _flat(kind) if isinstance(kind, tuple) else [kind]

    def _convert(self, node: Any) -> Any:
        """tf.convert_to_tensor: a tensor is itself, anything else becomes the input of an op."""
        given = self._given(node, _CONVERT)
        return self._as_tensor(given["value"], given.get("dtype"))

    def _constant(self, node: Any) -> Any:
        """tf.constant: a tensor of what is written, one number in every place of a shape."""
        given = self._given(node, _CONSTANT)
        value, shape = given["value"], given.get("shape")
        if dialect.name_of(value) == "tensor":
            self._source.fail(
                node, BUILTIN_CALL, "tf.constant() of a tensor: use the tensor as it is"
            )
        tensor = self._as_tensor(value, given.get("dtype"))
        if shape is None or known(shape) is None:
            return tensor
        if dialect.name_of(value) == "sequence":
            call = Call("Reshape", ("tensor", "shape"), False, "tensor")
            return self._builder.call(call, [tensor, shape])
        return self._builder.call(Call("Fill", ("dims", "value"), False, "tensor"), [shape, tensor])

    def _given(self, node: Any, signature: Signature) -> dict[str, Any]:
        arguments = match(self._source, node, signature, self._visit)
        return {
            one.parameter.name: self._translation.value(one.value, one.node) for one in arguments
        }

    def _as_tensor(self, value: Any, dtype: Any) -> Any:
        """Convert: with a dtype, numbers become just that, and a tensor must be of it."""
        if dtype is not None and known(dtype) is not None:
            call = Call("Identity", ("input", "T"), False, "tensor")
            return self._builder.call(call, [value, dtype])
        if dialect.name_of(value) == "tensor":
            return value
        return self._builder.call(Call("Identity", ("input",), False, "tensor"), [value])


def _flat(kinds: tuple[Any, ...]) -> list[Any]:
    """Return the types in a tuple of types, which may be nested."""
    return [one for kind in kinds for one in (_flat(kind) if isinstance(kind, tuple) else [kind])]


@functools.cache
def _translators() -> dict[int, str]:
    """The methods of Specials, by the identities of the functions, which are never freed."""
    convert, constant = callables.conversions()
    methods = {
        len: "_length",
        bool: "_bool",
        isinstance: "_isinstance",
        convert: "_convert",
        constant: "_constant",
    }
    return {id(function): name for function, name in methods.items()}
