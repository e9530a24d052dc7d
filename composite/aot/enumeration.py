"""Calls of each kind that an op allows, with dims that vary.

They are what a library has kernels for when nobody stated its calls. A kind is a dtype, a value of
each enumerated attribute, and ranks. Which ranks an op takes, and which of its dims must be equal,
is found by trying small calls of its Python function.

Not for: random samples of calls (checking/templates.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from composite.compiler.schema import AttrSpec
from composite.ops.op import CompositeOp, DecoratedOp

# For each tensor the class of each dim: those of one class are equal.
Template = tuple[tuple[int, ...], ...]

_RANKS = (2, 1, 3, 0)  # the commonest first
_RANKS_OF_MANY = (2, 1, 3)  # of more than three tensors
_MOST_TENSORS = 5
_MOST_DIMS = 8  # of all tensors: they can be equal in 4140 ways
_LIST = 2  # tensors in a list of any length
_MOST_TRIALS = 5000  # calls of a Python function; one takes some milliseconds


class Kinds(NamedTuple):
    """Calls, as `CompositeOp.add_signature` takes them, and what was left out."""

    calls: list[dict[str, Any]]
    note: str


def kinds(op: CompositeOp, most: int, fixed: Mapping[str, Any] | None = None) -> Kinds:
    """At most so many calls of the op; the note says why there are no more, "" if these are all.

    `fixed` gives attributes that are the same in all of them.
    """
    fixed = fixed or {}
    if not isinstance(op, DecoratedOp):
        return Kinds([], "its Python function is not here: state its calls")
    open_ = [
        a.name
        for a in op.schema.attrs
        if a.name not in fixed and not a.has_default and not _values(a)
    ]
    if open_:
        return Kinds(
            [], f"attribute {open_[0]!r} has neither a default nor a list: state its calls"
        )
    trials = _Trials(op)
    calls = list(itertools.islice(_calls(trials, fixed, most + 1), most + 1))
    if trials.left == 0:
        return Kinds(calls[:most], f"{_MOST_TRIALS} shapes were tried: state the calls of others")
    if not calls:
        return Kinds([], "no shapes were found that its Python function takes: state its calls")
    if len(calls) > most:
        return Kinds(calls[:most], f"more than {most} kinds of calls; the others have no kernel")
    return Kinds(calls, "")


class _Trials:
    """Small calls of an op's Python function: which of them it takes. There is an end to them."""

    def __init__(self, op: DecoratedOp) -> None:
        self.op = op
        self.left = _MOST_TRIALS

    def accept(
        self, dtypes: Sequence[Sequence[tf.DType]], attrs: Mapping[str, Any], template: Template
    ) -> bool:
        """Whether the function takes tensors of these dtypes and dims."""
        if self.left == 0:
            return False
        self.left -= 1

        def inputs(make: Callable[[tf.DType, list[int]], Any]) -> list[Any]:
            shapes = iter(template)
            found = [
                [make(dtype, [2 + d for d in next(shapes)]) for dtype in own] for own in dtypes
            ]
            args = self.op.schema.inputs
            return [one if arg.is_list else one[0] for arg, one in zip(args, found, strict=True)]

        try:
            # The shape function first: for a rank that it does not take, a kernel of TensorFlow may
            # end the process.
            with tf.Graph().as_default():
                self.op(*inputs(tf.compat.v1.placeholder), **attrs)
            self.op.python_function(*inputs(lambda d, s: tf.ones(s, d)), *attrs.values())
        except Exception:  # noqa: BLE001 - whatever the author's code raises; a handle has no ones
            return False
        return True


def _calls(trials: _Trials, fixed: Mapping[str, Any], most: int) -> Iterator[dict[str, Any]]:
    """All kinds, with the commonest shapes of every dtype and attribute before other shapes."""
    op, schema = trials.op, trials.op.schema
    choices = [
        [fixed[attr.name]] if attr.name in fixed else _values(attr) or [attr.default]
        for attr in schema.attrs
    ]
    types = [_values(a) or [_LIST if a.type == "int" else tf.float32] for a in schema.derived]
    known: dict[tuple[int, ...], list[Template]] = {}  # by the number of tensors in each input
    kinds: dict[int, tuple[list[list[tf.DType]], dict[str, Any], list[Template]]] = {}
    for place in range(most):
        for number, values in enumerate(itertools.product(*types, *choices)):
            if number not in kinds:
                chosen = dict(zip([a.name for a in schema.derived], values, strict=False))
                attrs = dict(zip([a.name for a in schema.attrs], values[len(types) :], strict=True))
                dtypes = [_dtypes(arg, chosen) for arg in schema.inputs]
                kinds[number] = dtypes, attrs, _shapes(trials, dtypes, attrs, known, most)
            dtypes, attrs, templates = kinds[number]
            if place < len(templates):
                yield {**_inputs(op, dtypes, templates[place]), **attrs}


