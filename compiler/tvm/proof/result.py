"""What a proof found: that of every access and every task something holds, or where it may not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unproven:
    """One access that is not proven to be right for all sizes; it may be right all the same.

    Attributes:
        function: The TIR function, ``kernel`` or what packs a constant for it.
        buffer: ``in0``, ``out1``, or the name of a workspace.
        index: The index, or what else was looked at, in the kernel's own variables.
        reason: What is not proven of it.
    """

    function: str
    buffer: str
    index: str
    reason: str

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.function}: {self.buffer}[{self.index}] {self.reason}"


@dataclass(frozen=True)
class Proof:
    """What was proven of a kernel.

    Attributes:
        accesses: How many accesses there are to look at.
        overlaps: How many of the stores are vectors moved back so as not to pass the end: what
            they store twice, they and their neighbour may store in two tasks.
        unproven: What is not proven, empty if all is.
        loads: The arguments that the kernel loads elements of, by their names; None if that is not
            known.
    """

    accesses: int
    overlaps: int
    unproven: tuple[Unproven, ...]
    loads: tuple[str, ...] | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every access is proven."""
        return not self.unproven

    def __str__(self) -> str:
        """Return ``proven``, or what was not, in one line."""
        if not self.unproven:
            return "proven"
        more = f", and {len(self.unproven) - 1} more" if len(self.unproven) > 1 else ""
        return f"not proven: {self.unproven[0]}{more}"
