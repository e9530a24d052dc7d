"""Sizes of dimensions: an ``int``, or a polynomial over the symbols ``s0``, ``s1``, ...

The polynomial has a canonical form, so that equality of two sizes is equality of two objects.
What cannot be decided (is ``s0`` equal to ``s1``?) is answered by :class:`NotCovered`, never by a
guess. Quotients that are not exact become opaque atoms. Not for index arithmetic inside a kernel.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from composite.compiler.tvm.errors import NotCovered

Monomial = tuple[str, ...]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Poly:
    """A sum of products of atoms; an atom is ``"s0"`` or a postfix text such as ``"s0 2 //"``."""

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: Dim) -> Dim:
        """Return the sum."""
        total = dict(self.terms)
        for monomial, factor in _terms(other):
            total[monomial] = total.get(monomial, 0) + factor
        return _from_terms(total)

    def __sub__(self, other: Dim) -> Dim:
        """Return the difference."""
        return self + other * -1

    def __rsub__(self, other: int) -> Dim:
        """Return the difference with an int on the left."""
        return self * -1 + other

    def __mul__(self, other: Dim) -> Dim:
        """Return the product."""
        total: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
                monomial = tuple(sorted(left + right))
                total[monomial] = total.get(monomial, 0) + a * b
        return _from_terms(total)

    __radd__ = __add__
    __rmul__ = __mul__

    def __repr__(self) -> str:
        """Return the size for people, in lists and tuples as well."""
        return _infix(self)


Dim = int | Poly
Shape = tuple[Dim, ...]


def _terms(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    return dim.terms if isinstance(dim, Poly) else (((), dim),)


def _from_terms(terms: Mapping[Monomial, int]) -> Dim:
    kept = {m: f for m, f in terms.items() if f}
    if not kept:
        return 0
    if list(kept) == [()]:
        return kept[()]
    return Poly(tuple(sorted(kept.items())))


def symbol(name: str) -> Poly:
    """Return the size of one atom: a symbol, or a quotient as a text."""
    return Poly((((name,), 1),))


def parse(size: int | str) -> Dim:
    """Return the size that ``"s3"`` or an int stands for."""
    if isinstance(size, str):
        if not re.fullmatch(r"s\d+", size):
            raise ValueError(f"{size!r} is no dimension: write an int or a symbol such as 's0'")
        return symbol(size)
    return int(size)


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product, 1 for none."""
    total: Dim = 1
    for dim in dims:
        total = total * dim
    return total


def floordiv(a: Dim, b: Dim) -> Dim:
    """Return ``a // b`` for sizes (not negative), exactly where the division leaves no rest."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    exact = divide(a, b)
    return exact if exact is not None else symbol(f"{postfix(a)} {postfix(b)} //")


def divide(a: Dim, b: Dim) -> Dim | None:
    """Return ``a / b`` if it is known to leave no rest, else None. ``b`` must be one product."""
    divisor = _terms(b)
    if len(divisor) != 1 or not divisor[0][1]:
        return 1 if a == b and a != 0 else None
    (atoms, factor) = divisor[0]
    quotient: dict[Monomial, int] = {}
    for monomial, coefficient in _terms(a):
        rest = list(monomial)
        for atom in atoms:
            if atom not in rest:
                return None
            rest.remove(atom)
        if coefficient % factor:
            return None
        quotient[tuple(rest)] = coefficient // factor
    return _from_terms(quotient)


def may_be(dim: Dim, size: int) -> bool:
    """Return whether a dim may have a size, as far as the factors of its terms tell."""
    terms = dict(_terms(dim))
    rest = size - terms.pop((), 0)
    factor = math.gcd(*terms.values())
    return rest % factor == 0 if factor else rest == 0


def broadcast(a: Dim, b: Dim, what: str) -> Dim:
    """Return the size that NumPy's rule gives; ``what`` names the op in the error."""
    if b in (a, 1):
        return a
    if a == 1:
        return b
    if isinstance(a, int) and isinstance(b, int):
        raise NotCovered(f"{what}: sizes {a} and {b} do not broadcast")
    raise NotCovered(f"{what}: whether sizes {a} and {b} broadcast is not known")


def broadcast_shapes(shapes: Iterable[Shape], what: str) -> Shape:
    """Return the common shape by NumPy's rule."""
    result: Shape = ()
    for shape in shapes:
        rank = max(len(result), len(shape))
        left = (1,) * (rank - len(result)) + result
        right = (1,) * (rank - len(shape)) + shape
        result = tuple(broadcast(a, b, what) for a, b in zip(left, right, strict=True))
    return result


