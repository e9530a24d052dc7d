"""`composite.stats`: counters of what the runtime did in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from composite.binding import native
from composite.binding.records import NodeDef, python_values, record


class Stats(Mapping[str, int]):
    """A snapshot of the counters: a read-only mapping of names to counts.

    `expansion_runs` and `kernel_launches` count calls by the path they took, `expansions` the
    evaluations of a program, `optimized` the expansions that TensorFlow's optimizers rewrote,
    `compiles` the kernels that the background worker compiled, `evicted` the groups of kernels that
    were let go since no node had their attributes any more, `regions` the nodes that parts of
    graphs became, `xla_nodes` the nodes that XLA compiled, `copies` the inputs that were copied for
    a kernel: constants, each time one is packed, and what a TVM function is given that is not
    aligned. All other inputs are read in place.
    `parallel_launches` counts the loops of kernels that ran, or could have run, on several threads,
    and `team_launches` the loops whose threads synchronize at barriers; `short_teams` of these ran
    on fewer threads than TensorFlow's pool has: there was too little work to wake a thread for, or
    the threads were busy.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = dict(counts)

    def __getitem__(self, name: str) -> int:
        return self._counts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __sub__(self, earlier: Mapping[str, int]) -> Stats:
        """What was counted since an earlier reading."""
        return Stats({name: count - earlier.get(name, 0) for name, count in self.items()})

    def __repr__(self) -> str:
        width = max((len(name) for name in self._counts), default=0)
        return "\n".join(f"{name:<{width}}  {count}" for name, count in self._counts.items())


def stats(*, reset: bool = False) -> Stats:
    """Returns the counters of this process. With reset=True they restart from 0 afterwards."""
    reply = NodeDef.FromString(native.call("composite_stats", record(reset=reset)))
    return Stats(python_values(reply))
