"""What the prover says of random integers, held against all of their values.

The integers are TIR expressions of sizes and counters, with minima, quotients, remainders, choices
and lanes of vectors, in which conditions hold. Brute force goes through all values of the sizes and
counters in a box that the prover knows of.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from tvm import ir, tirx

from composite.compiler.tvm.proof.expressions import Expressions
from composite.compiler.tvm.proof.integers import Integers

_NAMES = "abcd"
_VALUES = 6  # of each variable, at most
_LANES = 4
_DEPTH = 3
_ARITHMETIC = (tirx.Add, tirx.Add, tirx.Sub, tirx.Mul, tirx.Min, tirx.Max, tirx.Div, tirx.Mod)
_COMPARISONS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)
_NARROW = ("int8", "uint8", "int32")


class Drawn:
    """Variables, and expressions of them that a seed draws."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self.variables = {n: tirx.Var(n, "int64") for n in _NAMES}
        self.lowest = {n: self._draw.randint(0, 2) for n in _NAMES}

    def constant(self, low: int, high: int) -> Any:
        """Any integer between two."""
        return tirx.const(self._draw.randint(low, high), "int64")

    def integer(self, depth: int = _DEPTH) -> Any:
        """An integer expression."""
        draw = self._draw
        if depth <= 0 or draw.random() < 0.15:
            return draw.choice([*self.variables.values(), self.constant(-3, 9)])
        kind = draw.random()
        if kind < 0.1:
            parts = (self.integer(depth - 1), self.integer(depth - 1))
            return tirx.Select(self.condition(depth - 1), *parts)
        if kind < 0.15:
            narrow = tirx.Cast(draw.choice(_NARROW), self.integer(depth - 1))
            return tirx.Cast("int64", narrow)
        if kind < 0.25:  # a piece of a row, or what is left of it
            whole, piece = self.integer(depth - 1), self.constant(1, 4)
            pieces = tirx.Div(whole + (piece - 1), piece)
            return draw.choice([pieces, tirx.Min(piece, whole - draw.choice([pieces, piece]))])
        operator = draw.choice(_ARITHMETIC)
        left = self.integer(depth - 1)
        if operator in (tirx.Div, tirx.Mod):
            others = (self.constant(1, 5), self.constant(1, 5), self.integer(depth - 1))
            return operator(left, draw.choice(others))
        right = self.constant(-3, 4) if operator is tirx.Mul else self.integer(depth - 1)
        if operator is tirx.Mul and draw.random() < 0.3:
            right = self.integer(0)
        return operator(left, right)

    def condition(self, depth: int = _DEPTH) -> Any:
        """A condition on integers."""
        draw = self._draw
        if depth > 1 and draw.random() < 0.3:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return draw.choice([tirx.And(a, b), tirx.Or(a, b), tirx.Not(a)])
        return draw.choice(_COMPARISONS)(self.integer(depth - 1), self.integer(depth - 1))

    def vector(self, base: Any) -> Any:
        """Lanes that begin with an integer."""
        ramp = tirx.Ramp(base, self.constant(-2, 3), _LANES)
        if self._draw.random() < 0.5:
            return ramp
        operator = self._draw.choice((tirx.Add, tirx.Min, tirx.Max, tirx.Sub))
        return operator(ramp, tirx.Broadcast(self.integer(1), _LANES))

    def facts(self) -> list[Any]:
        """Conditions that hold."""
        return [self.condition(2) for _ in range(self._draw.randint(0, 2))]

    def shuffled(self, things: Sequence[Any]) -> list[Any]:
        """In any order."""
        return self._draw.sample(things, len(things))

    def is_a_vector(self) -> bool:
        """Whether to ask of lanes."""
        return self._draw.random() < 0.2


