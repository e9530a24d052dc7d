"""The signatures in libraries that TVM compiled.

The error messages of a compiled function contain its signature, so its library has a text such as
`row_sums(rows: Tensor([n, m], float32), sums: Tensor([n], float32))`. It is meant for people and
has Python's syntax; parts that cannot be parsed are treated as unknown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

ALIGNMENT = 64
"""What the code that TVM compiles assumes the addresses of tensors to be multiples of."""

_NUMBER = ("T.int32", "T.int64")  # of numbers that TVM prints with a type


class Parameter(NamedTuple):
    """A tensor argument of a function.

    Attributes:
        name: its name in TVM.
        dtype: its name in TVM and TensorFlow.
        dims: sizes; a varying dim is a text, a name or an expression of names.
    """

    name: str
    dtype: str
    dims: tuple[int | str, ...]


def signature(library: bytes, function: str) -> tuple[Parameter, ...] | None:
    """The tensor arguments of a function, inputs then outputs; None if they are unknown."""
    text = re.compile(rb"(?<![\w.])" + re.escape(function.encode()) + rb"\(([ -~]*)\)\0")
    found = {match[1] for match in text.finditer(library)}
    if len(found) != 1:
        return None
    try:
        return tuple(_parameter(one) for one in _split(found.pop().decode()))
    except (SyntaxError, ValueError):
        return None


def parsed(dim: str) -> int | str:
    """Parses a dim that TVM printed. ValueError or SyntaxError if it is invalid."""
    return _dim(ast.parse(dim, mode="eval").body)


def evaluate(dim: str, sizes: Mapping[str, Any]) -> Any:
    """The value of a dim for given values of its names, which are numbers or tensors."""
    return eval(dim, {"__builtins__": {}}, dict(sizes))  # _Plain permits arithmetic only


def names(dim: str) -> set[str]:
    """The names in a dim of a parameter."""
    return {node.id for node in ast.walk(ast.parse(dim)) if isinstance(node, ast.Name)}


def _split(text: str) -> Iterator[str]:
    """Splits a signature at the commas outside of brackets."""
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            yield text[begin:at]
            begin = at + 1
    if text[begin:].strip():
        yield text[begin:]


def _parameter(text: str) -> Parameter:
    name, colon, kind = text.strip().rpartition(": ")
    match ast.parse(kind, mode="eval").body:
        case ast.Call(ast.Name("Tensor"), [ast.List(dims), ast.Name(dtype)], []) if colon:
            return Parameter(name, dtype, tuple(map(_dim, dims)))
    raise ValueError(f"{text} is no tensor")


def _dim(node: ast.expr) -> int | str:
    plain = ast.unparse(_Plain().visit(node))
    return int(plain) if plain.isdecimal() else plain


class _Plain(ast.NodeTransformer):
    """Keeps arithmetic, turns `T.int64(1)` into a number, and raises ValueError for the rest."""

    _ARITHMETIC = (
        ast.BinOp, ast.Name, ast.Constant, ast.Load,
        ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod,
    )  # fmt: skip

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, self._ARITHMETIC):
            raise ValueError(f"{ast.unparse(node)} is no arithmetic")
        return super().generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node.func) in _NUMBER and len(node.args) == 1:
            return self.visit(node.args[0])
        raise ValueError(f"{ast.unparse(node)} is no arithmetic")
