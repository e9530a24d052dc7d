"""What `composite.hybrid.compile` found: what runs where, and how close the results are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from composite.binding.printed import Printed
from composite.trials.results import Deviation

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Part:
    """What one call of a module runs.

    Attributes:
        stage: parts of a stage need those of the stages before.
        where: "kernel" or "TensorFlow".
        ops: how many nodes of each op are in it.
        region: the name of a kernel's region.
        strategy: how its kernel was made.
    """

    stage: int
    where: str
    ops: Counter[str]
    region: str = ""
    strategy: str = ""


@dataclass(frozen=True)
class HybridReport(Printed):
    """How a model was divided.

    Attributes:
        name: the model's.
        parts: the calls of the module, in their order.
        refused: why regions have no kernel, by their names.
        left_out: ops with effects that no output waits for, which the module does not have.
        kept: the tables that an opened module has.
        deviation: how far results of the module are from the model's; None if that is not known.
        uncompared: why it is not known.
    """

    name: str
    parts: tuple[Part, ...]
    refused: Mapping[str, str]
    left_out: tuple[str, ...]
    kept: tuple[str, ...] = ()
    deviation: Deviation | None = None
    uncompared: str = ""

    @property
    def kernels(self) -> int:
        """How many calls of kernels there are."""
        return sum(part.where == "kernel" for part in self.parts)

    @property
    def calls(self) -> int:
        """How many calls of TensorFlow there are."""
        return len(self.parts) - self.kernels

    @property
    def verdict(self) -> str:
        """In one line, what a call runs."""
        return f"{self.kernels} kernels of TVM, {self.calls} calls of TensorFlow"

    def print_to(self, console: Console) -> None:
        """Prints the report."""
        from rich.markup import escape
        from rich.table import Table

        title = escape(f"{self.name}: {self.verdict}")
        table = Table("stage", "runs", "nodes", "ops", "how", title=title)
        for part in self.parts:
            ops = ", ".join(f"{n} {op}" if n > 1 else op for op, n in part.ops.most_common())
            how = f"{part.region[-8:]}: {part.strategy}" if part.region else ""
            table.add_row(str(part.stage), part.where, str(part.ops.total()), ops, escape(how))
        console.print(table)
        for name, why in self.refused.items():
            told = f"region {name[-8:]} has no kernel: {why}"
            console.print(told, highlight=False, markup=False)
        for kept in self.kept:
            console.print(f"it keeps {kept}", highlight=False, markup=False)
        if self.left_out:
            effects = ", ".join(self.left_out)
            console.print(f"no output waits for {effects}: left out", highlight=False)
        compared = (
            f"results not compared: {self.uncompared}"
            if self.deviation is None
            else f"results within {self.deviation.distance:.2g} of the largest |y|"
        )
        console.print(compared, highlight=False, markup=False)
