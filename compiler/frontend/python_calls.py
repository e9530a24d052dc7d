"""Calls of Python's own functions of lists and numbers: range() and zip(), float() and max().

Whether a call fits its function is checked here; what it gives, the expansion computes.

Not for: len(), bool() and isinstance() (specials.py).
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import Any

from composite.compiler.errors.calls import BUILTIN_CALL
from composite.compiler.errors.names import NO_CONSTANT
from composite.compiler.frontend.bindings import OnePass, Translation, known
from composite.compiler.tfr import NotConstantError, dialect


@dataclasses.dataclass(frozen=True)
class _Rule:
    """How a function is called.

    Attributes:
        method: what translates it.
        least, most: how many arguments it takes by position.
        names: the parameters that may also be given by name, in their order.
        by_name: those that are given by name alone.
        iterates: how many of the first arguments may be iterators.
        tensor: what to write if an argument is a tensor; without it, it may be one.
    """

    method: str
    least: int
    most: int
    names: tuple[str, ...] = ()
    by_name: tuple[str, ...] = ()
    iterates: int = 0
    tensor: str = ""


_MOST = 64

_RULES: dict[Any, _Rule] = {
    range: _Rule("_list", 1, 3),
    list: _Rule("_list", 0, 1, iterates=1),
    tuple: _Rule("_list", 0, 1, iterates=1),
    enumerate: _Rule("_iterator", 1, 2, ("iterable", "start"), iterates=1),
    zip: _Rule("_iterator", 0, _MOST, by_name=("strict",), iterates=_MOST),
    reversed: _Rule("_iterator", 1, 1),
    float: _Rule("_number", 1, 1, tensor="tf.cast(x, tf.float32), which keeps it a tensor"),
    int: _Rule("_number", 1, 1, tensor="tf.cast(x, tf.int32), which keeps it a tensor"),
    round: _Rule("_plain", 1, 2, ("number", "ndigits"), tensor="tf.round(x)"),
    abs: _Rule("_plain", 1, 1),
    divmod: _Rule("_plain", 2, 2, tensor="`a // b` and `a % b`"),
    pow: _Rule("_power", 2, 3, ("base", "exp", "mod")),
    min: _Rule("_best", 1, _MOST, (), ("default",), 1, "tf.minimum(a, b), or tf.reduce_min(x)"),
    max: _Rule("_best", 1, _MOST, (), ("default",), 1, "tf.maximum(a, b), or tf.reduce_max(x)"),
    sum: _Rule("_sum", 1, 2, ("", "start"), iterates=1),
    any: _Rule("_plain", 1, 1, iterates=1, tensor="tf.reduce_any(x)"),
    all: _Rule("_plain", 1, 1, iterates=1, tensor="tf.reduce_all(x)"),
    sorted: _Rule("_sorted", 1, 1, by_name=("reverse",), iterates=1, tensor="tf.sort(x)"),
}

_KEY = "a function is not a value here; compute the keys in a list, and compare these"

_KINDS = {
    "tensor": "a tensor, whose value is known only when the op runs",
    "sequence": "a list: write range(len(...))",
    "dims": "a shape: write range(x.shape[0])",
}


class PythonCalls:
    """Translates their calls. `visit` translates an expression and returns its binding."""

    def __init__(self, translation: Translation, visit: Callable[[Any], Any]) -> None:
        self._translation = translation
        self._source = translation.source
        self._builder = translation.builder
        self._visit = visit

    def find(self, function: object) -> Callable[[Any], Any] | None:
        """Return the translator of calls of an object; None if it is none of them."""
        found = _by_identity().get(id(function))
        if found is None:
            return None
        name, rule = found
        return functools.partial(getattr(self, rule.method), name, rule)

    def _list(self, name: str, rule: _Rule, node: Any) -> Any:
        """range(), list(), tuple()."""
        values, _ = self._arguments(name, rule, node)
        for argument, value in zip(node.args, values, strict=True):
            kind = dialect.name_of(value)
            if name == "range" and kind in ("sequence", "dims"):
                self._fail(argument, f"range() of {_KINDS[kind]}")
        return self._builder.builtin(name, values)

    def _iterator(self, name: str, rule: _Rule, node: Any) -> Any:
        """enumerate(), zip(), reversed()."""
        values, keywords = self._arguments(name, rule, node)
        if keywords and known(keywords["strict"]) is not False:
            strict = next(one.value for one in node.keywords if one.arg == "strict")
            self._fail(strict, "zip() with `strict` is not supported: assert equal lengths")
        if name == "reversed" and dialect.name_of(values[0]) == "tensor":
            self._fail(node.args[0], f"reversed() of {_KINDS['tensor']}")
        return OnePass(self._builder.builtin(name, values), name)

    def _number(self, name: str, rule: _Rule, node: Any) -> Any:
        """float(), int(): of a string that is written out, the number in it."""
        (value,), _ = self._arguments(name, rule, node)
        text = known(value)
        if not isinstance(text, str):
            return self._builder.builtin(name, [value])
        try:
            return self._builder.constant(float(text) if name == "float" else int(text))
        except (ValueError, NotConstantError) as error:
            return self._source.fail(node, NO_CONSTANT, str(error))

    def _plain(self, name: str, rule: _Rule, node: Any) -> Any:
        """round(), abs(), divmod(), any(), all()."""
        values, _ = self._arguments(name, rule, node)
        return self._builder.builtin(name, values)

    def _power(self, name: str, rule: _Rule, node: Any) -> Any:
        """pow(): with two arguments an operator."""
        values, _ = self._arguments(name, rule, node)
        if len(values) == 3 and known(values[2]) is not None:
            return self._builder.builtin(name, values)
        return self._builder.binary(name, values[0], values[1])

    def _best(self, name: str, rule: _Rule, node: Any) -> Any:
        """min(), max(): of the items of one argument, or of several arguments."""
        values, keywords = self._arguments(name, rule, node)
        if len(values) == 1:
            return self._builder.builtin(name, [*values, *keywords.values()])
        if keywords:
            self._fail(node, f"{name}() takes a default for one argument only, a list")
        return self._builder.builtin(name, [self._builder.make_list(values)])

    def _sum(self, name: str, rule: _Rule, node: Any) -> Any:
        """sum(), which compensates the rounding errors of floats from Python 3.12 on."""
        values, _ = self._arguments(name, rule, node)
        name = "sum_compensated" if sys.version_info >= (3, 12) else name
        return self._builder.builtin(name, values)

    def _sorted(self, name: str, rule: _Rule, node: Any) -> Any:
        """sorted(), in either order."""
        values, keywords = self._arguments(name, rule, node)
        reverse = keywords.get("reverse") or self._builder.constant(False)
        return self._builder.builtin(name, [*values, reverse])

    def _arguments(self, name: str, rule: _Rule, node: Any) -> tuple[list[Any], dict[str, Any]]:
        """Translate the arguments; returns those of parameters in order, and the others by name."""
        for keyword in node.keywords:
            if keyword.arg == "key" and name in ("min", "max", "sorted"):
                self._fail(keyword.value, f"{name}() with a `key` is not supported: {_KEY}")
            if keyword.arg not in (*rule.names, *rule.by_name):
                message = f"{name}() takes no `{keyword.arg}` in the body of a composite"
                self._fail(keyword.value, message)
        given = [one.arg for one in node.keywords if one.arg in rule.names]
        count = len(node.args) + len(given)
        if not rule.least <= count <= rule.most:
            most = "" if rule.most in (rule.least, _MOST) else f" to {rule.most}"
            least = f"at least {rule.least}" if rule.most == _MOST else rule.least
            self._fail(node, f"{name}() takes {least}{most} arguments")
        expected = rule.names[len(node.args) : count]
        if sorted(given) != sorted(expected):
            self._fail(node, f"{name}() takes its arguments in the order {', '.join(rule.names)}")
        values = [self._argument(name, rule, one, i) for i, one in enumerate(node.args)]
        by_name = {
            one.arg: self._argument(name, rule, one.value, self._position(rule, one.arg))
            for one in node.keywords
        }
        values += [by_name.pop(one) for one in expected]
        return values, by_name

    @staticmethod
    def _position(rule: _Rule, keyword: str) -> int:
        return rule.names.index(keyword) if keyword in rule.names else _MOST

    def _argument(self, name: str, rule: _Rule, node: Any, index: int) -> Any:
        binding = self._visit(node)
        if index < rule.iterates:
            value = self._translation.iterated(binding, node)
        else:
            value = self._translation.value(binding, node)
        if rule.tensor and dialect.name_of(value) == "tensor":
            self._fail(node, f"{name}() of a tensor is not supported: write {rule.tensor}")
        return value

    def _fail(self, node: Any, message: str) -> None:
        self._source.fail(node, BUILTIN_CALL, message)


@functools.cache
def _by_identity() -> dict[int, tuple[str, _Rule]]:
    """The rules by the identities of the functions, some of which cannot be compared."""
    return {id(function): (function.__name__, rule) for function, rule in _RULES.items()}
