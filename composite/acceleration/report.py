"""What `composite.accelerate` found: regions, how close the results are, and the times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from composite.acceleration.graph import Partition, Region
from composite.binding.printed import Printed
from composite.compiler.account import Account
from composite.counters import RegionCounts
from composite.recognition.report import RecognitionReport
from composite.trials.results import UNMOVED, Deviation

if TYPE_CHECKING:
    from rich.console import Console

LEAST_GAIN = 1.03  # less is the clock's noise


@dataclass(frozen=True)
class Compiled:
    """What became of a function that XLA compiles as a whole.

    Attributes:
        refusal: why XLA does not compile it; "" where it does.
        deviation: how far its results moved.
        microseconds: of a call; infinite where there is none.
        kernels: how many calls of kernels its code has.
    """

    refusal: str = ""
    deviation: Deviation = UNMOVED
    microseconds: float = math.inf
    kernels: int = 0

    @property
    def is_usable(self) -> bool:
        """Whether it may be called: it is compiled, and its results are close."""
        return not self.refusal and self.deviation.is_small


@dataclass(frozen=True)
class AccelerationReport(Printed):
    """What regions did to a function.

    Attributes:
        name: the function's.
        partition: its regions, and the ops outside of them.
        deviation: how far its results moved.
        original_us: microseconds of a call without regions.
        accelerated_us: microseconds of a call with them.
        is_complete: whether all kernels that were asked for were ready when it was timed.
        min_gain: the speedup from which on it is a gain.
        calls: what each region ran in the call that was compared, by the region's name.
        xla: what XLA makes of it; None if that was not asked for.
        xla_kernels: what XLA makes of it with kernels for regions; None if that was not asked for,
            or no region in what XLA compiles has a kernel that is faster.
        recognition: the ops that were found in it; None if none were looked for.
        inputs: the dtypes and shapes of the call that was compared and timed, as text.
        steps: how many seconds each step took, of which "wait" is that of the kernels.
        batches: the same for other sizes of the inputs' first dim, by the size.
    """

    name: str
    partition: Partition
    deviation: Deviation
    original_us: float
    accelerated_us: float
    is_complete: bool
    min_gain: float = LEAST_GAIN
    calls: Mapping[str, RegionCounts] = field(default_factory=dict)
    xla: Compiled | None = None
    xla_kernels: Compiled | None = None
    recognition: RecognitionReport | None = None
    inputs: str = ""
    batches: Mapping[int, AccelerationReport] = field(default_factory=dict)
    steps: Account = field(default_factory=Account, compare=False)

    @property
    def has_kernels(self) -> bool:
        """Whether any part of it can have a kernel: a region, or an op that was recognized."""
        found = self.recognition is not None and bool(self.recognition.recognized)
        return bool(self.partition.regions) or found

    @property
    def are_xla_kernels_best(self) -> bool:
        """Whether of what XLA compiled the code with kernels is to be called."""
        if self.xla_kernels is None or not self.xla_kernels.is_usable:
            return False
        if self.xla is None or not self.xla.is_usable:
            return True
        return self.xla.microseconds / self.xla_kernels.microseconds >= self.min_gain

    @property
    def _best_by_xla(self) -> Compiled | None:
        return self.xla_kernels if self.are_xla_kernels_best else self.xla

    @property
    def is_xla_best(self) -> bool:
        """Whether calls run what XLA compiled: its results are close, its time is the least."""
        by_xla = self._best_by_xla
        if by_xla is None or not by_xla.is_usable:
            return False
        best = self.accelerated_us if self.is_gain else self.original_us
        return best / by_xla.microseconds >= self.min_gain

    @property
    def speedup(self) -> float:
        """The time without regions over the time with them."""
        return self.original_us / self.accelerated_us

    @property
    def is_gain(self) -> bool:
        """Whether regions are a gain: there are some, results are close, the time is less."""
        is_faster = self.speedup >= self.min_gain
        return self.has_kernels and self.deviation.is_small and is_faster

    @property
    def verdict(self) -> str:
        """In one sentence, what calls run, and why."""
        by_xla = self._best_by_xla
        if by_xla is not None and self.is_xla_best:
            speedup = self.original_us / by_xla.microseconds
            kernels = f" with kernels in {by_xla.kernels} places" if by_xla.kernels else ""
            return f"runs what XLA compiled{kernels}, {speedup:.2f} times as fast"
        if not self.has_kernels:
            return "runs the original: no part of it can be a region"
        if not self.deviation.is_small:
            far = f"{self.deviation.distance:.2g} of its largest |y|"
            return (
                f"runs the original: with regions output {self.deviation.output} is {far} away, "
                f"{self.deviation.bound:.2g} is allowed"
            )
        if not self.is_gain:
            return f"runs the original: regions make {self.speedup:.2f} of its speed"
        return f"runs with regions, {self.speedup:.2f} times as fast"

    def _runs(self, region: Region) -> str:
        """What a region's nodes ran in the call that was compared, in short."""
        counts = self.calls.get(region.name)
        if counts is None:
            return ""
        if not counts.expansion:
            return f"kernel, saves {counts.saved_us:.3g} us"
        some = f"kernel in {counts.kernel} of {counts.calls}, " if counts.kernel else ""
        return f"{some}TensorFlow's ops: {counts.why}"

    @staticmethod
    def _by_xla(made: Compiled) -> str:
        if made.refusal:
            return f"not compiled: {made.refusal}"
        moved = made.deviation
        far = "" if moved.is_small else f", more than the {moved.bound:.2g} that is allowed"
        return f"{made.microseconds:.0f} us, results within {moved.distance:.2g}{far}"

    def _measured(self) -> list[str]:
        """The times and the distance, of each call that was measured."""
        lines = [
            f"original {self.original_us:.0f} us, with regions {self.accelerated_us:.0f} us; "
            f"results within {self.deviation.distance:.2g} of the largest |y|"
        ]
        if self.xla is not None:
            lines.append(f"by XLA: {self._by_xla(self.xla)}")
        if self.xla_kernels is not None:
            lines.append(f"by XLA with kernels: {self._by_xla(self.xla_kernels)}")
        for batch, one in self.batches.items():
            lines.append(f"batch of {batch}: {one.verdict}")
            lines += [f"  {line}" for line in one._measured()]
        return lines

    def print_to(self, console: Console) -> None:
        """Prints the report."""
        from rich.markup import escape
        from rich.table import Table

        title = escape(f"{self.name}: {self.verdict}")
        table = Table("region", "times", "nodes", "ops", "runs", title=title)
        for region in self.partition.regions:
            ops = ", ".join(f"{n} {op}" if n > 1 else op for op, n in region.ops.most_common())
            table.add_row(
                region.name[-8:],
                str(region.times),
                str(region.ops.total()),
                ops,
                escape(self._runs(region)),
            )
        outside = ", ".join(f"{n} {op}" for op, n in self.partition.outside.most_common())
        console.print(table)
        console.print(f"outside of regions: {outside or 'nothing'}", highlight=False)
        for line in self._measured():
            console.print(line, highlight=False, markup=False)
        if self.inputs:
            told = f"measured with {self.inputs}; batches= measures other sizes of the first dim"
            console.print(told, highlight=False, markup=False)
        if self.steps:
            console.print(f"done in {self.steps}", highlight=False, markup=False)
        if self.recognition is not None:
            self.recognition.print_to(console)
        if not self.is_complete:
            console.print("some kernels were not ready when this was timed", highlight=False)


@dataclass(frozen=True)
class ModelReport(Printed):
    """What regions did to a SavedModel.

    Attributes:
        name: the folder that was read.
        signatures: the report of each signature that was run, by its name.
        left_out: of the others, why they keep their functions.
        kernels: how many kernels lie in the folder that was written.
    """

    name: str
    signatures: Mapping[str, AccelerationReport]
    left_out: Mapping[str, str]
    kernels: int = 0

    def print_to(self, console: Console) -> None:
        """Prints the reports of the signatures."""
        for report in self.signatures.values():
            report.print_to(console)
        for name, why in self.left_out.items():
            console.print(f"{name}: runs the original: {why}", highlight=False, markup=False)
        if not self.signatures and not self.left_out:
            console.print(f"{self.name} has no signatures", highlight=False, markup=False)
        if self.kernels:
            inside = f"{self.kernels} kernels inside"
            console.print(f"{inside}: composite.load_model(..., native_code=True)", highlight=False)