class Values:
    """Expressions by brute force: one row for each assignment of the variables, one column a lane.

    `fails`: rows in which something is divided by 0.
    """

    def __init__(self, lowest: dict[str, int]) -> None:
        ranges = [range(lowest[n], lowest[n] + _VALUES - 2 * (n > "b")) for n in _NAMES]
        rows = np.array(list(itertools.product(*ranges)), np.int64)
        self._variables = {n: rows[:, i : i + 1] for i, n in enumerate(_NAMES)}
        self.highest = {n: ranges[i][-1] for i, n in enumerate(_NAMES)}
        self.fails = np.zeros((len(rows), 1), bool)

    def of(self, e: Any) -> np.ndarray:
        """The values of an expression."""
        kind = type(e)
        if kind is tirx.IntImm:
            return np.full_like(self.fails, int(e.value), np.int64)
        if kind is ir.Var:
            return self._variables[e.name]
        if kind is tirx.Ramp:
            return self.of(e.base) + self.of(e.stride) * np.arange(_LANES)
        if kind is tirx.Broadcast:
            return self.of(e.value)
        if kind is tirx.Cast:
            return self.of(e.value).astype(str(e.ty.dtype)).astype(np.int64)
        if kind is tirx.Not:
            return ~self.of(e.a)
        if kind is tirx.Select:
            return np.where(*(self.of(one) for one in (e.condition, e.true_value, e.false_value)))
        a, b = self.of(e.a), self.of(e.b)
        if kind in (tirx.Div, tirx.Mod):
            self.fails |= (b == 0).any(axis=1, keepdims=True)
            quotient = np.sign(a) * np.sign(b) * (np.abs(a) // np.maximum(np.abs(b), 1))
            return quotient if kind is tirx.Div else a - b * quotient
        return np.asarray(_OPERATORS[kind](a, b))


_OPERATORS: dict[type, Callable[[np.ndarray, np.ndarray], Any]] = {
    tirx.Add: np.add,
    tirx.Sub: np.subtract,
    tirx.Mul: np.multiply,
    tirx.Min: np.minimum,
    tirx.Max: np.maximum,
    tirx.LT: np.less,
    tirx.LE: np.less_equal,
    tirx.GT: np.greater,
    tirx.GE: np.greater_equal,
    tirx.EQ: np.equal,
    tirx.NE: np.not_equal,
    tirx.And: np.logical_and,
    tirx.Or: np.logical_or,
}


@dataclass
class Counts:
    """What the prover said.

    Attributes:
        false: Claims that are not so.
        true: By what was asked, how often it was so, and how often that was proven.
    """

    false: list[str] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    proven: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, claims: bool, holds: bool, text: str) -> None:
        """Count a question."""
        if claims and not holds:
            self.false.append(f"{what}: {text}")
        self.asked[what] += holds
        self.proven[what] += holds and claims

    def __str__(self) -> str:
        lines = [
            f"  {what}: {self.proven[what]} of {n} are proven ({self.proven[what] / n:.0%})"
            for what, n in self.asked.items()
            if n
        ]
        return "\n".join([f"{len(self.false)} claims are false", *lines])


def run(seed: int, counts: Counts) -> None:
    """Ask of some integers in which some conditions hold."""
    drawn = Drawn(seed)
    values = Values(drawn.lowest)
    integers = Integers()
    expressions = Expressions(integers, lambda _, __: None)
    for name in _NAMES:
        expressions.variables[name] = atom = integers.atom(name)
        integers.learn(atom - drawn.lowest[name])
        integers.learn(atom * -1 + values.highest[name])
    here = np.ones_like(values.fails)
    for condition in drawn.facts():
        here &= values.of(condition)
        for fact in expressions.condition(condition)[0]:
            integers.learn(fact)
    asked = [drawn.integer() for _ in range(4)]
    asked += [drawn.vector(one) for one in asked if drawn.is_a_vector()]
    found = [_Found(e, expressions.value(e), values.of(e)) for e in asked]
    divides = not (here & values.fails).any()
    counts.add("no divisor is 0", not expressions.divisors, divides, f"seed {seed}")
    rows = (here & ~values.fails)[:, 0]
    if rows.any():
        kept = [one._replace(rows=one.rows[rows]) for one in found if one.value is not None]
        for one in drawn.shuffled(kept):
            _ask(integers, one, counts, f"seed {seed}")
        _compare(kept, counts, f"seed {seed}")


class _Found(NamedTuple):
    expression: Any
    value: Any
    rows: np.ndarray

    def __str__(self) -> str:
        return f"{' '.join(str(self.expression).split())} as {self.value}"


def _ask(integers: Integers, one: _Found, counts: Counts, where: str) -> None:
    """Ask for its bounds, and for what is just beyond them."""
    p, low, high = one.value, int(one.rows.min()), int(one.rows.max())
    text = f"{where}: {one} is from {low} to {high}"
    counts.add("more than the least", integers.is_at_least(p, low + 1), False, text)
    counts.add("the least", integers.is_at_least(p, low), True, text)
    counts.add("the most", integers.is_at_least(high, p), True, text)
    counts.add("less than the most", integers.is_at_least(high - 1, p), False, text)
    is_nonzero = bool((one.rows != 0).all())
    counts.add("not 0", integers.is_nonzero(p), is_nonzero, text)
    for above in (True, False):
        bound = integers.bound(p, 0, above=above, number=True)
        if isinstance(bound, int):
            holds = bound >= high if above else bound <= low
            counts.add("a number that bounds it", True, holds, f"{text}; bounded by {bound}")


def _compare(found: Sequence[_Found], counts: Counts, where: str) -> None:
    """Integers that are one polynomial must have the same values; so must those that are not."""
    for one, other in itertools.combinations(found, 2):
        if one.rows.shape[1] == other.rows.shape[1]:
            is_same = bool((one.rows == other.rows).all())
            counts.add("equal", one.value == other.value, is_same, f"{where}: {one}, and {other}")
