"""Kernels built ahead of time, from stated calls.

A stated call gives each input as a tf.TensorSpec or a pair (dtype, dims); here it becomes the same
request that the runtime makes for a kernel it wants, and takes the same way.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from composite import call, native
from composite.compiler.emit.library import LibraryKernel
from composite.compiler.emit.timings import KernelTiming
from composite.compiler.tvm.target import Target
from composite.jit import produce, verdicts, verify
from composite.jit.decisions import Decision, Point, Times
from composite.op import CompositeOp
from composite.records import PROGRAM, NodeDef, python_value, serialize

_SIZE = 32  # of a dim that varies, for measuring


class BuiltKernel(NamedTuple):
    """A kernel ready to be linked, and what was measured."""

    description: LibraryKernel
    objects: dict[str, bytes]
    timing: KernelTiming


class Spec(NamedTuple):
    """One input of a stated call."""

    dtype: tf.DType
    dims: tuple[int | str | None, ...]

    def known(self) -> list[int | None]:
        """The dims as TensorFlow has them: a size or None."""
        return [d if isinstance(d, int) else None for d in self.dims]


def kernel(
    op: CompositeOp,
    arguments: Mapping[str, Any],
    target: Target,
    before: Mapping[str, Decision],
) -> BuiltKernel:
    """Compiles, checks and measures the kernel of a call. ValueError if there can be none.

    `before` has earlier decisions on this machine, by the kernels' names, which close results keep.
    """
    from composite.compiler import tvm as backend

    wanted = request(op, arguments)
    name = f"{produce.kernel_name(wanted)}_{target.isa.rpartition('-')[2]}"
    try:
        compiled = produce.compile_object(wanted, target, name)
    except (backend.NotCovered, produce.Inexpandable) as answer:
        raise ValueError(f"no kernel for {op.__name__}{_text(arguments)}: {answer}") from answer
    record = produce.record_of(wanted, compiled, target)
    with tempfile.TemporaryDirectory(prefix="composite-") as folder:
        path = Path(folder) / "kernel.so"
        backend.link(compiled, path, runtime=native.library_path())
        try:
            accuracy = produce.check(wanted, compiled, path)
        except verify.Mismatch as wrong:
            raise ValueError(
                f"no kernel for {op.__name__}{_text(arguments)}: it failed its check: {wrong}"
            ) from wrong
        produce.add_accuracy(record, wanted, accuracy)
        decision = verdicts.measured_library(record, wanted, path, before.get(compiled.name))
    # Where timings.json is missing, the kernel is taken to be no slower.
    record.attr["_verdict"].s = b"kernel"
    description = LibraryKernel(
        name=compiled.name,
        op_name=op.op_name,
        record=serialize(record),
        facts=_facts(record),
    )
    return BuiltKernel(description, dict(compiled.objects), _timing(decision))


def _timing(decision: Decision) -> KernelTiming:
    points = decision.points
    return KernelTiming(
        asked=decision.asked,
        sizes=[p.size for p in points],
        kernel_times=[p.times.kernel_us for p in points],
        expansion_times=[p.times.expansion_us for p in points],
        kernel_wins=[p.kernel_wins for p in points],
    )


def decisions_of(kernels: Mapping[str, KernelTiming]) -> dict[str, Decision]:
    """What an earlier build decided, from its timings."""
    found = {}
    for name, timing in kernels.items():
        columns = (timing.sizes, timing.kernel_times, timing.expansion_times, timing.kernel_wins)
        points = tuple(
            Point(size, Times(kernel, expansion, *[kernel / max(expansion, 1e-3)] * 3), wins)
            for size, kernel, expansion, wins in zip(*columns, strict=True)
        )
        found[name] = Decision(timing.asked, points)
    return found


def _facts(record: NodeDef) -> dict[str, Any]:
    shapes = [
        "x".join(str(d.size) if d.size >= 0 else f"s{-d.size - 1}" for d in shape.dim) or "scalar"
        for shape in record.attr["_in_shapes"].list.shape
    ]
    attrs = {n: python_value(v) for n, v in sorted(record.attr.items()) if not n.startswith("_")}
    return {
        "shapes": ", ".join(shapes),
        "attributes": ", ".join(f"{n}={getattr(v, 'name', v)!s}" for n, v in attrs.items()),
        "isa": record.attr["_isa"].s.decode(),
        "strategy": record.attr["_strategy"].s.decode(),
        "error": float(f"{record.attr['_error'].f:.2g}"),  # as the check gave it
        "error_unit": record.attr["_error_unit"].s.decode(),
        "exact": record.attr["_exact"].b,
    }


def request(op: CompositeOp, arguments: Mapping[str, Any]) -> NodeDef:
    """A stated call as a request: its attributes, and shapes whose varying dims are symbols."""
    given = dict(op.__signature__.bind(**arguments).arguments)
    given.pop("name", None)
    specs: list[Spec] = []
    with tf.Graph().as_default():
        for arg in op.schema.inputs:
            value = given[arg.name]
            own = [_spec(arg.name, v) for v in (value if arg.is_list else [value])]
            specs += own
            holders = [tf.compat.v1.placeholder(s.dtype, s.known()) for s in own]
            given[arg.name] = holders if arg.is_list else holders[0]
        attrs = call.bind(op.op_def, given).attrs
    node = NodeDef(op=op.op_name)
    for name, attr in attrs.items():
        node.attr[name].CopyFrom(attr)
    node.attr[PROGRAM].s = op.digest.encode()
    _add_shapes(node, specs)
    return node


def _spec(name: str, value: Any) -> Spec:
    if isinstance(value, tf.TensorSpec):
        if value.shape.rank is None:
            raise ValueError(f"the signature's {name} needs a rank")
        return Spec(value.dtype, tuple(value.shape.as_list()))
    try:
        dtype, dims = value
        return Spec(tf.as_dtype(dtype), tuple(dims))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"the signature's {name} must be a tf.TensorSpec or (dtype, dims), not {value!r}"
        ) from error


def _add_shapes(node: NodeDef, specs: list[Spec]) -> None:
    symbols: dict[Any, int] = {}
    node.attr["_in_shapes"].list.SetInParent()
    for position, spec in enumerate(specs):
        shape = node.attr["_in_shapes"].list.shape.add()
        for axis, dim in enumerate(spec.dims):
            if isinstance(dim, int):
                shape.dim.add(size=dim)
            else:  # a dim without a name is like no other
                number = symbols.setdefault(dim or (position, axis), len(symbols))
                shape.dim.add(size=-1 - number)
    node.attr["_hint"].list.i.extend([_SIZE] * len(symbols))


def _text(arguments: Mapping[str, Any]) -> str:
    return "(" + ", ".join(f"{name}={value!r}" for name, value in arguments.items()) + ")"
