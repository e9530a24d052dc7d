"""`composite.stats`: counters of what the runtime did in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding import native
from composite.binding.records import NodeDef, python_values, record
from composite.compiler import account
from composite.compiler.account import Account


class RegionCounts(NamedTuple):
    """What became of the calls of one region (docs/regions.md).

    Attributes:
        kernel: calls that its kernels answered.
        expansion: calls that TensorFlow's own ops answered.
        saved_us: microseconds that the kernels saved, by what was measured when they were made.
        why: why the last calls of `expansion` had no kernel; "" if there were none.
    """

    kernel: int
    expansion: int
    saved_us: float
    why: str

    @property
    def calls(self) -> int:
        """All of them."""
        return self.kernel + self.expansion


class Stats(Mapping[str, int]):
    """A snapshot of the counters: a read-only mapping of names to counts.

    `expansion_runs` and `kernel_launches` count calls by the path they took, `gpu_expansion_runs`
    and `gpu_kernel_launches` those of them that are on GPUs, `expansions` the evaluations of a
    program, `optimized` the expansions that TensorFlow's optimizers rewrote, `requests` the
    kernels that calls asked for, `answered` those of them that there is a kernel for, `compiles`
    the kernels that were compiled, for calls or a library, of which those that the disk cache had
    are none, `evicted` the groups of kernels that were let go since no node had their attributes
    any more, `evicted_classes` the shapes that made room for others, with their kernels,
    `regions` the nodes that parts of graphs became, `invalid_graphs` the graphs and functions
    that kept their own nodes, since with regions or expansions TensorFlow could not have run
    them, `xla_nodes` the nodes that XLA compiled, `xla_kernel_nodes` those of them that are calls
    of kernels, `xla_kernels` the kernels that they call, `xla_kernel_launches` the
    `kernel_launches` that are such calls, `in_place_updates` the variables that kernels of regions
    updated where they lie, and the tensors of which parts of stacks were, `copies` the inputs that
    were copied for a kernel: constants, each time one is packed, what a TVM function is given that
    is not aligned, or that it may keep while XLA's buffer ends with the call, and what a kernel of
    a GPU is given that lies in the host's memory. All other inputs are read in place.
    `parallel_launches` counts the loops of kernels that ran, or could have run, on several threads,
    and `team_launches` the loops whose threads synchronize at barriers; `short_teams` of these ran
    on fewer threads than TensorFlow's pool has: there was too little work to wake a thread for, the
    threads were busy, or others have just taken their processors.

    Attributes:
        by_region: the RegionCounts of each region that was called, by the name of its function.
        seconds: how long the steps took that made kernels and accelerated functions, by their
            names (docs/making-kernels.md). No step's seconds are another's too.
    """

    def __init__(
        self,
        counts: Mapping[str, int],
        by_region: Mapping[str, RegionCounts] = MappingProxyType({}),
        seconds: Account | None = None,
    ) -> None:
        self._counts = dict(counts)
        self.by_region = dict(by_region)
        self.seconds = seconds or Account()

    def __getitem__(self, name: str) -> int:
        return self._counts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __sub__(self, earlier: Mapping[str, int]) -> Stats:
        """What was counted since an earlier reading."""
        counts = {name: count - earlier.get(name, 0) for name, count in self.items()}
        before = earlier if isinstance(earlier, Stats) else Stats({})
        since = {n: _since(now, before.by_region.get(n)) for n, now in self.by_region.items()}
        by_region = {name: counts for name, counts in since.items() if counts.calls}
        return Stats(counts, by_region, self.seconds - before.seconds)

    def __repr__(self) -> str:
        width = max((len(name) for name in self._counts), default=0)
        lines = [f"{name:<{width}}  {count}" for name, count in self._counts.items()]
        return "\n".join([*lines, f"{'seconds':<{width}}  {self.seconds}"])


def stats(*, reset: bool = False) -> Stats:
    """Returns the counters of this process. With reset=True they restart from 0 afterwards."""
    asked = record(reset=reset)
    counts = NodeDef.FromString(native.call("composite_stats", asked))
    regions = GraphDef.FromString(native.call("composite_region_counts", asked))
    by_region = {node.name: RegionCounts(**python_values(node)) for node in regions.node}
    return Stats(python_values(counts), by_region, account.PROCESS.read(reset=reset))


def _since(now: RegionCounts, before: RegionCounts | None) -> RegionCounts:
    if before is None:
        return now
    expansion = now.expansion - before.expansion
    return RegionCounts(
        now.kernel - before.kernel,
        expansion,
        now.saved_us - before.saved_us,
        now.why if expansion else "",
    )
