"""What `composite.replace` replaced, and what it nearly did."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from composite.binding.printed import Printed
from composite.editing.places import NearMiss

if TYPE_CHECKING:
    from rich.console import Console
    from typing_extensions import Self

_MOST_ROWS = 40


@dataclass(frozen=True)
class Replaced:
    """Nodes that were replaced by one call of the function.

    Attributes:
        function: the function of the graph that they were in, "" for the graph itself.
        nodes: their names; the first gave the first result.
        ops: their types.
    """

    function: str
    nodes: tuple[str, ...]
    ops: tuple[str, ...]


class Joined(Printed):
    """A report that takes that of another graph of the model in."""

    def joined(self, other: Self) -> Self:
        """This report and the other in one."""
        raise NotImplementedError


@dataclass(frozen=True)
class ReplacementReport(Joined):
    """What `composite.replace` did to a model.

    Attributes:
        name: the model's.
        match: what was looked for, in words.
        replacement: the name of the function that took its place.
        replaced: what was found and replaced, a function after the other, results first.
        near_misses: what was not, for one difference.
    """

    name: str
    match: str
    replacement: str
    replaced: tuple[Replaced, ...]
    near_misses: tuple[NearMiss, ...]

    @property
    def verdict(self) -> str:
        """In one sentence, what was replaced."""
        count = len(self.replaced)
        places = "place" if count == 1 else "places"
        if not count:
            return f"no {self.match} found"
        return f"{self.match} replaced by {self.replacement} in {count} {places}"

    def joined(self, other: ReplacementReport) -> ReplacementReport:
        """This report and that of another graph of the model in one."""
        both = (self.replaced + other.replaced, self.near_misses + other.near_misses)
        return ReplacementReport(self.name, self.match, self.replacement, *both)

    def print_to(self, console: Console) -> None:
        """Prints the report."""
        from rich.markup import escape
        from rich.table import Table

        table = Table("function", "node", "ops", title=escape(f"{self.name}: {self.verdict}"))
        for one in self.replaced[:_MOST_ROWS]:
            ops = ", ".join(f"{n} {op}" if n > 1 else op for op, n in Counter(one.ops).items())
            table.add_row(escape(one.function or "-"), escape(one.nodes[0]), ops)
        console.print(table)
        for near in self.near_misses[:_MOST_ROWS]:
            place = f"{near.node} of {near.function}" if near.function else near.node
            console.print(f"not {place}: {near.reason}", highlight=False, markup=False)
        hidden = [len(rows) - _MOST_ROWS for rows in (self.replaced, self.near_misses)]
        for count, what in zip(hidden, ("places", "near misses"), strict=True):
            if count > 0:
                console.print(f"and {count} more {what}", highlight=False)
