"""Which calls a library has kernels for: stated, recorded in a run, or one of each kind.

A call is a mapping of names to values: an input is a pair (dtype, dims), in which a dim is a size,
or a name where it varies; an attribute is what a caller gives. Files hold them as JSON.

Not for: compiling them (prebuild.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from composite.call import op_def
from composite.compiler.schema import ArgSpec, OpSchema
from composite.jit import shapes
from composite.op import CompositeOp
from composite.records import NodeDef, python_value

Call = Mapping[str, Any]
Signatures = Mapping[str, Sequence[Call]]


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


def text(arguments: Call) -> str:
    """A call as one line of JSON, the same for the same call."""
    return json.dumps(dict(arguments), sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    """What JSON does not know, in the terms of a signature file."""
    if isinstance(value, tf.TensorSpec):
        return [value.dtype.name, value.shape.as_list()]
    if isinstance(value, tf.DType):
        return value.name
    if isinstance(value, tf.TensorShape):
        return value.as_list() if value.rank is not None else None
    if isinstance(value, bytes):
        return value.decode()
    return repr(value)


def read(path: Path) -> Signatures:
    """The calls of a file: a JSON object of lists by op, or what COMPOSITE_RECORD wrote.

    OSError when it cannot be read; ValueError, with the line, when it is neither.
    """
    content = path.read_text(encoding="utf-8")
    try:
        parsed = json.loads(content)
    except ValueError:
        return _recorded(path, content)
    if isinstance(parsed, dict) and {"op", "call"} == set(parsed):
        return _recorded(path, content)  # of one call
    if not isinstance(parsed, dict) or not all(_are_calls(calls) for calls in parsed.values()):
        raise ValueError(f"{path}: a JSON object is wanted, with a list of calls for each op")
    return parsed


def _are_calls(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(call, dict) for call in value)


def _recorded(path: Path, content: str) -> Signatures:
    calls: dict[str, list[Call]] = {}
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            calls.setdefault(entry["op"], []).append(dict(entry["call"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}:{number}: neither a JSON object of calls nor a line that "
                f"COMPOSITE_RECORD wrote ({error})"
            ) from error
    return calls


def of_ops(signatures: Signatures, ops: Iterable[CompositeOp]) -> tuple[dict[str, Any], list[str]]:
    """The part of recorded calls that belongs to these ops, and the names of the other ops."""
    names = {name for op in ops for name in (op.__name__, op.op_name)}
    own = {name: calls for name, calls in signatures.items() if name in names}
    return own, sorted(set(signatures) - names)


def recorded_line(request: NodeDef) -> str | None:
    """The request of a kernel as a line of a record; None where JSON cannot hold an attribute."""
    definition = op_def(request.op)
    schema = OpSchema.from_op_def(definition)
    attrs = {n: python_value(v) for n, v in request.attr.items() if not n.startswith("_")}
    dims = iter(shapes.from_record(request))
    call: dict[str, Any] = {}
    for arg in schema.inputs:
        specs = [[tf.as_dtype(d).name, list(next(dims))] for d in _dtypes(arg, attrs)]
        call[arg.name] = specs if arg.is_list else specs[0]
    derived = {name for arg in schema.inputs for name in arg.bound_attrs}
    for name, value in attrs.items():
        if name not in derived:
            plain = _as_json(value)
            if plain is None:
                return None
            call[name] = plain
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
    plain = _plain(value)
    if isinstance(plain, str) and plain == repr(value):
        raise TypeError(f"{value!r} has no form in JSON")
    return plain
