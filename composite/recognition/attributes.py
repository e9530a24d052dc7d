"""The attributes that an op may have in a place: values that the graph's constants suggest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.compiler.schema import AttrSpec, OpSchema
from composite.recognition.cuts import Cut
from composite.recognition.reading import Constants

_LARGEST = 64  # elements of a constant that may be attributes
_MOST_VALUES = 16  # of an attribute
_MOST_CALLS = 48

Attributes = dict[str, Any]


def numbers_in(cut: Cut, graph: tf.Graph, constants: Constants) -> list[float]:
    """The numbers that the nodes of a cut know: small constants and their attributes."""
    fractions: dict[float, None] = {}
    others: dict[float, None] = {}
    seen: set[str] = set()
    pending = [graph.get_operation_by_name(name) for name in sorted(cut.ops)]
    ends = {one.op.name for one in cut.inputs}
    while pending:
        op = pending.pop(0)
        if op.name in seen:
            continue
        seen.add(op.name)
        for value in op.node_def.attr.values():
            kind = value.WhichOneof("value")
            whole = {"i": [value.i], "list": value.list.i}.get(kind or "", [])
            others |= dict.fromkeys(map(float, whole))
            fractions |= dict.fromkeys([value.f] if kind == "f" else [])
        for tensor in (one for one in op.inputs if one.op.name not in ends):
            values = constants.value(tensor)
            if values is not None:
                pending.append(tensor.op)
                if values.size <= _LARGEST and values.dtype.kind in "iuf":
                    group = fractions if values.dtype.kind == "f" else others
                    group |= dict.fromkeys(map(float, values.reshape(-1)))
        others |= dict.fromkeys(float(n) for x in op.inputs for n in x.shape if n)
    return [one for one in {**fractions, **others} if math.isfinite(one)]


def structures(schema: OpSchema, numbers: Sequence[float]) -> Iterator[Attributes]:
    """Values of the attributes but those of a float, the defaults first."""
    values = {a.name: _values(a, numbers) for a in schema.attrs if a.type != "float"}
    return _by_changes(values)


def fractions(schema: OpSchema, numbers: Sequence[float]) -> Iterator[Attributes]:
    """Values of the attributes that are floats, the defaults first."""
    values = {a.name: _values(a, numbers) for a in schema.attrs if a.type == "float"}
    return _by_changes(values)


def _by_changes(values: Mapping[str, Sequence[Any]]) -> Iterator[Attributes]:
    """All choices, those with fewer values other than the first in front."""
    orders = sorted(
        itertools.product(*(range(len(one)) for one in values.values())),
        key=lambda order: (sum(k > 0 for k in order), sum(order)),
    )
    for order in orders[:_MOST_CALLS]:
        yield {name: values[name][k] for name, k in zip(values, order, strict=True)}


def _values(attr: AttrSpec, numbers: Sequence[float]) -> list[Any]:
    first = [attr.default] if attr.has_default else []
    if attr.type == "bool":
        return [*first, *(one for one in (False, True) if one not in first)]
    if attr.allowed:
        return [*first, *(one for one in attr.allowed if one not in first)]
    if attr.type == "int":
        least = -math.inf if attr.minimum is None else attr.minimum
        whole = (int(one) for one in numbers if one.is_integer() and one >= least)
        return _distinct([*first, *whole])
    if attr.type == "float":
        return _distinct([*first, *_derived(numbers)])
    return first


def _derived(numbers: Sequence[float]) -> Iterator[float]:
    """Numbers, and what a constant may have been computed from."""
    yield from numbers
    for one in numbers:
        yield 1 - one
    for one in (n for n in numbers if n > 0):
        yield from (1 / one, math.sqrt(one), one * one)


def _distinct(values: Iterable[Any]) -> list[Any]:
    """The first of them, none twice; floats as they are written in single precision."""
    found: list[Any] = []
    for value in values:
        one = value if isinstance(value, int) else float(str(np.float32(value)))
        if all(abs(one - other) > 1e-6 * abs(one) for other in found):
            found.append(one)
    return found[:_MOST_VALUES]
