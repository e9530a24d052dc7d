"""What `composite.recognize` found, and what it nearly did."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from composite.editing.report import Joined
from composite.recognition.finding import Recognized

if TYPE_CHECKING:
    from rich.console import Console

_MOST_ROWS = 40


class NearlyRecognized(NamedTuple):
    """A node that is nearly an op.

    Attributes:
        op: the op's name.
        function: the function that the node is in, "" for the graph.
        node: its name.
        reason: the first difference, or why it must not be replaced.
    """

    op: str
    function: str
    node: str
    reason: str


class Outputs(NamedTuple):
    """What a model computes with the ops, beside what it computed.

    Attributes:
        distance: the largest difference, as a part of the largest value of the output.
        bound: how large it may be for rounding.
        skipped: why nothing was compared.
    """

    distance: float = 0.0
    bound: float = 0.0
    skipped: str = "it is not called here"


@dataclass(frozen=True)
class RecognitionReport(Joined):
    """What `composite.recognize` did to a model.

    Attributes:
        name: the model's.
        ops: what was looked for.
        recognized: what was found and replaced, an op after the other, results first.
        near_misses: what was not, for one difference.
        outputs: the comparison of the whole model.
    """

    name: str
    ops: tuple[str, ...]
    recognized: tuple[Recognized, ...]
    near_misses: tuple[NearlyRecognized, ...]
    outputs: Outputs

    @property
    def verdict(self) -> str:
        """In one sentence, what was recognized."""
        if not self.recognized:
            return f"none of {len(self.ops)} ops found"
        counts = Counter(one.op for one in self.recognized)
        return "recognized " + ", ".join(f"{n} {op}" for op, n in counts.items())

    def joined(self, other: RecognitionReport) -> RecognitionReport:
        """This report and that of another graph of the model in one."""
        return replace(
            self,
            recognized=self.recognized + other.recognized,
            near_misses=self.near_misses + other.near_misses,
        )

    def print_to(self, console: Console) -> None:
        """Prints the report."""
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=escape(f"{self.name}: {self.verdict}"))
        for column in ("op", "function", "node", "in place of", "values apart"):
            table.add_column(column, overflow="fold")
        for one in self.recognized[:_MOST_ROWS]:
            ops = ", ".join(f"{n} {op}" if n > 1 else op for op, n in Counter(one.ops).items())
            row = (_call(one), one.function or "-", one.node, ops, f"{one.deviation:.1e}")
            table.add_row(*map(escape, row))
        console.print(table)
        for near in self.near_misses[:_MOST_ROWS]:
            place = f"{near.node} of {near.function}" if near.function else near.node
            line = f"not {near.op} at {place}: {near.reason}"
            console.print(line, highlight=False, markup=False)
        for rows, what in ((self.recognized, "places"), (self.near_misses, "near misses")):
            if len(rows) > _MOST_ROWS:
                console.print(f"and {len(rows) - _MOST_ROWS} more {what}", highlight=False)
        console.print(_of_outputs(self.outputs), highlight=False, markup=False)


def _call(one: Recognized) -> str:
    given = {**{name: f"{value:g}" for name, value in one.constants.items()}}
    given |= {name: repr(value) for name, value in one.attrs.items()}
    return f"{one.op}({', '.join(f'{name}={value}' for name, value in given.items())})"


def _of_outputs(outputs: Outputs) -> str:
    if outputs.skipped:
        return f"The whole model was not compared: {outputs.skipped}."
    verdict = "equal" if outputs.distance <= outputs.bound else "NOT EQUAL"
    return f"The outputs are {verdict}: {outputs.distance:.1e} apart, {outputs.bound:.0e} allowed."
