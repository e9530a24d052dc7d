"""The schedule of a kernel as a value: which strategy writes each stage, and with which choices.

A schedule is printed and parsed as text, a stage a line::

    0 gemm: gemm.tile="columns 12x2" gemm.cut="deep"
    1 rows: rows.block=2048 rows.task=4096

Its choices are what :func:`.build.write` takes to write the same loops again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from composite.compiler.tvm.choices import Value

_LINE = re.compile(r"(?P<number>\d+) (?P<strategy>[^:]+):(?P<choices>.*)")
_CHOICE = re.compile(r'\s+(?P<name>[^\s="]+)=(?P<value>"(?:[^"\\]|\\.)*"|-?\d+)')


@dataclass(frozen=True)
class StageSchedule:
    """How one stage is written.

    Attributes:
        number: Of the stage, in the order in which stages are written.
        strategy: The name of what writes it.
        choices: What was chosen, by names within the stage, in the order of the questions.
    """

    number: int
    strategy: str
    choices: tuple[tuple[str, Value], ...]

    def __str__(self) -> str:
        """Return a line of text."""
        chosen = (f" {name}={json.dumps(value)}" for name, value in self.choices)
        return f"{self.number} {self.strategy}:{''.join(chosen)}"


@dataclass(frozen=True)
class Schedule:
    """How the stages of a kernel are written; those that compute nothing are left out."""

    stages: tuple[StageSchedule, ...]

    @classmethod
    def of(cls, strategies: Mapping[int, str], choices: Mapping[str, Value]) -> Schedule:
        """Return a schedule.

        Args:
            strategies: By the numbers of the stages.
            choices: By full names, as ``0.gemm.tile``.
        """
        return cls(
            tuple(
                StageSchedule(
                    number,
                    strategy,
                    tuple(
                        (name.removeprefix(f"{number}."), value)
                        for name, value in choices.items()
                        if name.startswith(f"{number}.")
                    ),
                )
                for number, strategy in strategies.items()
            )
        )

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Return the schedule that was printed as this text.

        Raises:
            ValueError: If a line is none of a schedule.
        """
        return cls(tuple(_stage(line) for line in text.splitlines() if line.strip()))

    def __str__(self) -> str:
        """Return the text, a stage a line."""
        return "\n".join(map(str, self.stages))

    @property
    def choices(self) -> dict[str, Value]:
        """The choices of all stages, by full names."""
        return {
            f"{stage.number}.{name}": value
            for stage in self.stages
            for name, value in stage.choices
        }


def _stage(line: str) -> StageSchedule:
    found = _LINE.fullmatch(line.strip())
    chosen = found and list(_CHOICE.finditer(found["choices"]))
    if not found or "".join(one[0] for one in chosen or ()) != found["choices"].rstrip():
        raise ValueError(f"{line!r} is no line of a schedule, such as '0 gemm: gemm.panels=4'")
    choices = tuple((one["name"], json.loads(one["value"])) for one in chosen or ())
    return StageSchedule(int(found["number"]), found["strategy"], choices)
