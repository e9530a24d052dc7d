"""Elements moved: reshaped, transposed and sliced forms, with the move in what they are made of.

A reshape between two functions of elements, or around one, then stands at the symbols.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from composite.recognition.algebra import ELEMENTWISE, Algebra, Atom, Form, Shape, size_at

Range = tuple[int, int, int]  # the first, how many, and the step
Leaf = Callable[[Atom], Form]


class _StuckError(Exception):
    """A part cannot be moved for itself."""


def _moved(algebra: Algebra, form: Form, leaf: Leaf, known: dict[Atom, Form]) -> Form:
    parts = []
    for product, factor in form.terms:
        part = algebra.constant(factor)
        for atom, exponent in product:
            if atom not in known:
                if atom.kind in ELEMENTWISE:
                    args = [_moved(algebra, arg, leaf, known) for arg in atom.args]
                    known[atom] = algebra.applied(atom.kind, atom.params, args)
                else:
                    known[atom] = leaf(atom)
            part = algebra.product(part, algebra.power(known[atom], exponent))
        parts.append(part)
    return algebra.sum(*parts)


def _whole(algebra: Algebra, form: Form, shape: Shape) -> Form:
    """A form as one atom of a shape that it broadcasts to."""
    atom = form.atom
    if atom is not None and atom.shape == _stripped(shape) and atom.kind not in ELEMENTWISE:
        return form
    return algebra.atom("whole", (), (form,), shape)


def _stripped(shape: Sequence[int]) -> Shape:
    found = tuple(shape)
    while found and found[0] == 1:
        found = found[1:]
    return found


def _padded(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


def reshaped(algebra: Algebra, form: Form, old: Shape, new: Shape) -> Form:
    """A form of a shape, with the same elements in another."""
    if _stripped(old) == _stripped(new):
        return form
    leaf = _by_units if [n for n in old if n != 1] == [n for n in new if n != 1] else _by_middle
    try:
        return _moved(algebra, form, lambda atom: leaf(algebra, atom, old, new), {})
    except _StuckError:
        return _viewed(algebra, _whole(algebra, form, old), new)


def _viewed(algebra: Algebra, form: Form, shape: Shape) -> Form:
    """An atom in another shape: a view of what it is itself a view of."""
    atom = form.atom
    if atom is None:
        raise _StuckError
    shape = _stripped(shape)
    while atom.kind == "view":
        form = atom.args[0]
        atom = form.atom
        assert atom is not None, "views are made of atoms"
    if atom.kind == "transpose" and _kept(atom.shape) == _kept(shape):
        return algebra.atom("transpose", atom.params, atom.args, shape)
    if atom.shape == shape:
        return form
    return algebra.atom("view", (), (form,), shape)


def _kept(shape: Shape) -> list[int]:
    return [n for n in shape if n != 1]


def _by_units(algebra: Algebra, atom: Atom, old: Shape, new: Shape) -> Form:
    """Only axes of size 1 come and go."""
    own = iter([n for n, full in zip(_padded(atom.shape, len(old)), old, strict=True) if full != 1])
    shape = tuple(1 if full == 1 else next(own) for full in new)
    return _viewed(algebra, algebra.form_of(atom), shape)


def _by_middle(algebra: Algebra, atom: Atom, old: Shape, new: Shape) -> Form:
    """Axes between those that stay are joined or split, where the atom has all or none of them."""
    front = 0
    while front < min(len(old), len(new)) and old[front] == new[front]:
        front += 1
    back = 0
    while back < min(len(old), len(new)) - front and old[-1 - back] == new[-1 - back]:
        back += 1
    own = _padded(atom.shape, len(old))
    end = len(old) - back
    middle = own[front:end]
    into = new[front : len(new) - back]
    if math.prod(middle) == 1:
        into = (1,) * len(into)
    elif middle != old[front:end]:
        raise _StuckError
    return _viewed(algebra, algebra.form_of(atom), (*own[:front], *into, *own[end:]))


def transposed(algebra: Algebra, form: Form, shape: Shape, order: Sequence[int]) -> Form:
    """A form of a shape with its axes in another order."""
    if list(order) == list(range(len(shape))):
        return form

    def leaf(atom: Atom) -> Form:
        own = _padded(atom.shape, len(shape))
        turned = tuple(own[k] for k in order)
        axes = [k for k, n in enumerate(own) if n != 1]
        of_them = [axes.index(k) for k in order if own[k] != 1]
        base = atom
        if atom.kind == "view" and (inner := atom.args[0].atom) is not None:
            base = inner if _kept(inner.shape) == _kept(own) else atom
        if base.kind == "transpose" and (inner := base.args[0].atom) is not None:
            of_them = [int(str(base.params[k])) for k in of_them]
            base = inner
        kept = algebra.form_of(base)
        if of_them != sorted(of_them):
            if base.kind == "contract":
                labels, out = base.params
                assert isinstance(out, tuple), "labels of the result"
                turned_out = tuple(out[k] for k in of_them)
                sizes = tuple(_kept(turned))
                kept = algebra.atom("contract", (labels, turned_out), base.args, sizes)
            else:
                kept = algebra.atom("transpose", tuple(of_them), (kept,), turned)
        return _viewed(algebra, kept, turned)

    return _moved(algebra, form, leaf, {})


def sliced(algebra: Algebra, form: Form, shape: Shape, ranges: Sequence[Range]) -> Form:
    """A part of a form of a shape: of each axis, some elements."""
    new = tuple(count for _, count, _ in ranges)
    if all(one == (0, n, 1) for one, n in zip(ranges, shape, strict=True)):
        return form

    def leaf(atom: Atom) -> Form:
        own = _padded(atom.shape, len(shape))
        of_axes = [(0, 1, 1) if n == 1 else one for n, one in zip(own, ranges, strict=True)]
        part = tuple(of_axes[len(of_axes) - len(atom.shape) :])
        taken = tuple(1 if own[k] == 1 else size_at(new, k - len(own)) for k in range(len(own)))
        if all(one == (0, n, 1) for one, n in zip(part, atom.shape, strict=True)):
            return algebra.form_of(atom)
        return algebra.atom("slice", part, (algebra.form_of(atom),), taken)

    return _moved(algebra, form, leaf, {})
