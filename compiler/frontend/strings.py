"""Text that is made of values: f-strings, `%`, str.format, str.join, str() and the like.

What the source shows is formatted here, by Python; what the expansion knows (attributes, dims,
variables of loops) is formatted there, by the functions str(), repr(), ascii(), format() and join()
of the IR. A template is written out: its parts are translated one by one.

Not for: the messages of errors (messages.py).
"""

from __future__ import annotations

import functools
import itertools
import re
import string
from collections.abc import Callable, Iterator
from typing import Any

import gast

from composite.compiler.errors.expressions import FORMATTED
from composite.compiler.frontend.analysis.capture import Static
from composite.compiler.frontend.bindings import Translation, known
from composite.compiler.frontend.kinds import is_list
from composite.compiler.tfr import constants, dialect
from composite.compiler.tfr.canonicalize import ABSENT

_CONVERSIONS: dict[str, Callable[[object], str]] = {"s": str, "r": repr, "a": ascii}
_FUNCTIONS = {"s": "str", "r": "repr", "a": "ascii"}
_NAMES = {id(function): function.__name__ for function in (str, repr, ascii, format)}

# Of `%`: flags, a width, a precision, and the type of the conversion.
_PERCENT = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?:\.(?P<precision>\d*))?[hlL]?(?P<type>.?)", re.DOTALL
)

_TYPES = tuple("sradiuoxXeEfFgG")

_LATER = (
    "text is made before the op runs, and a tensor has its value only then: format attributes, "
    "dims and numbers, or call tf.strings.format"
)


