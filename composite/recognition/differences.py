"""How forms look, and where two of them differ first."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from composite.recognition.algebra import Atom, Form, Monomial

_COMMUTING = ("contract", "max", "min")
_LONGEST = 70  # characters of a form in a sentence
_WORDS = {"over Max": "max", "over Min": "min", "contract": "product", "positive": "is_positive"}


def skeleton(form: Form, marked: Atom | None = None) -> Hashable:
    """What a form consists of, without numbers: equal for forms that differ in these alone.

    With a symbol that is marked, all others are equal, whatever they are.
    """
    known: dict[Atom, int] = {}

    def of_form(one: Form) -> int:
        products = sorted(hash(tuple(sorted(of_atom(a) for a, _ in p))) for p, _ in one.terms)
        return hash(tuple(products))

    def of_atom(atom: Atom) -> int:
        if atom not in known:
            params: Hashable = atom.shape if atom.kind == "values" else atom.params
            if marked is not None and atom.kind == "symbol":
                params = atom is marked
            args = list(map(of_form, atom.args))
            if atom.kind in _COMMUTING:  # the order, and the labels in it, is that of the symbols
                params, args = None, sorted(args)
            known[atom] = hash((atom.kind, params, tuple(args)))
        return known[atom]

    return of_form(form)


def difference(found: Form, wanted: Form, names: Mapping[Any, str]) -> str:
    """The first difference of two forms that are not equal, in words; `names` are the symbols'."""
    return _Words(names).difference(found, wanted)


class _Words:
    def __init__(self, names: Mapping[Any, str]) -> None:
        self._names = names

    def text(self, form: Form) -> str:
        """A form as a formula, shortened."""
        whole = self._text(form)
        return whole if len(whole) <= _LONGEST else f"{whole[:_LONGEST]}..."

    def _text(self, form: Form) -> str:
        parts = [self._product(product, factor) for product, factor in form.terms]
        return " + ".join(parts).replace("+ -", "- ") or "0"

    def _product(self, product: Monomial, factor: float) -> str:
        numbers = [] if factor == 1 and product else [f"{factor:.6g}"]
        if factor == -1 and product:
            return "-" + "*".join(self._power(atom, e) for atom, e in product)
        return "*".join(numbers + [self._power(atom, e) for atom, e in product])

    def _power(self, atom: Atom, exponent: float) -> str:
        if atom.kind == "exp":
            inner = self._text(atom.args[0])
            return f"exp({inner})" if exponent == 1 else f"exp({exponent:.6g}*{inner})"
        base = f"({self._text(atom.args[0])})" if atom.kind == "sum" else self._atom(atom)
        return base if exponent == 1 else f"{base}^{exponent:.6g}"

    def _atom(self, atom: Atom) -> str:
        if atom.kind == "symbol":
            (index,) = atom.params
            return self._names[index]
        if atom.kind in ("view", "transpose", "whole"):
            return self._text(atom.args[0])
        if atom.kind == "values":
            return f"constant{list(atom.shape)}"
        word = _WORDS.get(atom.kind, atom.kind)
        return f"{word}({', '.join(self._text(arg) for arg in atom.args)})"

    def difference(self, found: Form, wanted: Form) -> str:
        """The first difference of two forms, in words."""
        mine, its = dict(wanted.terms), dict(found.terms)
        for product in mine.keys() & its.keys():
            if mine[product] != its[product]:
                alone = self.text(Form(((product, 1.0),)))
                what = f"the factor of {alone}" if product else "the constant"
                return f"{what} is {its[product]:.6g}, not {mine[product]:.6g}"
        only_mine = [(p, c) for p, c in wanted.terms if p not in its]
        only_its = [(p, c) for p, c in found.terms if p not in mine]
        if not only_its:
            return f"{self.text(Form(tuple(only_mine[:1])))} is missing"
        if not only_mine:
            return f"{self.text(Form(tuple(only_its[:1])))} is added"
        return self._of_products(only_its[0], only_mine[0])

    def _of_products(self, found: tuple[Monomial, float], wanted: tuple[Monomial, float]) -> str:
        mine, its = dict(wanted[0]), dict(found[0])
        for atom in (one for one in its if one in mine and its[one] != mine[one]):
            of = self.text(Form((((((atom, 1.0),)), 1.0),)))
            return f"the exponent of {of} is {its[atom]:.6g}, not {mine[atom]:.6g}"
        left = [one for one in mine if one not in its]
        for atom in (one for one in its if one not in mine):
            for other in (one for one in left if one.kind == atom.kind):
                pairs = zip(atom.args, other.args, strict=False)
                inner = next(((x, y) for x, y in pairs if x is not y), None)
                if inner is not None:
                    return self.difference(*inner)
        return f"{self.text(Form((found,)))} stands there, not {self.text(Form((wanted,)))}"


def distance(found: Form, wanted: Form) -> int:
    """How many terms only one of two forms has."""
    mine, its = {p for p, _ in wanted.terms}, {p for p, _ in found.terms}
    return len(mine ^ its)
