"""Expressions in one form: sums of products of powers, in which most spellings of one are equal.

x * x and Square(x), a / sqrt(b) and a * rsqrt(b), mean((x - m)²) and mean(x²) - m², Softmax and
exp(x - max) / sum are the same Form. The rules are formal: log(a b) is log(a) + log(b) whatever the
signs. Whoever takes two forms for equal compares values, too (values.py).

Not for: what a node of TensorFlow computes (reading.py), and moved elements (moving.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Shape = tuple[int, ...]
_MOST_TERMS = 200
_LARGEST_EXPONENT = 30.0
_MOST_MULTIPLIED = 4  # the highest power of a sum that is multiplied out

# Functions of each element: what moves elements moves them in the arguments.
ELEMENTWISE = frozenset(
    (
        *("sum", "power", "exp", "log", "max", "min", "positive", "Tanh", "Erf", "Abs", "Sin"),
        *("Cos", "Tan", "Sign", "Floor", "Round", "Rint", "Cast", "FloorDiv", "FloorMod", "Equal"),
    )
)
_ODD = frozenset(["Tanh", "Erf", "Sin", "Tan", "Sign"])
_EVEN = frozenset(["Cos", "Abs"])


class TooLargeError(Exception):
    """An expression has more terms than are worth a comparison."""


@dataclass(frozen=True, eq=False)
class Atom:
    """What a product consists of: a symbol, or a function of forms; one object for equal ones.

    Attributes:
        number: the order in which it came to be.
        kind: the function's name.
        params: what else tells it from others.
        args: what it is a function of.
        shape: its own, which broadcasts.
    """

    number: int
    kind: str
    params: tuple[Hashable, ...]
    args: tuple[Form, ...]
    shape: Shape


Monomial = tuple[tuple[Atom, float], ...]  # atoms and their exponents


@dataclass(frozen=True, eq=False)
class Form:
    """A sum of products; one object for equal ones."""

    terms: tuple[tuple[Monomial, float], ...]

    @property
    def number(self) -> float | None:
        """Its value, where it is a number."""
        if not self.terms:
            return 0.0
        (product, factor), *others = self.terms
        return None if product or others else factor

    @property
    def atom(self) -> Atom | None:
        """The atom that it is, where it is one."""
        if len(self.terms) != 1:
            return None
        product, factor = self.terms[0]
        return product[0][0] if len(product) == 1 and product[0][1] == factor == 1.0 else None


def atoms_of(form: Form) -> Iterable[Atom]:
    """The atoms of its products, those in their arguments not among them."""
    return (atom for product, _ in form.terms for atom, _ in product)


def reached(form: Form) -> set[Atom]:
    """All atoms in a form and in their arguments."""
    found: set[Atom] = set()
    pending = [form]
    while pending:
        new = set(atoms_of(pending.pop())) - found
        found |= new
        pending += [arg for atom in new for arg in atom.args]
    return found


def joint(shapes: Iterable[Shape]) -> Shape:
    """What shapes broadcast to."""
    found: list[int] = []
    for shape in shapes:
        found = [1] * (len(shape) - len(found)) + found
        for axis in range(1, len(shape) + 1):
            if shape[-axis] != 1:
                found[-axis] = shape[-axis]
    return tuple(found)


def shape_of(form: Form) -> Shape:
    """The shape that its atoms broadcast to."""
    return joint(atom.shape for atom in atoms_of(form))


def size_at(shape: Shape, axis: int) -> int:
    """The size of an axis, counted from the last, -1; 1 in front of the first."""
    return shape[axis] if -axis <= len(shape) else 1


class Algebra:
    """Forms that can be compared: numbers that differ by `rtol` or less are equal in them."""

    def __init__(self, rtol: float) -> None:
        self._rtol = rtol
        self._numbers: dict[tuple[bool, int], float] = {}
        self._atoms: dict[Hashable, Atom] = {}
        self._forms: dict[Hashable, Form] = {}
        self._arrays: list[tuple[Form, Any]] = []
        self.zero = self._form({})
        self.one = self.constant(1.0)

    def _snapped(self, value: float) -> float:
        """A number, or one that was met before and is as good as equal."""
        if value == 0 or not math.isfinite(value):
            return value
        near = round(math.log(abs(value)) / self._rtol)
        for key in (near, near - 1, near + 1):
            known = self._numbers.get((value > 0, key))
            if known is not None and abs(known - value) <= self._rtol * abs(value):
                return known
        self._numbers[value > 0, near] = value
        return value

    def _form(self, terms: dict[Monomial, float]) -> Form:
        kept = [(p, self._snapped(c)) for p, c in terms.items() if c != 0]
        if len(kept) > _MOST_TERMS:
            raise TooLargeError
        kept.sort(key=lambda term: [(atom.number, exponent) for atom, exponent in term[0]])
        key = tuple(kept)
        return self._forms.setdefault(key, Form(key))

    def atom(
        self,
        kind: str,
        params: tuple[Hashable, ...] = (),
        args: tuple[Form, ...] = (),
        shape: Shape = (),
    ) -> Form:
        """An atom as a form; its shape without what is 1 in front."""
        while shape and shape[0] == 1:
            shape = shape[1:]
        key = (kind, params, args, shape)
        made = self._atoms.setdefault(key, Atom(len(self._atoms), kind, params, args, shape))
        return self.form_of(made)

    def form_of(self, atom: Atom) -> Form:
        """An atom alone."""
        return self._form({((atom, 1.0),): 1.0})

    def constant(self, value: float) -> Form:
        """A number."""
        return self._form({(): float(value)})

    def array(self, values: Any) -> Form:
        """The values of an array: a number where all are equal."""
        values = np.asarray(values)
        if values.dtype.kind not in "biuf":
            text = (str(values.dtype), values.shape, values.tobytes())
            return self.atom("values", text, (), values.shape)
        numbers = values.astype(np.float64)
        if not numbers.size or np.all(numbers == numbers.flat[0]):
            return self.constant(numbers.flat[0] if numbers.size else 0.0)
        scale = float(np.max(np.abs(numbers)))
        numbers = numbers / scale if math.isfinite(scale) else numbers
        found = next((form for form, known in self._arrays if self._is_near(numbers, known)), None)
        if found is None:
            found = self.atom("values", (len(self._arrays),), (), numbers.shape)
            self._arrays.append((found, numbers))
        return self.scaled(found, scale) if math.isfinite(scale) else found

    def _is_near(self, x: Any, y: Any) -> bool:
        return x.shape == y.shape and np.allclose(x, y, rtol=self._rtol, atol=1e-7, equal_nan=True)

    def sum(self, *forms: Form) -> Form:
        """Their sum; what is left of terms that cancel, but for rounding, is nothing."""
        found: dict[Monomial, float] = {}
        for form in forms:
            for product, factor in form.terms:
                before = found.get(product, 0.0)
                after = before + factor
                found[product] = 0.0 if abs(after) <= self._rtol * abs(before) else after
        return self._form(found)

    def scaled(self, form: Form, factor: float) -> Form:
        """A multiple."""
        return self._form({product: c * factor for product, c in form.terms})

    def difference(self, x: Form, y: Form) -> Form:
        """X - y."""
        return self.sum(x, self.scaled(y, -1.0))

    def product(self, *forms: Form) -> Form:
        """Their product, multiplied out."""
        found = self.one
        for form in forms:
            if len(found.terms) * len(form.terms) > _MOST_TERMS:
                raise TooLargeError
            parts = [self._monomial((*p, *q), c * d) for p, c in found.terms for q, d in form.terms]
            found = self.sum(*parts)
        return found

    def _monomial(self, factors: Iterable[tuple[Atom, float]], factor: float) -> Form:
        exponents: dict[Atom, float] = {}
        for atom, exponent in factors:
            exponents[atom] = exponents.get(atom, 0.0) + exponent
        plain: list[tuple[Atom, float]] = []
        multiplied: list[Form] = []
        for atom, total in sorted(exponents.items(), key=lambda one: one[0].number):
            exponent = self._snapped(0.0 if abs(total) < self._rtol else total)
            if atom.kind == "sum" and exponent in range(1, _MOST_MULTIPLIED + 1):
                multiplied += [atom.args[0]] * int(exponent)
            elif atom.kind == "Abs" and exponent % 2 == 0:
                multiplied.append(self.power(atom.args[0], exponent))
            elif exponent:
                plain.append((atom, exponent))
        alone = self._form({tuple(plain): factor})
        return self.product(alone, *multiplied) if multiplied else alone

    def _content(self, form: Form) -> tuple[Form, Form, float]:
        """A sum as the product of what its terms share, a sum with 1 first, and a number."""
        products = [dict(product) for product, _ in form.terms]
        every = dict.fromkeys(atom for one in products for atom in one)
        first = {atom: min(one.get(atom, 0.0) for one in products) for atom in every}
        first = {atom: exponent for atom, exponent in first.items() if exponent}
        shared = self._monomial(first.items(), 1.0)
        inverse = self._monomial(((atom, -e) for atom, e in first.items()), 1.0)
        rest = self.product(form, inverse) if first else form
        lead = rest.terms[0][1]
        return shared, self.scaled(rest, 1.0 / lead), lead

    def power(self, form: Form, exponent: float) -> Form:
        """A power by a number."""
        is_whole = float(exponent).is_integer()
        if exponent == 0:
            return self.one
        if not form.terms:
            return self.zero if exponent > 0 else self.atom("infinity")
        if len(form.terms) == 1:
            product, factor = form.terms[0]
            if factor > 0 or is_whole:
                powers = [(atom, e * exponent) for atom, e in product]
                return self._monomial(powers, factor**exponent)
            return self.atom("power", (exponent,), (form,), shape_of(form))
        if exponent in range(1, _MOST_MULTIPLIED + 1):
            return self.product(*[form] * int(exponent))
        shared, rest, lead = self._content(form)
        if not is_whole and lead < 0:
            rest, lead = self.scaled(rest, -1.0), -lead
        alone = self.atom("sum", (), (rest,), shape_of(rest)).terms[0][0]
        powered = self._monomial(((atom, exponent) for atom, _ in alone), lead**exponent)
        return self.product(powered, self.power(shared, exponent))

    def exp(self, form: Form) -> Form:
        """The exponential: a product of powers of those of the terms."""
        found = self.one
        for product, factor in form.terms:
            if not product:
                if abs(factor) <= _LARGEST_EXPONENT:
                    found = self.scaled(found, math.exp(factor))
                else:  # no number, which may be 0 or infinite, but what may cancel
                    part = self.power(self.atom("exp", (), (self.one,)), factor)
                    found = self.product(found, part)
                continue
            atom, exponent = product[0]
            if len(product) == 1 and exponent == 1 and atom.kind == "log":
                part = self.power(atom.args[0], factor)
            else:
                alone = self._form({product: 1.0})
                part = self.power(self.atom("exp", (), (alone,), shape_of(alone)), factor)
            found = self.product(found, part)
        return found

    def log(self, form: Form) -> Form:
        """The logarithm: of a product, the sum of those of its factors."""
        if not form.terms:
            return self.atom("infinity")
        shared, rest, lead = self._content(form) if len(form.terms) > 1 else (form, self.one, 1.0)
        product, factor = shared.terms[0]
        lead *= factor
        parts = [self.constant(math.log(lead))] if lead > 0 else []
        rest = rest if lead > 0 else self.scaled(rest, -1.0)
        for atom, exponent in product:
            if atom.kind == "exp":
                part = atom.args[0]
            else:
                alone = self.form_of(atom)
                part = self.atom("log", (), (alone,), atom.shape)
            parts.append(self.scaled(part, exponent))
        if rest is not self.one:
            parts.append(self.atom("log", (), (rest,), shape_of(rest)))
        return self.sum(*parts)

    def extreme(self, kind: str, x: Form, y: Form) -> Form:
        """The larger ("max") or the smaller ("min") of two."""
        if x is y:
            return x
        (low, high) = sorted((x, y), key=lambda f: (f.number is not None, _order(f), _lead(f)))
        scale = abs(low.terms[0][1]) if low.terms else 1.0
        low, high = self.scaled(low, 1 / scale), self.scaled(high, 1 / scale)
        inner = low.atom
        bound = high.number
        if kind == "max" and bound is not None and inner is not None and inner.kind == "min":
            upper = inner.args[1].number  # the lower bound first, where both are numbers
            if upper is not None and bound <= upper:
                below = self.extreme("max", inner.args[0], high)
                return self.scaled(self.extreme("min", below, inner.args[1]), scale)
        args = (low, high)
        shape = joint(map(shape_of, args))
        return self.scaled(self.atom(kind, (), args, shape), scale)

    def positive(self, x: Form) -> Form:
        """1 where it is above 0, else 0."""
        if x.number is not None:
            return self.constant(float(x.number > 0))
        scaled = self.scaled(x, 1 / abs(x.terms[0][1]))
        return self.atom("positive", (), (scaled,), shape_of(scaled))

    def applied(self, kind: str, params: tuple[Hashable, ...], args: Sequence[Form]) -> Form:
        """A function of elements; odd and even ones of what does not begin with a minus."""
        if kind in _RULES and not params:
            return _RULES[kind](self, *args)
        sign = 1.0
        arg = args[0]
        if kind in _ODD | _EVEN and arg.terms and arg.terms[0][1] < 0:
            sign, args = (-1.0 if kind in _ODD else 1.0), (self.scaled(arg, -1.0),)
        shape = joint(map(shape_of, args))
        return self.scaled(self.atom(kind, params, tuple(args), shape), sign)

    def mean(self, form: Form, axes: Sequence[int]) -> Form:
        """The mean over axes, counted from the last, which are kept.

        What does not vary along them stands outside.
        """
        parts = []
        for product, factor in form.terms:
            inner = [(a, e) for a, e in product if any(size_at(a.shape, k) != 1 for k in axes)]
            outer = [one for one in product if one not in inner]
            part = self._monomial(outer, factor)
            if inner:
                alone = self._monomial(inner, 1.0)
                if (one := alone.atom) is not None and one.kind == "mean":
                    axes = (*axes, *(k for k in one.params if isinstance(k, int)))
                    alone = one.args[0]
                full = shape_of(alone)
                over = tuple(sorted(k for k in {*axes} if size_at(full, k) != 1))
                kept = tuple(1 if k - len(full) in over else n for k, n in enumerate(full))
                part = self.product(part, self.atom("mean", over, (alone,), kept))
            parts.append(part)
        return self.sum(*parts)


def _order(form: Form) -> list[list[tuple[int, float]]]:
    return [[(atom.number, e) for atom, e in product] for product, _ in form.terms]


def _lead(form: Form) -> float:
    return -abs(form.terms[0][1]) if form.terms else 0.0


_RULES: dict[str, Callable[..., Form]] = {
    "sum": Algebra.sum,
    "exp": Algebra.exp,
    "log": Algebra.log,
    "max": lambda algebra, x, y: algebra.extreme("max", x, y),
    "min": lambda algebra, x, y: algebra.extreme("min", x, y),
    "positive": Algebra.positive,
}