class Strings:
    """Translates them. `visit` translates an expression and returns its binding."""

    def __init__(self, translation: Translation, visit: Callable[[Any], Any]) -> None:
        self._visit = visit
        self._translation = translation
        self._source = translation.source
        self._builder = translation.builder

    def find(self, function: object) -> Callable[[Any], Any] | None:
        """Return the translator of calls of str() and the like; None if it is none of them."""
        name = _NAMES.get(id(function))
        return None if name is None else functools.partial(self._function, name)

    def joined(self, node: Any) -> Any:
        """An f-string, as a value of the IR."""
        return self._text(self._joined(node))

    def _joined(self, node: Any) -> Any:
        return self._sum([self._part(part) for part in node.values])

    def _part(self, node: Any) -> Any:
        if isinstance(node, gast.Constant):
            return str(node.value)
        spec = "" if node.format_spec is None else self._joined(node.format_spec)
        conversion = "" if node.conversion == -1 else chr(node.conversion)
        return self.formatted(self._visit(node.value), node.value, conversion, spec)

    def formatted(self, binding: Any, node: Any, conversion: str = "", spec: Any = "") -> Any:
        """Format a binding: a str of Python if all is known here, else a value of the IR."""
        value, text = known(binding), spec if isinstance(spec, str) else known(spec)
        if _is_constant(value) and text is not ABSENT:
            try:
                value = _CONVERSIONS[conversion](value) if conversion else value
                return format(value, text)
            except (TypeError, ValueError) as error:
                self._fail(node, str(error))
        made = self._known_later(binding, node)
        if conversion:
            made = self._builder.builtin(_FUNCTIONS[conversion], [made])
        if conversion and text == "":
            return made
        return self._builder.builtin("format", [made, self._text(spec)])

    def _known_later(self, binding: Any, node: Any) -> Any:
        value = self._translation.value(binding, node)
        if dialect.name_of(value) == "tensor":
            self._fail(node, _LATER)
        return value

    def _function(self, name: str, node: Any) -> Any:
        """str(), repr(), ascii(), and format() with its specification."""
        most = 2 if name == "format" else 1
        if node.keywords or not 1 <= len(node.args) <= most:
            self._fail(node, f"{name}() takes {'one or two arguments' if most == 2 else 'one'}")
        binding = self._visit(node.args[0])
        if name == "format":
            spec = (
                self._known_later(self._visit(node.args[1]), node.args[1]) if node.args[1:] else ""
            )
            return self._text(self.formatted(binding, node.args[0], spec=spec))
        return self._text(self.formatted(binding, node.args[0], name[0]))

    def method(self, node: Any, owner: Any) -> Any:
        """A call of .format() or .join() of a text."""
        if node.func.attr == "join":
            if node.keywords or len(node.args) != 1:
                self._fail(node, ".join() takes one argument, the strs")
            items = self._translation.iterated(self._visit(node.args[0]), node.args[0])
            if dialect.name_of(items) == "tensor":
                self._fail(node.args[0], "for strings in tensors call tf.strings.reduce_join")
            return self._builder.builtin("join", [items, self._translation.value(owner, node)])
        template = known(owner)
        if not isinstance(template, str):
            self._fail(node.func, "the text whose .format() is called must be written out")
        if any(one.arg is None for one in node.keywords):
            self._fail(node, ".format() takes its arguments one by one, without `**`")
        given = {str(i): one for i, one in enumerate(node.args)}
        given |= {one.arg: one.value for one in node.keywords}
        arguments = {name: (self._visit(one), one) for name, one in given.items()}
        numbers = map(str, itertools.count())
        return self._text(self._sum(self._fields(template, arguments, node, numbers, nested=False)))

    def _fields(
        self,
        template: str,
        arguments: dict[str, tuple[Any, Any]],
        node: Any,
        numbers: Iterator[str],
        *,
        nested: bool,
    ) -> list[Any]:
        """Translate a template of .format(), whose specifications may have fields too."""
        parts: list[Any] = []
        try:
            fields = list(string.Formatter().parse(template))
        except ValueError as error:
            self._fail(node, f"{template!r}: {error}")
        for text, field, spec, conversion in fields:
            parts.append(text)
            if field is None:
                continue
            name = field or next(numbers)
            if nested and spec:
                self._fail(node, f"{template!r}: a specification has no specification of its own")
            if name not in arguments:
                self._fail(node, f".format() is given nothing for the field `{name}`")
            binding, at = arguments[name]
            if conversion is not None and conversion not in _FUNCTIONS:
                self._fail(node, f"{template!r}: there is no conversion `!{conversion}`")
            parsed = self._sum(self._fields(spec or "", arguments, node, numbers, nested=True))
            parts.append(self.formatted(binding, at, conversion or "", parsed))
        return parts

    def percent(self, template: str, node: Any) -> Any:
        """`template % values`: each conversion as a specification of format()."""
        values = node.elts if isinstance(node, gast.Tuple) else [node]
        given = iter([(self._single(one, node), one) for one in values])
        parts: list[Any] = []
        end = 0
        for found in _PERCENT.finditer(template):
            parts.append(template[end : found.start()])
            end = found.end()
            if found["type"] == "%":
                parts.append("%")
                continue
            binding, at = next(given, (None, None))
            if at is None:
                self._fail(node, f"`%` has no value for `{found[0]}`")
            parts.append(self._converted(found, binding, at))
        if next(given, None) is not None:
            self._fail(node, "`%` has more values than conversions")
        return self._text(self._sum([*parts, template[end:]]))

    def _single(self, node: Any, values: Any) -> Any:
        """Translate a value of `%`. A name that may be a tuple stands for several."""
        binding = self._visit(node)
        if node is not values:
            return binding
        if isinstance(binding, Static):
            several = isinstance(binding.object, tuple)
        else:
            value = self._translation.value(binding, node)
            several = dialect.name_of(value) in ("sequence", "any") and not is_list(value)
        if several:
            self._fail(node, "write the values of `%` out, as a tuple: `% (a, b)`")
        return binding

    def _converted(self, found: re.Match[str], binding: Any, node: Any) -> Any:
        kind, flags, precision = found["type"], found["flags"], found["precision"]
        if kind not in _TYPES:
            self._fail(node, f"`{found[0]}` is not supported: write an f-string")
        if kind in _FUNCTIONS:
            spec = "" if precision is None else f".{precision or 0}"
            align = "<" if "-" in flags else ">"
            spec = f"{align}{found['width']}{spec}" if found["width"] else spec
            text = self.formatted(binding, node, kind)
            text = Static(text, "") if isinstance(text, str) else text
            return self.formatted(text, node, "", spec)
        spec = "<" if "-" in flags else ""
        spec += "+" if "+" in flags else " " if " " in flags else ""
        spec += "#" if "#" in flags and kind not in "diu" else ""
        spec += "0" if "0" in flags and "-" not in flags else ""
        spec += found["width"]
        if kind in "diuoxX" and precision is not None:
            self._fail(node, f"`{found[0]}` is not supported: an int has no precision here")
        spec += "" if precision is None else f".{precision or 0}"
        if kind in "diu":
            return self._whole(binding, node, spec + "d")
        return self.formatted(binding, node, "", spec + kind)

    def _whole(self, binding: Any, node: Any, spec: str) -> Any:
        """Format a number as an int, toward zero as `%d` does."""
        value = known(binding)
        if isinstance(value, (int, float)):
            return self.formatted(Static(int(value), ""), node, "", spec)
        whole = self._builder.builtin("int", [self._known_later(binding, node)])
        return self.formatted(whole, node, "", spec)

    def _sum(self, parts: list[Any]) -> Any:
        """Join texts: a str of Python if all are, else a value of the IR."""
        merged: list[Any] = []
        for part in parts:
            if isinstance(part, str) and merged and isinstance(merged[-1], str):
                merged[-1] += part
            elif part != "" or not isinstance(part, str):
                merged.append(part)
        if all(isinstance(part, str) for part in merged):
            return "".join(merged)
        first, *others = (self._text(part) for part in merged)
        for other in others:
            first = self._builder.binary("add", first, other)
        return first

    def _text(self, text: Any) -> Any:
        return self._builder.constant(text) if isinstance(text, str) else text

    def _fail(self, node: Any, message: str) -> Any:
        return self._source.fail(node, FORMATTED, message)


def _is_constant(value: object) -> bool:
    """Say whether a value is a constant of the language, which Python itself may format."""
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, (int, float, str)) or constants.is_dtype(value)
