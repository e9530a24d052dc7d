"""LLVM's text of functions on floats whose bits are elements of the ring.

A kernel over the ring keeps its floats: their bits are the ring's elements. So its loads, stores
and choices stay as they are, and only arithmetic becomes a call of one of these functions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from composite.compiler.tvm.algebra import ring

_TYPES = {64: "double", 32: "float", 16: "half"}
_INLINED = ("add", "sub", "mul", "neg", "order")


@dataclass
class _Body:
    """Instructions under construction, on vectors of integers."""

    bits: int
    lanes: int
    lines: list[str] = field(default_factory=list)
    numbers: Any = field(default_factory=itertools.count)

    @property
    def type(self) -> str:
        return self.vector(f"i{self.bits}")

    def vector(self, element: str) -> str:
        return f"<{self.lanes} x {element}>" if self.lanes > 1 else element

    def literal(self, value: int) -> str:
        return f"splat (i{self.bits} {value})" if self.lanes > 1 else str(value)

    def emit(self, text: str) -> str:
        name = f"%v{next(self.numbers)}"
        self.lines.append(f"  {name} = {text}")
        return name


@dataclass(frozen=True)
class Traced:
    """A word whose arithmetic is written down."""

    body: _Body
    name: str

    def _with(self, op: str, other: Traced | int) -> Traced:
        body = self.body
        mask = (1 << body.bits) - 1
        right = other.name if isinstance(other, Traced) else body.literal(other & mask)
        return Traced(body, body.emit(f"{op} {body.type} {self.name}, {right}"))

    def __add__(self, other: Traced | int) -> Traced:
        return self._with("add", other)

    def __sub__(self, other: Traced | int) -> Traced:
        return self._with("sub", other)

    def __mul__(self, other: Traced | int) -> Traced:
        return self._with("mul", other)

    def __and__(self, other: Traced | int) -> Traced:
        return self._with("and", other)

    def __or__(self, other: Traced | int) -> Traced:
        return self._with("or", other)

    def __xor__(self, other: Traced | int) -> Traced:
        return self._with("xor", other)

    def __lshift__(self, other: Traced | int) -> Traced:
        return self._with("shl", other)

    def __rshift__(self, other: Traced | int) -> Traced:
        return self._with("lshr", other)


def symbol(function: str, bits: int, lanes: int) -> str:
    """Return the name of a function for floats of so many bits, in vectors of so many lanes."""
    return f"composite_ring_{function}_{bits}x{lanes}"


def text(function: str, bits: int, lanes: int, operands: int) -> str:
    """Return the definition of a function of floats; that of `order` gives integers."""
    body = _Body(bits, lanes)
    floats = body.vector(_TYPES[bits])
    words = [
        Traced(body, body.emit(f"bitcast {floats} %x{i} to {body.type}")) for i in range(operands)
    ]
    word = ring.function(function)(*words, bits=bits)
    result, kind = word.name, body.type
    if function != "order":
        result, kind = body.emit(f"bitcast {body.type} {word.name} to {floats}"), floats
    parameters = ", ".join(f"{floats} %x{i}" for i in range(operands))
    inlined = "alwaysinline" if function in _INLINED else "noinline"
    return "\n".join(
        [
            f"define linkonce_odr hidden {kind} @{symbol(function, bits, lanes)}({parameters})",
            f"    {inlined} nounwind memory(none) {{",
            *body.lines,
            f"  ret {kind} {result}",
            "}",
            "",
        ]
    )
