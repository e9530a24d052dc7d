"""LLVM's text of functions on floats whose bits are elements of the ring.

A kernel over the ring keeps its floats: their bits are the ring's elements. So its loads, stores
and choices stay as they are, and only arithmetic becomes a call of one of these functions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from composite.compiler.tvm.algebra import ring
from composite.compiler.tvm.algebra.traced import Traced

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
class _Word(Traced):
    """A word of a body."""

    body: _Body
    name: str

    def emit(self, op: str, other: Any) -> _Word:
        """Write an instruction."""
        body = self.body
        mask = (1 << body.bits) - 1
        right = other.name if isinstance(other, _Word) else body.literal(other & mask)
        return _Word(body, body.emit(f"{op} {body.type} {self.name}, {right}"))


def symbol(function: str, bits: int, lanes: int) -> str:
    """Return the name of a function for floats of so many bits, in vectors of so many lanes."""
    return f"composite_ring_{function}_{bits}x{lanes}"


def text(function: str, bits: int, lanes: int, operands: int) -> str:
    """Return the definition of a function of floats; that of `order` gives integers."""
    body = _Body(bits, lanes)
    floats = body.vector(_TYPES[bits])
    words = [
        _Word(body, body.emit(f"bitcast {floats} %x{i} to {body.type}")) for i in range(operands)
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