def require_equal(a: Dim, b: Dim, what: str) -> Dim:
    """Return the size if both are known to be the same."""
    if a != b:
        verb = "differ" if isinstance(a, int) and isinstance(b, int) else "are not known to agree"
        raise NotCovered(f"{what}: sizes {a} and {b} {verb}")
    return a


def larger(a: Dim, b: Dim) -> Dim | None:
    """Return the larger size if it is known which that is; symbols are not negative."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    for one, other in ((a, b), (b, a)):
        if all(factor >= 0 for _, factor in _terms(one - other)):
            return one
    return None


def mentions(dim: Dim, *names: str) -> bool:
    """Return whether a size depends on any of some symbols."""
    return isinstance(dim, Poly) and not set(names).isdisjoint(postfix(dim).split())


def substitute(dim: Dim, name: str, value: Dim) -> Dim:
    """Return a size with another in place of a symbol."""
    total: Dim = 0
    for monomial, factor in _terms(dim):
        term: Dim = factor
        for atom in monomial:
            if atom != name and mentions(symbol(atom), name):
                raise NotCovered(f"a quotient of the counter of a loop: {atom}")
            term = term * (value if atom == name else symbol(atom))
        total = total + term
    return total


def extreme(dim: Dim, counts: Mapping[str, Dim]) -> Dim | None:
    """Return the least value of a size that loop counters are part of; None if that is not known.

    ``counts`` maps each counter to how many values it takes, from 0 on.
    """
    least: Dim = 0
    for monomial, factor in _terms(dim):
        term = _from_terms({monomial: factor})
        if not mentions(term, *counts):
            least = least + term
        elif len(monomial) > 1 or monomial[0] not in counts:
            return None
        elif factor < 0:
            least = least + (counts[monomial[0]] - 1) * factor
    return least


def ceildiv(size: int, step: int) -> int:
    """Return ``size / step``, rounded up."""
    return -(-size // step)


def static_shape(shape: Shape) -> tuple[int, ...] | None:
    """Return the shape if all its dimensions are known."""
    known = tuple(d for d in shape if isinstance(d, int))
    return known if len(known) == len(shape) else None


def static_size(shape: Shape) -> int | None:
    """Return the number of elements if it is known."""
    size = product(shape)
    return size if isinstance(size, int) else None


def postfix(dim: Dim) -> str:
    """Return the size as postfix tokens, e.g. ``"s0 2 *"``: the form that kernel records carry."""
    text = ""
    for monomial, factor in _terms(dim):
        tokens = [*monomial] if factor == 1 and monomial else [*monomial, str(factor)]
        term = " ".join(tokens + ["*"] * (len(tokens) - 1))
        text = f"{text} {term} +" if text else term
    return text or "0"


def _infix(dim: Dim) -> str:
    """Return the size as people write it, e.g. ``"s0*2 + 1"``."""
    text = ""
    for monomial, factor in _terms(dim):
        size = abs(factor)
        parts = [*map(_infix_atom, monomial), *([str(size)] if size != 1 or not monomial else [])]
        sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
        text += sign + "*".join(parts)
    return text or "0"


def _infix_atom(atom: str) -> str:
    stack: list[str] = []
    for token in atom.split():
        if token in _OPERATORS:
            right, left = stack.pop(), stack.pop()
            token = f"({left} {token} {right})"  # noqa: PLW2901 - what it stands for
        stack.append(token)
    return stack.pop()


def shape_text(shape: Shape) -> str:
    """Return the dimensions as postfix texts joined by commas."""
    return ",".join(postfix(d) for d in shape)


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


def evaluate(text: str, symbols: Mapping[str, _T], constant: Callable[[int], _T]) -> _T:
    """Evaluate a postfix text over any numbers that know ``+ - * // %``."""
    stack: list[_T] = []
    for token in text.split():
        if token in _OPERATORS:
            right, left = stack.pop(), stack.pop()
            stack.append(_OPERATORS[token](left, right))  # type: ignore[arg-type]
        else:
            stack.append(symbols[token] if token in symbols else constant(int(token)))
    return stack.pop()


def symbols_of(shapes: Iterable[Shape]) -> list[str]:
    """Return the symbols in the order of their numbers."""
    names = {t for s in shapes for d in s for t in postfix(d).split() if t.startswith("s")}
    return sorted(names, key=lambda name: int(name[1:]))
