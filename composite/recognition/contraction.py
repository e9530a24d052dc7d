"""Products of matrices, batches of them, and einsum of two operands, in one form.

Transposes of operands and of the result are in the labels of the axes; so are reshapes that join
axes before a product with a matrix and split them behind it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from composite.recognition.algebra import ELEMENTWISE, Algebra, Form, Shape, atoms_of
from composite.recognition.moving import reshaped, transposed

Labels = tuple[str, ...]
_Operand = tuple[Form, Labels]


def contracted(
    algebra: Algebra,
    operands: Sequence[_Operand],
    out: Labels,
    sizes: Mapping[str, int],
) -> Form:
    """The sum of products over the labels that `out` lacks; each axis of a form has its label."""
    taken = dict(sizes)
    given = [_without_units(algebra, *one, taken) for one in operands]
    kept = tuple(label for label in out if taken[label] != 1)
    given = [_summed(algebra, given, k, kept, taken) for k in range(len(given))]
    both = set(given[0][1]) & set(given[1][1])
    if not both - set(kept):
        parts = [_laid_out(algebra, one, labels, kept, taken) for one, labels in given]
        found = algebra.product(*parts)
    else:
        found = _atom(algebra, given, kept, taken)
    return reshaped(algebra, found, _shape(kept, taken), _shape(out, taken))


def _shape(labels: Sequence[str], sizes: Mapping[str, int]) -> Shape:
    return tuple(sizes[label] for label in labels)


def _without_units(
    algebra: Algebra, form: Form, labels: Labels, sizes: Mapping[str, int]
) -> _Operand:
    kept = tuple(label for label in labels if sizes[label] != 1)
    return reshaped(algebra, form, _shape(labels, sizes), _shape(kept, sizes)), kept


def _summed(
    algebra: Algebra, given: Sequence[_Operand], index: int, out: Labels, sizes: Mapping[str, int]
) -> _Operand:
    """An operand without the axes that nothing else has."""
    form, labels = given[index]
    others = {*out, *(label for k, one in enumerate(given) if k != index for label in one[1])}
    alone = [k - len(labels) for k, label in enumerate(labels) if label not in others]
    if not alone:
        return form, labels
    shape = _shape(labels, sizes)
    count = math.prod(shape[k] for k in alone)
    mean = algebra.scaled(algebra.mean(form, alone), count)
    kept = tuple(label for label in labels if label in others)
    of_kept = tuple(sizes[label] if label in others else 1 for label in labels)
    return reshaped(algebra, mean, of_kept, _shape(kept, sizes)), kept


def _laid_out(
    algebra: Algebra, form: Form, labels: Labels, out: Labels, sizes: Mapping[str, int]
) -> Form:
    """An operand with the axes of the result, of size 1 where it has none."""
    mine = [label for label in out if label in labels]
    turned = transposed(algebra, form, _shape(labels, sizes), [labels.index(n) for n in mine])
    spread = tuple(sizes[label] if label in mine else 1 for label in out)
    return reshaped(algebra, turned, _shape(mine, sizes), spread)


def _atom(algebra: Algebra, given: Sequence[_Operand], out: Labels, sizes: dict[str, int]) -> Form:
    factor, joined = 1.0, out
    bare: list[_Operand] = []
    for index, (form, labels) in enumerate(given):
        lead = form.terms[0][1] if form.terms else 1.0
        factor *= lead
        others = set(given[1 - index][1])
        own, axes, out = _split(algebra, algebra.scaled(form, 1 / lead), labels, others, out, sizes)
        bare.append((own, axes))
    named = min(
        (_named(order, out) for order in (bare, bare[::-1])),
        key=lambda one: (
            [[(a.number, e) for a, e in p] for f in one[0] for p, _ in f.terms],
            one[1:],
        ),
    )
    forms, axes_of, results = named
    found = algebra.atom("contract", (axes_of, results), forms, _shape(out, sizes))
    found = algebra.scaled(found, factor)
    return reshaped(algebra, found, _shape(out, sizes), _shape(joined, sizes))


def _split(  # noqa: PLR0913, PLR0917 - an operand, and what is known of the others
    algebra: Algebra,
    form: Form,
    labels: Labels,
    others: set[str],
    out: Labels,
    sizes: dict[str, int],
) -> tuple[Form, Labels, Labels]:
    """An operand whose transpose, and whose joined axes, are in its labels."""
    shape = _shape(labels, sizes)
    groups = next(_joined(form, shape), None)
    if groups is not None and all(
        len(group) == 1 or (label in out and label not in others)
        for group, label in zip(groups, labels, strict=True)
    ):
        names: dict[str, Labels] = {}
        for group, label in zip(groups, labels, strict=True):
            is_one = len(group) == 1
            names[label] = (label,) if is_one else tuple(f"{label}.{n}" for n in range(len(group)))
            sizes.update(zip(names[label], group, strict=True))
        out = tuple(part for label in out for part in names.get(label, (label,)))
        form = reshaped(algebra, form, shape, tuple(n for group in groups for n in group))
        labels = tuple(part for label in labels for part in names[label])
        return _split(algebra, form, labels, others, out, sizes)
    atom = form.atom
    if atom is not None and atom.kind == "transpose":
        before = [""] * len(labels)
        for label, k in zip(labels, atom.params, strict=True):
            before[int(str(k))] = label
        return _split(algebra, atom.args[0], tuple(before), others, out, sizes)
    return form, labels, out


def _joined(form: Form, shape: Shape) -> Iterator[list[Shape]]:
    """Of the axes of a form, those that a view in it joins."""
    for atom in atoms_of(form):
        if atom.kind in ELEMENTWISE:
            for arg in atom.args:
                yield from _joined(arg, shape)
        elif (
            atom.kind == "view" and atom.shape == shape and (base := atom.args[0].atom) is not None
        ):
            groups = _groups(base.shape, shape)
            if groups is not None and any(len(group) > 1 for group in groups):
                yield groups


def _groups(base: Shape, view: Shape) -> list[Shape] | None:
    """Of each axis of a view, the axes of the base that it joins; None if it is not made so."""
    left = [n for n in base if n != 1]
    found: list[Shape] = []
    for size in view:
        group: list[int] = []
        while left and math.prod(group) < size:
            group.append(left.pop(0))
        if math.prod(group) != size:
            return None
        found.append(tuple(group))
    return None if left else found


def _named(
    operands: Sequence[_Operand], out: Labels
) -> tuple[tuple[Form, ...], tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Labels as numbers, in the order in which operands have them."""
    numbers: dict[str, int] = {}
    for _, labels in operands:
        for label in labels:
            numbers.setdefault(label, len(numbers))
    forms = tuple(form for form, _ in operands)
    axes = tuple(tuple(numbers[label] for label in labels) for _, labels in operands)
    return forms, axes, tuple(numbers[label] for label in out)
