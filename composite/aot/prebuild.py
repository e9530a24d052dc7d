"""Kernels built ahead of time, from stated calls.

A stated call gives each input as a tf.TensorSpec or a pair (dtype, dims); here it becomes the same
request that the runtime makes for a kernel it wants, and takes the same way.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import tensorflow as tf

from composite.aot.replacing import naming
from composite.binding import native
from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.binding.records import python_value
from composite.binding.typed_record import Dims, TypedRecord
from composite.compiler.emit.library import LibraryKernel
from composite.compiler.emit.timings import KernelTiming
from composite.compiler.tvm.choices import Chosen
from composite.compiler.tvm.target import CudaTarget, Target
from composite.kernels import chosen, gpu, produce, shapes, verdicts, verify
from composite.kernels.decisions import Decision, Point, Times
from composite.kernels.tuned import Database
from composite.ops import call_arguments
from composite.ops.op import CompositeOp

if TYPE_CHECKING:
    from composite.kernels.given import Given

_SIZE = 32  # of a dim that varies, for measuring
_FEWEST_ELEMENTS = 256  # kFewestElements of constant_inputs.cc


class BuiltKernel(NamedTuple):
    """A kernel ready to be linked, and what was measured."""

    description: LibraryKernel
    objects: dict[str, bytes]
    timing: KernelTiming | None  # None: it is to be checked and measured where it is loaded

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


def sized(op: CompositeOp, wanted: KernelRequest, target: Target) -> KernelRequest:
    """The request with the inputs for sizes that are. ValueError where there is nothing to make."""
    with _refusing(op, wanted):
        return produce.sized(wanted, target)


def name(
    op: CompositeOp, wanted: KernelRequest, target: Target, choices: Chosen = chosen.NOTHING
) -> str:
    """The C name of the kernel for a request: equal for equal kernels. ValueError without one."""
    if given := _given(op, wanted, target):
        return given.record.name
    with _refusing(op, wanted):
        level = wanted.device.rpartition(":")[2] or target.isa.rpartition("-")[2]
        return f"{produce.kernel_name(wanted, choices)}_{level}"


class Plan(NamedTuple):
    """What a build knows beforehand.

    Attributes:
        before: earlier decisions on this machine, by the kernels' names; close results keep them.
        tuned: what kernels are made by, the first that knows one.
    """

    before: Mapping[str, Decision]
    tuned: Sequence[Database] = ()


def kernel(op: CompositeOp, wanted: KernelRequest, target: Target, plan: Plan) -> BuiltKernel:
    """Compiles, checks and measures the kernel of a request. ValueError if there can be none."""
    from composite.compiler import tvm as backend

    if given := _given(op, wanted, target):
        return _taken(op, given)

    with _refusing(op, wanted):
        choices = chosen.choices_for(
            produce.identity(wanted),
            target,
            lambda given: produce.write(wanted, target, given),
            plan.tuned,
        )
        own = name(op, wanted, target, choices)
        if isinstance(target, CudaTarget):
            return _for_gpu(op, wanted, target, own, plan, choices)
        compiled = produce.compile_object(wanted, target, own, choices)
    record = produce.record_of(wanted, compiled, target, tuned=bool(choices))
    with tempfile.TemporaryDirectory(prefix="composite-") as folder, naming(folder):
        path = Path(folder) / "kernel.so"
        backend.link(compiled, path, runtime=native.library_path())
        with _checking(op, wanted):
            accuracy = produce.check(wanted, compiled, path)
        record = produce.with_accuracy(record, wanted, accuracy)
        decision = verdicts.measured_library(record, wanted, path, plan.before.get(compiled.name))
    # Where timings.json is missing, the kernel is taken to be no slower.
    record = replace(record, verdict="kernel")
    description = _description(op, record, packed=len(compiled.packed))
    return BuiltKernel(description, dict(compiled.objects), _timing(decision))


def _for_gpu(  # noqa: PLR0913, PLR0917 - what `kernel` has found out
    op: CompositeOp,
    wanted: KernelRequest,
    target: CudaTarget,
    own: str,
    plan: Plan,
    choices: Chosen,
) -> BuiltKernel:
    record, image = produce.compile_image(wanted, target, choices, name=own)
    try:
        with _checking(op, wanted):
            record = produce.checked(wanted, record, image)
    except gpu.Missing:
        record = replace(record, verdict="unchecked")
        return BuiltKernel(_description(op, record, image=image), {}, None)
    with tempfile.TemporaryDirectory(prefix="composite-") as folder, naming(folder):
        path = Path(folder) / "image"
        path.write_bytes(image)
        decision = verdicts.measured_library(record, wanted, path, plan.before.get(own))
    record = replace(record, verdict="kernel", library_sha256=None)
    return BuiltKernel(_description(op, record, image=image), {}, _timing(decision))


def _given(op: CompositeOp, wanted: KernelRequest, target: Target) -> Given | None:
    """The author's own kernel for a request, the one that was given last."""
    for given in reversed(op.kernels):
        own = given.record
        same = (own.in_shapes, own.attrs, own.constants)
        if same == (wanted.in_shapes, wanted.attrs, wanted.constants) and (
            own.device == wanted.device if wanted.device else own.target == target.key
        ):
            return cast("Given", given)
    return None


