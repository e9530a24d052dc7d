"""Shape classes: the dims of a call's inputs, some of which are symbols.

Output dims are postfix expressions of the symbols ("s0 2 *"), which C++ evaluates in each call and
`evaluate` in checks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from composite.binding.kernel_request import KernelRequest
from composite.binding.typed_record import Dims


def symbols(shapes: Sequence[Dims]) -> list[str]:
    """The symbols in these shapes, s0 first."""
    found = {d for shape in shapes for d in shape if isinstance(d, str)}
    return sorted(found, key=lambda symbol: int(symbol[1:]))


def substitute(shapes: Sequence[Dims], values: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The shapes with each symbol replaced by its value."""
    return [tuple(values[d] if isinstance(d, str) else d for d in shape) for shape in shapes]


_D = TypeVar("_D")


def of_inputs(shapes: Sequence[tuple[_D, ...]], sizes: Sequence[int]) -> list[tuple[_D, ...]]:
    """The shapes of the inputs; inputs that have a value instead of a shape are scalars."""
    return [() if i in sizes else tuple(shape) for i, shape in enumerate(shapes)]


def of_sizes(shapes: Sequence[tuple[int, ...]], sizes: Sequence[int]) -> dict[int, int]:
    """The values of the inputs that have a value instead of a shape."""
    return {i: shapes[i][0] for i in sizes}


def with_sizes(request: KernelRequest, sizes: Sequence[int]) -> KernelRequest:
    """The request with values instead of shapes for further inputs, which are scalars.

    Each value is a new symbol of unknown size.
    """
    count = len(symbols(request.in_shapes))
    new = {i: f"s{count + number}" for number, i in enumerate(sizes)}
    in_shapes = tuple((new[i],) if i in new else s for i, s in enumerate(request.in_shapes))
    every = tuple(sorted({*request.size_inputs, *sizes}))
    return replace(request, in_shapes=in_shapes, size_inputs=every)


_OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


def evaluate(shape: str, values: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an output as numbers, from dims in postfix that are joined by commas."""
    return tuple(dim(text, values) for text in shape.split(",")) if shape else ()


def dim(text: str, values: Mapping[str, Any]) -> Any:
    """The value of a dim in postfix for given values of its symbols, numbers or expressions."""
    stack: list[Any] = []
    for token in text.split():
        if token in _OPERATORS:
            right, left = stack.pop(), stack.pop()
            stack.append(_OPERATORS[token](left, right))
        else:
            stack.append(values[token] if token in values else int(token))
    (result,) = stack
    return result


PROBES = ((1009, 2003, 3001, 4001, 5003, 6007, 7001, 8009), (8, 36, 50, 66, 92, 104, 130, 154))
"""Sizes of symbols that tell the dims of outputs apart, twice."""


def expression(sizes: Sequence[int], cases: Sequence[Mapping[str, int]]) -> str | None:
    """The dim in postfix that has these sizes at these values of the symbols.

    It is a constant, a symbol, a symbol plus or times a constant, or the sum or product of two
    symbols; None if none of these fits.
    """
    names, first = list(cases[0]), cases[0]
    texts = [str(sizes[0]), *names]
    texts += [f"{s} {sizes[0] - first[s]} +" for s in names]
    texts += [f"{s} {sizes[0] // first[s]} *" for s in names]
    texts += [f"{a} {b} {op}" for a in names for b in names for op in "+*"]
    for text in texts:
        if all(evaluate(text, v) == (n,) for v, n in zip(cases, sizes, strict=True)):
            return text
    return None


def samples(
    names: Sequence[str], hints: Sequence[int], minimums: Sequence[int], divisors: Sequence[int]
) -> dict[str, int]:
    """A value for each symbol that the class allows: the hint of the call, or about 48."""
    chosen = {}
    for i, name in enumerate(names):
        least = minimums[i] if i < len(minimums) else 1
        divisor = max(divisors[i] if i < len(divisors) else 1, 1)
        wanted = max(hints[i] if i < len(hints) else 48, least)
        chosen[name] = max(-(-wanted // divisor) * divisor, divisor)
    return chosen


def odd_samples(
    names: Sequence[str], minimums: Sequence[int], divisors: Sequence[int]
) -> dict[str, int]:
    """Small odd values that the class allows, to find wrong loop tails: 7, 10, 13, ..."""
    return samples(names, [7 + 3 * i for i in range(len(names))], minimums, divisors)


def size(values: Mapping[str, int]) -> int:
    """The product of a call's symbols, by which the runtime decides (decision_table.h)."""
    return math.prod(values.values())


def to_measure(
    request: KernelRequest, minimums: Sequence[int], divisors: Sequence[int]
) -> list[dict[str, int]]:
    """The values to measure a request's kernels at: those of its call, then others."""
    asked = samples(symbols(request.in_shapes), request.hint, minimums, divisors)
    return [asked, *others(asked, minimums, divisors)]


_FACTORS = (1 / 16, 1 / 4, 4, 16)


def others(
    asked: Mapping[str, int], minimums: Sequence[int], divisors: Sequence[int]
) -> list[dict[str, int]]:
    """Values around those of the requested call, in ascending order of size: s0 varies.

    Empty for a class without symbols.
    """
    if not asked:
        return []
    found = {}
    for factor in _FACTORS:
        wanted = [max(round(asked["s0"] * factor), 1), *(v for n, v in asked.items() if n != "s0")]
        values = samples(list(asked), wanted, minimums, divisors)
        found[size(values)] = values
    found.pop(size(asked), None)
    return [found[s] for s in sorted(found)]
