"""Kernels built ahead of time, from stated calls.

A stated call gives each input as a tf.TensorSpec or a pair (dtype, dims); here it becomes the same
request that the runtime makes for a kernel it wants, and takes the same way.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from composite.aot.replacing import naming
from composite.binding import native
from composite.binding.records import CONSTANTS, PROGRAM, NodeDef, python_value, serialize
from composite.compiler.emit.library import LibraryKernel
from composite.compiler.emit.timings import KernelTiming
from composite.compiler.tvm.choices import Chosen
from composite.compiler.tvm.target import Target
from composite.kernels import chosen, produce, verdicts, verify
from composite.kernels.decisions import Decision, Point, Times
from composite.kernels.expansions import constants_of
from composite.kernels.tuned import Database
from composite.ops import call_arguments
from composite.ops.op import CompositeOp

_SIZE = 32  # of a dim that varies, for measuring
_FEWEST_ELEMENTS = 256  # kFewestElements of constant_inputs.cc


class BuiltKernel(NamedTuple):
    """A kernel ready to be linked, and what was measured."""

    description: LibraryKernel
    objects: dict[str, bytes]
    timing: KernelTiming

    @property
    def has_loop(self) -> bool:
        """Whether it goes through the trips of a loop."""
        return "recurrence" in self.description.facts["strategy"]


class Spec(NamedTuple):
    """One input of a stated call. `constant`: it is the same in every call."""

    dtype: tf.DType
    dims: tuple[int | str | None, ...]
    constant: bool = False

    def known(self) -> list[int | None]:
        """The dims as TensorFlow has them: a size or None."""
        return [d if isinstance(d, int) else None for d in self.dims]


def name(wanted: NodeDef, target: Target, choices: Chosen = chosen.NOTHING) -> str:
    """The C name of the kernel for a request: equal for equal kernels."""
    return f"{produce.kernel_name(wanted, choices)}_{target.isa.rpartition('-')[2]}"


class Plan(NamedTuple):
    """What a build knows beforehand.

    Attributes:
        before: earlier decisions on this machine, by the kernels' names; close results keep them.
        tuned: what kernels are made by, the first that knows one.
    """

    before: Mapping[str, Decision]
    tuned: Sequence[Database] = ()


def kernel(op: CompositeOp, wanted: NodeDef, target: Target, plan: Plan) -> BuiltKernel:
    """Compiles, checks and measures the kernel of a request. ValueError if there can be none."""
    from composite.compiler import tvm as backend

    try:
        choices = chosen.choices_for(
            wanted, target, lambda given: produce.write(wanted, target, given), plan.tuned
        )
        own = name(wanted, target, choices)
        compiled = produce.compile_object(wanted, target, own, choices)
    except (backend.NotCovered, produce.Inexpandable) as answer:
        raise ValueError(f"no kernel for {op.__name__}({described(wanted)}): {answer}") from answer
    record = produce.record_of(wanted, compiled, target, tuned=bool(choices))
    with tempfile.TemporaryDirectory(prefix="composite-") as folder, naming(folder):
        path = Path(folder) / "kernel.so"
        backend.link(compiled, path, runtime=native.library_path())
        try:
            accuracy = produce.check(wanted, compiled, path)
        except verify.Mismatch as wrong:
            raise ValueError(
                f"no kernel for {op.__name__}({described(wanted)}): it failed its check: {wrong}"
            ) from wrong
        produce.add_accuracy(record, wanted, accuracy)
        decision = verdicts.measured_library(record, wanted, path, plan.before.get(compiled.name))
    # Where timings.json is missing, the kernel is taken to be no slower.
    record.attr["_verdict"].s = b"kernel"
    description = LibraryKernel(
        name=compiled.name,
        op_name=op.op_name,
        record=serialize(record),
        facts=_facts(record),
        packed=len(compiled.packed),
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
    return {
        "shapes": _shapes(record),
        "attributes": _attributes(record),
        "isa": record.attr["_isa"].s.decode(),
        "strategy": record.attr["_strategy"].s.decode(),
        "error": float(f"{record.attr['_error'].f:.2g}"),  # as the check gave it
        "error_unit": record.attr["_error_unit"].s.decode(),
        "exact": record.attr["_exact"].b,
    }


def _shapes(wanted: NodeDef) -> str:
    constants = constants_of(wanted)
    shapes = []
    for i, shape in enumerate(wanted.attr["_in_shapes"].list.shape):
        sizes = (str(d.size) if d.size >= 0 else f"s{-d.size - 1}" for d in shape.dim)
        shapes.append(("constant " if i in constants else "") + ("x".join(sizes) or "scalar"))
    return ", ".join(shapes)


def _attributes(wanted: NodeDef) -> str:
    attrs = {n: python_value(v) for n, v in sorted(wanted.attr.items()) if not n.startswith("_")}
    return ", ".join(f"{n}={getattr(v, 'name', v)!s}" for n, v in attrs.items())


def described(wanted: NodeDef) -> str:
    """The shapes and attributes of a request, for people."""
    return "; ".join(filter(None, (_shapes(wanted), _attributes(wanted))))


def request(op: CompositeOp, arguments: Mapping[str, Any]) -> NodeDef:
    """A stated call as a request: its attributes, and shapes whose varying dims are symbols."""
    return requests(op, arguments)[0]


def requests(op: CompositeOp, arguments: Mapping[str, Any]) -> list[NodeDef]:
    """The requests of a stated call: for any inputs, and for constants where some are stated.

    TypeError or ValueError for a call that is none.
    """
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
        attrs = call_arguments.bind(op.op_def, given).attrs
    node = NodeDef(op=op.op_name)
    for attr_name, attr in attrs.items():
        node.attr[attr_name].CopyFrom(attr)
    node.attr[PROGRAM].s = op.digest.encode()
    _add_shapes(node, specs)
    constants = [i for i, spec in enumerate(specs) if _is_packed(spec)]
    if not constants:
        return [node]
    packing = NodeDef()
    packing.CopyFrom(node)
    packing.attr[CONSTANTS].list.i.extend(constants)
    return [node, packing]


def of_one(request: NodeDef) -> list[NodeDef]:
    """A request with 1 in the place of each symbol that a batch or a sequence would be, and of all.

    They are dims of the first input, but for its last.
    """
    (first, *_) = request.attr["_in_shapes"].list.shape
    symbols = sorted({-1 - dim.size for dim in first.dim[:-1] if dim.size < 0})
    bound = [{symbol} for symbol in symbols] + ([set(symbols)] if len(symbols) > 1 else [])
    return [_with_ones(request, ones) for ones in bound]


def _with_ones(request: NodeDef, symbols: set[int]) -> NodeDef:
    left = [n for n in range(len(request.attr["_hint"].list.i)) if n not in symbols]
    sizes = {-1 - n: 1 for n in symbols} | {-1 - n: -1 - i for i, n in enumerate(left)}
    made = NodeDef()
    made.CopyFrom(request)
    for shape in made.attr["_in_shapes"].list.shape:
        for dim in shape.dim:
            dim.size = sizes.get(dim.size, dim.size)
    del made.attr["_hint"].list.i[len(left) :]
    return made


def _is_packed(spec: Spec) -> bool:
    """Whether the runtime looks for kernels that pack it (constant_inputs.cc)."""
    sizes = [d for d in spec.dims if isinstance(d, int)]
    return (
        spec.constant
        and spec.dtype.is_floating
        and len(sizes) == len(spec.dims) >= 2
        and math.prod(sizes) >= _FEWEST_ELEMENTS
    )


def _spec(name: str, value: Any) -> Spec:
    if isinstance(value, tf.TensorSpec):
        if value.shape.rank is None:
            raise ValueError(f"the signature's {name} needs a rank")
        return Spec(value.dtype, tuple(value.shape.as_list()))
    try:
        dtype, dims, *constant = value
        spec = Spec(tf.as_dtype(dtype), tuple(dims), bool(constant))
    except (TypeError, ValueError) as error:
        raise TypeError(_no_spec(name, value)) from error
    if constant not in ([], ["constant"]):
        raise TypeError(_no_spec(name, value))
    return spec


def _no_spec(name: str, value: Any) -> str:
    return (
        f"the signature's {name} must be a tf.TensorSpec, (dtype, dims) or "
        f'(dtype, dims, "constant"), not {value!r}'
    )


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
