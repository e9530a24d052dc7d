"""The ring's functions as C++, for ring.h: traced from their one definition in the compiler."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from composite.compiler.tvm.algebra import ring
from composite.compiler.tvm.algebra.traced import Traced
from composite.compiler.tvm.tir.stand_ins import NAMED

_OF_C = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "nearbyint": "nearbyint",
    "rint": "nearbyint",
    "round": "round",
    "trunc": "trunc",
}
_OF_C_OF_TWO = {"fmod": "fmod", "pow": "pow"}
_MADE = {"absolute": "absolute", "fabs": "absolute", "fma": "fused", "fmax": "max", "fmin": "min"}
_OPERANDS = {"fabs": 1, "fma": 3, "fmax": 2, "fmin": 2}
_TYPES = {32: "Float", 64: "Double"}
_OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "lshr": ">>",
}


@dataclass
class _Body:
    lines: list[str] = field(default_factory=list)
    numbers: Any = field(default_factory=itertools.count)


@dataclass(frozen=True)
class _Word(Traced):
    """A word of a body."""

    body: _Body
    name: str

    def emit(self, op: str, other: Any) -> _Word:
        """Write an expression."""
        right = other.name if isinstance(other, _Word) else f"W({other % (1 << 64)}ull)"
        name = f"v{next(self.body.numbers)}"
        self.body.lines.append(f"  const W {name} = {self.name} {_OPERATORS[op]} {right};")
        return _Word(self.body, name)


def header(sources: str) -> str:
    """The functions that sources call, in either width."""
    return "\n".join(_functions(sources))


def _functions(sources: str) -> Iterator[str]:
    names = sorted({*re.findall(rf"\b{NAMED}(\w+)\(", sources)})
    for bits in _TYPES:
        yield _function("inverse", "inverse", 1, bits)
        for name, function in _OF_C.items():
            yield _function(name + "f" * (bits == 32), function, 1, bits)
        for name, function in _OF_C_OF_TWO.items():
            yield _function(name + "f" * (bits == 32), function, 2, bits)
        for name, count in _OPERANDS.items():
            yield _other_name(name + "f" * (bits == 32), _MADE[name], count, bits)
        for name in names:
            count = 2 if name in ("power", "atan2", "unbiased") else 1
            if name in _MADE:
                yield _other_name(NAMED + name, _MADE[name], count, bits)
            elif name == "power":
                yield _power(bits)
            else:
                yield _function(NAMED + name, name, count, bits)


def _function(symbol: str, name: str, operands: int, bits: int) -> str:
    body = _Body()
    result = ring.function(name)(*(_Word(body, f"x{i}.word") for i in range(operands)), bits=bits)
    return _defined(
        symbol, operands, bits, [*body.lines, f"  return {_TYPES[bits]}::Of({result.name});"]
    )


def _defined(symbol: str, operands: int, bits: int, lines: list[str]) -> str:
    kind = _TYPES[bits]
    parameters = ", ".join(f"{kind} x{i}" for i in range(operands))
    return "\n".join(
        [f"inline {kind} {symbol}({parameters}) {{", f"  using W = uint{bits}_t;", *lines, "}"]
    )


def _other_name(symbol: str, name: str, operands: int, bits: int) -> str:
    arguments = ", ".join(f"x{i}" for i in range(operands))
    return _defined(symbol, operands, bits, [f"  return {name}({arguments});"])


def _power(bits: int) -> str:
    """x^y, which is a product where the exponent is a small integer."""
    body = _Body()
    x, y = _Word(body, "x0.word"), _Word(body, "x1.word")
    found = ring.function("power")(x, y, bits=bits)
    values = ring.powers(x, lambda name, *words: ring.function(name)(*words, bits=bits))
    lines = [*body.lines]
    for exponent, value in values.items():
        number = ring.constant(exponent, f"float{bits}")
        lines.append(f"  if (x1.word == W({number}ull)) return {_TYPES[bits]}::Of({value.name});")
    return _defined(
        f"{NAMED}power", 2, bits, [*lines, f"  return {_TYPES[bits]}::Of({found.name});"]
    )