def _taken(op: CompositeOp, given: Given) -> BuiltKernel:
    """An author's kernel, which was checked and measured when it was given."""
    which = f"the kernel of {op.__name__} ({given.record.strategy})"
    if given.image:
        record = replace(given.record, verdict="kernel", library=None, library_sha256=None)
        description = _description(op, record, image=given.image)
        return BuiltKernel(description, {}, _timing(given.decision))
    if not given.objects:
        raise ValueError(
            f"{which} came as a shared library, which cannot be built into another: give it as an "
            "object file"
        )
    if given.record.alignment:
        raise ValueError(
            f"{which} assumes tensors at multiples of {given.record.alignment} bytes, and those "
            "of a program without TensorFlow lie anywhere: give the IRModule that it was made of"
        )
    return BuiltKernel(_description(op, given.record), dict(given.objects), _timing(given.decision))


def _description(
    op: CompositeOp, record: KernelRecord, *, packed: int = 0, image: bytes = b""
) -> LibraryKernel:
    return LibraryKernel(
        name=record.name,
        op_name=op.op_name,
        record=record.serialize(),
        facts=_facts(record),
        packed=packed,
        image=image,
    )


@contextmanager
def _checking(op: CompositeOp, wanted: KernelRequest) -> Iterator[None]:
    """Says of which call it is that a kernel is wrong, as a ValueError."""
    try:
        yield
    except verify.Mismatch as wrong:
        raise ValueError(
            f"no kernel for {op.__name__}({described(wanted)}): it failed its check: {wrong}"
        ) from wrong


@contextmanager
def _refusing(op: CompositeOp, wanted: KernelRequest) -> Iterator[None]:
    """Says of which call it is that there can be no kernel, as a ValueError."""
    from composite.compiler import tvm as backend

    try:
        yield
    except (backend.NotCovered, produce.Inexpandable) as answer:
        raise ValueError(f"no kernel for {op.__name__}({described(wanted)}): {answer}") from answer


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


def _facts(record: KernelRecord) -> dict[str, Any]:
    return {
        "shapes": _shapes(record),
        "attributes": _attributes(record),
        "isa": record.isa,
        "strategy": record.strategy,
        "proof": record.proof,
        # As the check gave it; none where the kernel is to be checked where it is loaded.
        "error": None if record.error is None else float(f"{record.error:.2g}"),
        "unchecked": record.verdict == "unchecked",
        "error_unit": record.error_unit,
        "exact": record.exact,
    }


def _shapes(wanted: KernelRequest | KernelRecord) -> str:
    found = []
    for i, dims in enumerate(wanted.in_shapes):
        sizes = "x".join(map(str, dims)) or "scalar"
        sizes = f"size {sizes}" if i in wanted.size_inputs else sizes
        found.append(f"constant {sizes}" if i in wanted.constants else sizes)
    return ", ".join(found)


