"""Which calls a library has kernels for: stated, recorded in a run, or one of each kind.

Not for: files of calls (build_options.py), compiling them (prebuild.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from composite.aot.build_options import Call, Signatures, plain, text
from composite.binding.kernel_request import KernelRequest
from composite.binding.records import python_value
from composite.compiler.schema import ArgSpec, OpSchema
from composite.ops.call import op_def
from composite.ops.op import CompositeOp


class Stated(NamedTuple):
    """A call of an op to compile a kernel for."""

    op: CompositeOp
    arguments: Call


def stated(ops: Sequence[CompositeOp], signatures: Signatures) -> list[Stated]:
    """The calls beside the ops, and those that are given, by Python's or TensorFlow's names.

    ValueError for calls of an op that there is not.
    """
    names = {name for op in ops for name in (op.__name__, op.op_name)}
    if unknown := sorted(set(signatures) - names):
        raise ValueError(
            f"signatures for {unknown}, but the ops are {sorted(op.__name__ for op in ops)}"
        )
    found = []
    for op in ops:
        given = (*signatures.get(op.__name__, ()), *signatures.get(op.op_name, ()))
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


def recorded_line(request: KernelRequest) -> str | None:
    """The request of a kernel as a line of a record; None where JSON cannot hold an attribute."""
    definition = op_def(request.op)
    schema = OpSchema.from_op_def(definition)
    attrs = {name: python_value(value) for name, value in request.attrs.items()}
    dims = enumerate(request.in_shapes)
    call: dict[str, Any] = {}
    for arg in schema.inputs:
        specs: list[list[Any]] = []
        for dtype in _dtypes(arg, attrs):
            position, shape = next(dims)
            mark = ["constant"] if position in request.constants else []
            specs.append([tf.as_dtype(dtype).name, list(shape), *mark])
        call[arg.name] = specs if arg.is_list else specs[0]
    derived = {name for arg in schema.inputs for name in arg.bound_attrs}
    for name, value in attrs.items():
        if name not in derived:
            call[name] = _as_json(value)
            if call[name] is None:
                return None
    return json.dumps({"op": request.op, "call": call}, sort_keys=True)


def _dtypes(arg: ArgSpec, attrs: Mapping[str, Any]) -> list[Any]:
    if arg.type_list_attr:
        return list(attrs[arg.type_list_attr])
    one = attrs[arg.type_attr] if arg.type_attr else arg.dtype
    return [one] * (attrs[arg.number_attr] if arg.number_attr else 1)


def _as_json(value: Any) -> Any:
    """The value as JSON has it; None where it has none."""
    try:
        return json.loads(json.dumps(value, default=_plain_or_fail))
    except (TypeError, ValueError):
        return None


def _plain_or_fail(value: Any) -> Any:
    found = plain(value)
    if isinstance(found, str) and found == repr(value):
        raise TypeError(f"{value!r} has no form in JSON")
    return found