def _shapes(
    trials: _Trials,
    dtypes: Sequence[Sequence[tf.DType]],
    attrs: Mapping[str, Any],
    known: dict[tuple[int, ...], list[Template]],
    most: int,
) -> list[Template]:
    """The templates of a kind: those `known` of another one that it takes too, or its own."""
    counts = tuple(map(len, dtypes))
    if templates := [t for t in known.get(counts, ()) if trials.accept(dtypes, attrs, t)]:
        return templates
    found = list(itertools.islice(_templates(trials, dtypes, attrs), most))
    known.setdefault(counts, found)
    return found


def _values(attr: AttrSpec) -> list[Any]:
    if attr.allowed and not attr.type.startswith("list"):
        return list(attr.allowed)
    return [False, True] if attr.type == "bool" else []


def _dtypes(arg: Any, chosen: Mapping[str, Any]) -> list[tf.DType]:
    if arg.type_list_attr:
        return [tf.float32] * _LIST
    one = chosen[arg.type_attr] if arg.type_attr else tf.as_dtype(arg.dtype)
    return [one] * (chosen.get(arg.number_attr, _LIST) if arg.number_attr else 1)


def _inputs(
    op: DecoratedOp, dtypes: Sequence[Sequence[tf.DType]], template: Template
) -> dict[str, Any]:
    shapes = iter(template)
    call: dict[str, Any] = {}
    for arg, own in zip(op.schema.inputs, dtypes, strict=True):
        specs = [(dtype.name, tuple(f"d{d}" for d in next(shapes))) for dtype in own]
        call[arg.name] = specs if arg.is_list else specs[0]
    return call


def _templates(
    trials: _Trials, dtypes: Sequence[Sequence[tf.DType]], attrs: Mapping[str, Any]
) -> Iterator[Template]:
    """For each ranks that the function takes, its dims as different as they may be."""
    count = sum(map(len, dtypes))
    if count > _MOST_TENSORS:
        return
    choices = itertools.product(_RANKS if count <= 3 else _RANKS_OF_MANY, repeat=count)
    for ranks in sorted(choices, key=_commonness):
        if trials.left == 0:
            return
        if sum(ranks) > _MOST_DIMS:
            continue

        def accepts(classes: Sequence[int], ranks: Sequence[int] = ranks) -> bool:
            return trials.accept(dtypes, attrs, _split(ranks, classes))

        if accepts([0] * sum(ranks)):
            # Which dims must be equal may depend on what others are: then all ways are tried.
            ways = itertools.chain([_told_apart(sum(ranks), accepts)], _partitions(sum(ranks)))
            if (classes := next(filter(accepts, ways), None)) is not None:
                yield _split(ranks, classes)


def _commonness(ranks: Sequence[int]) -> tuple[int, int, tuple[int, ...]]:
    """Matrices first, then with vectors among them, fewer dims before more."""
    return max(map(_RANKS.index, ranks), default=0), sum(ranks), tuple(ranks)


def _split(ranks: Sequence[int], classes: Sequence[int]) -> Template:
    ends = list(itertools.accumulate(ranks))
    return tuple(tuple(classes[e - r : e]) for r, e in zip(ranks, ends, strict=True))


def _told_apart(count: int, accepts: Callable[[Sequence[int]], bool]) -> list[int]:
    """A class for each dim.

    Two dims are of different classes if the dims can be split into two groups that separate them,
    the sizes of a group being equal.
    """
    every = [*range(count)]
    if accepts(every):
        return every
    halves = (half for half in itertools.product((0, 1), repeat=count) if any(half) and not half[0])
    apart = [half for half in halves if accepts(half)]
    numbers: dict[tuple[int, ...], int] = {}
    return [numbers.setdefault(tuple(half[dim] for half in apart), len(numbers)) for dim in every]


def _partitions(count: int) -> list[list[int]]:
    """All ways to make dims equal, those with the most classes first."""
    found: list[list[int]] = [[]]
    for _ in range(count):
        found = [[*one, c] for one in found for c in range(max(one, default=-1) + 2)]
    return sorted(found, key=lambda one: -max(one, default=0))