def _attributes(wanted: TypedRecord) -> str:
    attrs = {name: python_value(value) for name, value in sorted(wanted.attrs.items())}
    return ", ".join(f"{n}={getattr(v, 'name', v)!s}" for n, v in attrs.items())


def described(wanted: KernelRequest) -> str:
    """The shapes and attributes of a request, for people."""
    return "; ".join(filter(None, (_shapes(wanted), _attributes(wanted))))


def request(op: CompositeOp, arguments: Mapping[str, Any]) -> KernelRequest:
    """A stated call as a request: its attributes, and shapes whose varying dims are symbols."""
    return requests(op, arguments)[0]


def requests(
    op: CompositeOp, arguments: Mapping[str, Any], device: str = ""
) -> list[KernelRequest]:
    """The requests of a stated call: for any inputs, and for constants where some are stated.

    No kernel for a GPU takes inputs for constant. TypeError or ValueError for a call that is none.
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
    in_shapes = _with_symbols(specs)
    hint = (_SIZE,) * len(shapes.symbols(in_shapes))
    plain = KernelRequest(
        op=op.op_name,
        attrs=attrs,
        program=op.digest,
        in_shapes=in_shapes,
        hint=hint,
        device=device,
    )
    constants = tuple(i for i, spec in enumerate(specs) if _is_packed(spec) and not device)
    return [plain, replace(plain, constants=constants)] if constants else [plain]


def names(op: CompositeOp, arguments: Mapping[str, Any]) -> dict[str, str]:
    """What kernel records call the tensors and the varying dims of a stated call, by their names.

    Of the tensors of a list, "x[0]" is the name. ValueError if a name has two meanings.
    """
    given = dict(op.__signature__.bind(**arguments).arguments)
    tensors = []
    specs: list[Spec] = []
    for arg in op.schema.inputs:
        values = given[arg.name] if arg.is_list else [given[arg.name]]
        specs += [_spec(arg.name, value) for value in values]
        tensors += [f"{arg.name}[{i}]" for i in range(len(values))] if arg.is_list else [arg.name]
    found = {name: f"in{i}" for i, name in enumerate(tensors)}
    outputs = {arg.name: f"out{i}" for i, arg in enumerate(op.schema.outputs)}
    dims = [dim for spec in specs for dim in spec.dims]
    symbols = [dim for shape in _with_symbols(specs) for dim in shape]
    sizes = {dim: str(s) for dim, s in zip(dims, symbols, strict=True) if isinstance(dim, str)}
    for more in (outputs, sizes):
        if twice := found.keys() & more:
            raise ValueError(f"{min(twice)} names two of the tensors and dims of {op.__name__}")
        found |= more
    return found


def of_one(request: KernelRequest) -> list[KernelRequest]:
    """A request with 1 in the place of each symbol that a batch or a sequence would be, and of all.

    They are dims of the first input, but for its last.
    """
    symbols = shapes.symbols([request.in_shapes[0][:-1]])
    bound = [{symbol} for symbol in symbols] + ([set(symbols)] if len(symbols) > 1 else [])
    return [_with_ones(request, ones) for ones in bound]


def _with_ones(request: KernelRequest, ones: set[str]) -> KernelRequest:
    left = [symbol for symbol in shapes.symbols(request.in_shapes) if symbol not in ones]
    dims: dict[int | str, int | str] = dict.fromkeys(ones, 1)
    dims |= {symbol: f"s{i}" for i, symbol in enumerate(left)}
    in_shapes = tuple(tuple(dims.get(d, d) for d in shape) for shape in request.in_shapes)
    return replace(request, in_shapes=in_shapes, hint=request.hint[: len(left)])


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


def _with_symbols(specs: list[Spec]) -> tuple[Dims, ...]:
    symbols: dict[Any, str] = {}

    def dim(given: int | str | None, own: tuple[int, int]) -> int | str:
        if isinstance(given, int):
            return given
        return symbols.setdefault(given or own, f"s{len(symbols)}")  # without a name: like no other

    return tuple(
        tuple(dim(given, (position, axis)) for axis, given in enumerate(spec.dims))
        for position, spec in enumerate(specs)
    )
