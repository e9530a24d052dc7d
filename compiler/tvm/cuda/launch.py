"""What the launches of a kernel need, as expressions of the sizes of a call.

A kernel for a GPU has no code on the host: whoever runs it evaluates this plan, takes the
workspaces from the framework's allocator, and hands each launch to the driver. Sizes are postfix
texts, as in kernel records (:func:`.dims.postfix`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.target import MOST_BLOCKS

ALIGNMENT = 16
"""What the address of an aligned argument is a multiple of; of each workspace too."""

_COLUMNS = (
    "functions", "work", "share", "threads", "shared", "arguments", "dynamic", "resident",
)  # of Launch, in order  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """One argument of a launch.

    Attributes:
        kind: "in", "out", "work" (addresses of an input, an output, a workspace), or "size".
        index: The number of the input, output or workspace, or of the symbol of a size.
    """

    kind: str
    index: int

    def __str__(self) -> str:
        """Return the argument as a word of a launch's text."""
        return f"{self.kind}{self.index}"

    @classmethod
    def parse(cls, text: str) -> Argument:
        """Return the argument that a word stands for."""
        kind = text.rstrip("0123456789")
        if kind not in ("in", "out", "work", "size") or kind == text:
            raise ValueError(f"{text!r} is no argument of a launch")
        return cls(kind, int(text.removeprefix(kind)))


@dataclass(frozen=True)
class Launch:
    """One launch of a plan.

    Attributes:
        function: The name of the function.
        work: Units of work, which the blocks share out; none are launched for 0.
        share: Units that a block does at once. Any number of blocks is right.
        threads: Threads of a block.
        shared: Bytes of shared memory of a block, which the function declares itself.
        arguments: What the function is given, in order.
        dynamic: Bytes of shared memory that the launch gives a block beside these.
        resident: Whether its blocks wait for each other. Then there are at most as many as
            multiprocessors, and the driver runs all of them at a time or refuses the launch.
    """

    function: str
    work: str
    share: int
    threads: int
    shared: int
    arguments: tuple[Argument, ...]
    dynamic: int = 0
    resident: bool = False

    def blocks(self, sizes: Mapping[str, int], multiprocessors: int) -> int:
        """Return how many blocks to launch: as many as there is work for.

        Fewer would be right, too, but a GPU that is given blocks one after the other keeps what it
        reads and writes at a time close together in memory: 7 to 10 % of an H100's bandwidth.
        """
        work = dims.evaluate(self.work, sizes, int)
        most = multiprocessors if self.resident else MOST_BLOCKS
        return min(dims.ceildiv(work, self.share), most)


@dataclass(frozen=True)
class LaunchPlan:
    """The launches of a kernel, in order.

    Attributes:
        launches: Each begins when the one before has ended, as on one stream.
        workspaces: Bytes of each workspace.
        aligned: Inputs and outputs whose addresses must be multiples of ``ALIGNMENT``. A call with
            another address does not run the kernel.
    """

    launches: tuple[Launch, ...]
    workspaces: tuple[str, ...]
    aligned: tuple[Argument, ...]

    def fields(self) -> dict[str, tuple[Any, ...]]:
        """Return the plan by the names of a kernel record's fields."""
        launches = self.launches
        return {
            "launch_functions": tuple(one.function for one in launches),
            "launch_work": tuple(one.work for one in launches),
            "launch_share": tuple(one.share for one in launches),
            "launch_threads": tuple(one.threads for one in launches),
            "launch_shared": tuple(one.shared for one in launches),
            "launch_arguments": tuple(" ".join(map(str, one.arguments)) for one in launches),
            "launch_dynamic": tuple(one.dynamic for one in launches),
            "launch_resident": tuple(one.resident for one in launches),
            "workspaces": tuple(self.workspaces),
            "aligned": tuple(map(str, self.aligned)),
        }

    @classmethod
    def of(cls, fields: Mapping[str, Sequence[Any]]) -> LaunchPlan:
        """Return the plan that such fields have; ValueError if it is none."""
        columns: dict[str, Any] = {name: fields[f"launch_{name}"] for name in _COLUMNS}
        columns["arguments"] = [
            tuple(map(Argument.parse, words.split())) for words in columns["arguments"]
        ]
        return cls(
            tuple(Launch(*one) for one in zip(*columns.values(), strict=True)),
            tuple(fields["workspaces"]),
            tuple(map(Argument.parse, fields["aligned"])),
        )
