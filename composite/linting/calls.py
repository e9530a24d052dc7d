"""Which calls of an op are looked at: given, stated beside it, or a call of each kind.

Not for: how a call is made a request for a kernel (aot/prebuild.py).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from composite.aot import enumeration, stated_calls
from composite.binding.kernel_request import KernelRequest
from composite.kernels import shapes
from composite.ops.op import CompositeOp

Call = Mapping[str, Any]  # as CompositeOp.add_signature takes it

# Sizes of the dims that vary, no two of them equal: as in real calls, and, for bodies that refuse
# those, as enumeration.py found the call.
_SIZES: tuple[Callable[[int], int], ...] = (lambda i: 32 * (i + 1), lambda i: 2 + i)


class Calls(NamedTuple):
    """Calls, and a note on those that are left out, "" if there are none."""

    calls: list[Call]
    note: str


def of(op: CompositeOp, given: Call | None, most: int) -> Calls:
    """The calls to look at; at most so many where they have to be found.

    `given` is a call, or attributes alone, which all calls then have.
    """
    given = given or {}
    attrs = {name: value for name, value in given.items() if not _is_input(op, name)}
    stated: list[Call] = [{**call, **attrs} for call in op.signatures]
    if given and (len(attrs) < len(given) or not op.schema.inputs):
        stated = [given]
    if stated:
        return Calls([one for call in stated for one in in_each_dtype(op, call)], "")
    found = enumeration.kinds(op, most, attrs)
    missing = _untried(op, found.calls) if 0 < len(found.calls) < most else []
    if missing:
        return Calls(list(found.calls), f"no call was found in {', '.join(missing)}: state one")
    return Calls(list(found.calls), found.note.partition("; the others")[0])


def _is_input(op: CompositeOp, name: str) -> bool:
    return any(arg.name == name for arg in op.schema.inputs)


def in_each_dtype(op: CompositeOp, call: Call) -> Iterator[Call]:
    """The call, and the same in every other dtype that the declaration allows.

    Where several attributes are dtypes, every combination of them.
    """
    yield call
    lists = [a for a in op.schema.derived if a.type == "type" and a.allowed]
    for chosen in itertools.product(*(attr.allowed for attr in lists)):
        dtypes = dict(zip([attr.name for attr in lists], chosen, strict=True))
        other = dict(call)
        for arg in op.schema.inputs:
            if arg.type_attr in dtypes:
                dtype = dtypes[arg.type_attr]
                value = call[arg.name]
                own = [_as(dtype, spec) for spec in (value if arg.is_list else [value])]
                other[arg.name] = own if arg.is_list else own[0]
        if stated_calls.request(op, other).attrs != stated_calls.request(op, call).attrs:
            yield other


def _as(dtype: tf.DType, spec: Any) -> Any:
    if isinstance(spec, tf.TensorSpec):
        return tf.TensorSpec(spec.shape, dtype)
    return (dtype.name, *spec[1:])


def _untried(op: CompositeOp, calls: Sequence[Call]) -> list[str]:
    """The dtypes of which no call was found, as "T=half"."""
    requests = [stated_calls.request(op, call) for call in calls]
    return [
        f"{attr.name}={dtype.name}"
        for attr in op.schema.derived
        if attr.type == "type"
        for dtype in attr.allowed
        if not any(r.attrs[attr.name].type == dtype.as_datatype_enum for r in requests)
    ]


def sized(request: KernelRequest) -> Iterator[KernelRequest]:
    """The request with sizes in the place of its symbols, one for each way to choose them."""
    names = shapes.symbols(request.in_shapes)
    for size in _SIZES[: len(_SIZES) if names else 1]:
        sizes = {name: size(i) for i, name in enumerate(names)}
        known = tuple(shapes.substitute(request.in_shapes, sizes))
        yield dataclasses.replace(request, in_shapes=known, hint=())
