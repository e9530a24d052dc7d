"""Which calls a library has kernels for: stated beside its ops, or given.

Not for: files of calls (build_options.py), what a run records in one
(composite/runtime/request/call_record.h), compiling them (prebuild.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from composite.aot.build_options import Call, Signatures, text
from composite.ops.op import CompositeOp


class Stated(NamedTuple):
    """A call of an op to compile a kernel for."""

    op: CompositeOp
    arguments: Call


def stated(ops: Sequence[CompositeOp], signatures: Signatures) -> list[Stated]:
    """The calls beside the ops, and those that are given, by Python's or TensorFlow's names.

    A Python name is that of the last op that has it, as in the library: an op may call others of
    its own name. ValueError for calls of an op that there is not.
    """
    last = {op.__name__: op for op in ops}
    names = {*last, *(op.op_name for op in ops)}
    if unknown := sorted(set(signatures) - names):
        raise ValueError(f"signatures for {unknown}, but the ops are {sorted(last)}")
    found = []
    for op in ops:
        given = [*signatures.get(op.op_name, ())]
        if last[op.__name__] is op:
            given += signatures.get(op.__name__, ())
        texts: dict[str, Call] = {}
        for call in (*op.signatures, *given):
            texts.setdefault(text(call), call)
        found += [Stated(op, call) for call in texts.values()]
    return found


def of_ops(
    signatures: Signatures, ops: Iterable[CompositeOp]
) -> tuple[dict[str, Sequence[Call]], list[str]]:
    """The calls of these ops, and the names of the others. ValueError when there are none."""
    names = {name for op in ops for name in (op.__name__, op.op_name)}
    own = {name: calls for name, calls in signatures.items() if name in names}
    others = sorted(set(signatures) - names)
    if others and not own:
        raise ValueError(f"none of the calls is of an op that is built here: {', '.join(others)}")
    return own, others
