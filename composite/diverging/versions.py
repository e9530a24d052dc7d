"""An op beside another version of its body: of a built library.

The two expansions are different graphs, so that no node of one belongs to a node of the other. A
value of the one counts as equal if the other computes it too, anywhere, within the bound of a
kernel; the first that the other does not compute is where the bodies part.
Not for: loading the library (library_expansion.py, which another process does).
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding.records import NodeDef
from composite.diverging import values
from composite.diverging.deviation import Array, Deviation, in_precision, of_kernel
from composite.diverging.report import Divergence, Found
from composite.diverging.subject import Subject
from composite.diverging.values import EXPANSION, Key, Way
from composite.ops import functions
from composite.ops.op import CompositeOp
from composite.reference.evaluate import Step
from composite.saving import contents
from composite.saving.portable import portable


class _Value(NamedTuple):
    step: Step
    key: Key
    array: Array


def first(
    op: CompositeOp,
    inputs: Sequence[Any],
    attrs: Mapping[str, Any],
    library: Path,
    rtol: float | None,
) -> Found:
    """The first value of an op's body that the version in a built library does not compute.

    ValueError where the library has no such op, or that cannot be expanded for this call.
    """
    request = op.request(*inputs, **attrs)
    digests = dict(contents.defined(library))
    if op.op_name not in digests:
        raise ValueError(f"{library} has no op {op.op_name}, but {', '.join(sorted(digests))}")
    other = dataclasses.replace(request, program=digests[op.op_name])
    ours = _Side(op.op_name, portable(GraphDef(library=op.expand(*inputs, **attrs))), inputs)
    theirs = _Side(op.op_name, _expanded(library, other.to_node_def()), inputs)
    exact = values.recorded(ours.subject, Way("float64", tf.float64))

    def compare(value: _Value, array: Array) -> Deviation:
        if value.array.shape != array.shape or value.array.dtype != array.dtype:
            return _APART
        if rtol is not None:
            return in_precision(value.array, array, rtol)
        return of_kernel(value.array, array, exact.get(value.key, value.array))

    compared = len(ours.values) + len(theirs.values)
    if not any(compare(*pair).is_beyond for pair in zip(ours.outputs, theirs.arrays, strict=True)):
        return Found(None, compared)
    return _parting(ours, theirs, compare, compared)


class _Side:
    """The expansion of a version, run."""

    def __init__(self, name: str, graph_def: Any, inputs: Sequence[Any]) -> None:
        leaves = tf.nest.flatten(inputs)
        given = [
            x if isinstance(x, tf.Variable) else tf.convert_to_tensor(x).numpy() for x in leaves
        ]
        body = functions.body(graph_def.library)
        self.subject = Subject(name, body, given, tf.Graph())
        self.values: list[_Value] = []
        self.arrays = [y.numpy() for y in values.run(self.subject, Way(EXPANSION), self._see)]
        by_tensor = {f"{v.key[1]}:{v.key[2]}": v for v in self.values if not v.key[0]}
        self.outputs = [
            by_tensor.get(name, _Value(_END, ((), name, 0), array))
            for name, array in zip(body.outputs, self.arrays, strict=True)
        ]

    def _see(self, step: Step) -> None:
        self.values += [_Value(step, key, array) for key, array in values.values_of(step)]


# Of an output that no node computes, but an input is, or a call gives.
_END = Step(NodeDef(op="output", name="output"), (), (), (), (), is_call=False)
_APART = Deviation((), None, None, float("inf"), 0.0)


def _parting(
    ours: _Side, theirs: _Side, compare: Callable[[_Value, Array], Deviation], compared: int
) -> Found:
    """The first value of each side that the other does not compute, beside each other."""
    lost = [v for v in ours.values if all(compare(v, w.array).is_beyond for w in theirs.values)]
    new = [w for w in theirs.values if all(compare(v, w.array).is_beyond for v in ours.values)]
    pairs = zip(ours.outputs, theirs.arrays, strict=True)
    output = next((v, compare(v, y)) for v, y in pairs if compare(v, y).is_beyond)
    value, deviation = output
    if lost:
        value = lost[0]
        alike = [one for w in new if (one := compare(value, w.array)) is not _APART]
        deviation = alike[0] if alike else _APART
    where = theirs.subject.place(new[0].step) if new else ""
    notes = [f"the other body computes otherwise at {where}"] if where else []
    divergence = Divergence.of(
        value.step, ours.subject.place(value.step), value.array, deviation, 0.0
    )
    return Found(divergence, compared, tuple(notes))


def _expanded(library: Path, request: NodeDef) -> GraphDef:
    """The expansion by a library's op, in stock ops; another process loads the library.

    A process has one body for a name.
    """
    program = f"import sys; sys.path[:] = {sys.path!r}; from {__package__} import library_expansion"
    run = f"{program}; library_expansion.main(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", run, os.fspath(library.absolute())],
        input=request.SerializeToString(),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(f"{library} cannot be expanded: {said[-1] if said else 'no answer'}")
    return GraphDef.FromString(done.stdout)
