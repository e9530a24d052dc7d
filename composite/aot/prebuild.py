"""Kernels built ahead of time: a request takes the way of those that the runtime makes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from composite.aot import stated_calls
from composite.aot.replacing import naming
from composite.binding import native
from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.compiler.emit.library import LibraryKernel
from composite.compiler.emit.timings import KernelTiming
from composite.compiler.tvm.choices import Chosen
from composite.compiler.tvm.target import CudaTarget, Target
from composite.kernels import algebra, chosen, cpu, gpu, produce, verdicts, verify
from composite.kernels.expansions import Inexpandable
from composite.kernels.tuned import Database
from composite.measuring.decisions import Decision, Point, Times
from composite.ops.op import CompositeOp

if TYPE_CHECKING:
    from composite.kernels.given import Given


class BuiltKernel(NamedTuple):
    """A kernel ready to be linked, and what was measured: nothing if it is for no CPU of here."""

    description: LibraryKernel
    objects: dict[str, bytes]
    timing: KernelTiming | None  # None: it is for no processor of here

    @property
    def is_unchecked(self) -> bool:
        """Whether it is for a GPU and is to be checked and measured where it is loaded."""
        return bool(self.description.facts["unchecked"])

    @property
    def is_foreign(self) -> bool:
        """Whether it is for another kind of CPU, and of no use beside TensorFlow here."""
        return self.timing is None and not self.is_unchecked

    @property
    def has_loop(self) -> bool:
        """Whether it goes through the trips of a loop."""
        return "recurrence" in self.description.facts["strategy"]


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
        compiled = produce.compile_object(
            wanted, target, own, choices, over_ring=algebra.is_wanted()
        )
    record = cpu.record_of(wanted, compiled, target, tuned=bool(choices))
    with tempfile.TemporaryDirectory(prefix="composite-") as folder, naming(folder):
        path = Path(folder) / "kernel.so"
        backend.link(compiled, path, None if target.is_foreign else native.library_path())
        with _checking(op, wanted):
            accuracy = produce.check(wanted, compiled, path)
        record = produce.with_accuracy(record, wanted, accuracy)
        timing = None
        if not target.is_foreign:
            before = plan.before.get(compiled.name)
            timing = _timing(verdicts.measured_library(record, wanted, path, before))
    # Where timings.json is missing, the kernel is taken to be no slower.
    description = _description(op, replace(record, verdict="kernel"), packed=len(compiled.packed))
    return BuiltKernel(description, dict(compiled.objects), timing)


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
            f"no kernel for {op.__name__}({stated_calls.described(wanted)}): it failed its "
            f"check: {wrong}"
        ) from wrong


@contextmanager
def _refusing(op: CompositeOp, wanted: KernelRequest) -> Iterator[None]:
    """Says of which call it is that there can be no kernel, as a ValueError."""
    from composite.compiler import tvm as backend

    try:
        yield
    except (backend.NotCovered, Inexpandable) as answer:
        raise ValueError(
            f"no kernel for {op.__name__}({stated_calls.described(wanted)}): {answer}"
        ) from answer


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
        points = []
        for size, kernel, expansion, wins in zip(*columns, strict=True):
            ratio = kernel / max(expansion, 1e-3)
            points.append(Point(size, Times(kernel, expansion, ratio, ratio, ratio), wins))
        found[name] = Decision(timing.asked, tuple(points))
    return found


def _facts(record: KernelRecord) -> dict[str, Any]:
    return {
        "shapes": stated_calls.described_shapes(record),
        "attributes": stated_calls.described_attributes(record),
        "isa": record.isa,
        "strategy": record.strategy,
        "proof": record.proof,
        **({"algebra": record.algebra} if record.algebra else {}),
        # As the check gave it; none where the kernel is to be checked where it is loaded.
        "error": None if record.error is None else float(f"{record.error:.2g}"),
        "unchecked": record.verdict == "unchecked",
        "error_unit": record.error_unit,
        "exact": record.exact,
    }
