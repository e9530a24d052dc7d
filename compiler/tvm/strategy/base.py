"""What strategies have in common: what they see, and when work is worth a second thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from composite.compiler.tvm.choices import Choices, V
from composite.compiler.tvm.codegen.access import (
    Access,
    Index,
    Lane,
    Space,
    Storage,
    Strided,
    flat_index,
)
from composite.compiler.tvm.codegen.block import Block, index, maximum, quotient, remainder, spread
from composite.compiler.tvm.codegen.place import moved
from composite.compiler.tvm.ir.constants import Constants
from composite.compiler.tvm.ir.dims import Dim, Shape, product
from composite.compiler.tvm.ir.graph import (
    ITEM_SIZE,
    Expr,
    Pointwise,
    Tensor,
    compute_dtype,
    topological,
)
from composite.compiler.tvm.math.numeric import storage_dtype, to_storage
from composite.compiler.tvm.plan.plan import Plan
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.target import Target

PARALLEL_CYCLES = 30_000
"""Work below this many cycles (about 10 us) stays on the thread that calls: small kernels run
inline on the executor's thread. Above, the launch decides: waking another thread takes 20 to 45 us,
but in a stack of layers it is awake already."""


class Trips(Protocol):
    """The loop whose trips are being written."""

    @property
    def team(self) -> bool:
        """Whether a team runs it, whose threads share each stage's tasks."""

    @property
    def count(self) -> int | None:
        """How many trips there are; None if the call says it."""

    @property
    def meets(self) -> bool:
        """Whether the team meets after the stage that is being written."""

    def stays(self, tensor: Tensor) -> bool:
        """Return whether a tensor is the same in all trips."""

    def next_place(self, tensor: Tensor) -> Strided | None:
        """Return where the next trip reads what this one reads of an array that was made before."""

    def ahead(self) -> AbstractContextManager[Context]:
        """Write before the loop, in the context that is left then."""


@dataclass(frozen=True)
class Context:
    """One kernel under construction.

    ``trips`` is the loop within it that is being written, ``scope`` begins the names of a stage's
    choices.
    """

    block: Block
    space: Space
    plan: Plan
    target: Target
    constants: Constants = field(default_factory=Constants)
    trips: Trips | None = None
    choices: Choices = field(default_factory=Choices)
    scope: str = ""

    def choose(self, name: str, candidates: Sequence[V], default: V) -> V:
        """Return the candidate that this stage is to use: ``default``, unless it is tuned.

        ``name`` is the strategy's, as in ``gemm.tile``.
        """
        return self.choices.choose(self.scope + name, candidates, default)

    def keeps(self, tensor: Tensor) -> bool:
        """Return whether a factor of a product is packed once, for all calls or all trips."""
        if self.constants.source(tensor) is not None:
            return True
        known = all(isinstance(d, int) for d in tensor.shape)
        return self.trips is not None and known and self.trips.stays(tensor)

    def __post_init__(self) -> None:
        """Tell the block what it is written for."""
        self.block.fuses = self.target.has_fma

    def lanes(self, dtype: str) -> int:
        """Return how many elements of a compute dtype fill a vector register."""
        return max(1, self.target.lanes * 4 // ITEM_SIZE[compute_dtype(dtype)])

    def size(self, dim: Dim) -> Expr | int:
        """Return a size as an index expression or int."""
        return self.space.size(dim)

    def temporary(self, tensor: Tensor, copies: int = 1) -> Storage:
        """Return room for a tensor between two stages, or for several of its kind."""
        dtype = compute_dtype(tensor.dtype)
        size = maximum(1, self.size(product(tensor.shape)) * copies)
        return Storage(self.block.workspace(size, storage_dtype(dtype), "temp"), dtype)

    def access(self) -> Access:
        """Return a reader for the scope that is open now."""
        return Access(self.block, self.space)

    def store(self, tensor: Tensor, at: Sequence[Index], value: Expr) -> None:
        """Store a computed element (or vector) of a stored tensor."""
        self.store_flat(tensor, flat_index(at, self.space.strides(tensor.shape)), value)

    def store_flat(self, tensor: Tensor, place: Index, value: Expr) -> None:
        """Store at a flat place; a Lane stores a vector."""
        storage = self.space.storages[tensor]
        raw = to_storage(self.block, value, storage.dtype)
        place = moved(place, storage.offset)
        if isinstance(place, Lane):
            raw = spread(raw, place.lanes)
            self.block.store(storage.buffer, place.base, raw, place.step)
        else:
            self.block.store(storage.buffer, place, raw)


def finish(context: Context, stage: Stage, at: Sequence[Index], total: Expr) -> None:
    """Store what a stage makes of one element, or one vector, of its anchor."""
    place = list(at)
    if isinstance(place[-1], Lane):
        last = place[-1]
        place[-1] = Lane(context.block.bind(index(last.base), "n"), last.lanes, last.step)
    value = context.block.let(total)
    if context.trips is not None and isinstance(place[-1], Lane):
        _ask_for_next(context.block, context.trips, stage, place)
    access = context.access()
    if stage.anchor is not None:
        access.give(stage.anchor, lambda _: value)
    for tensor in stage.stores:
        context.store(tensor, place, access.compute(tensor, place))


def _ask_for_next(block: Block, trips: Trips, stage: Stage, place: Sequence[Index]) -> None:
    """Ask for what the next trip reads at this place of arrays: rows that no prefetcher foresees.

    Into the L2 cache, for a product may go through the L1 cache before.
    """
    for tensor in topological(tuple(stage.stores)):
        where = trips.next_place(tensor) if tensor.shape == stage.shape else None
        if where is not None:
            at = [i.base if isinstance(i, Lane) else i for i in place]
            flat = sum((i * s for i, s in zip(at, where.strides, strict=True)), where.offset)
            block.prefetch(where.storage.buffer, flat, level=2)


class Strategy(Protocol):
    """A way to write one kind of stage."""

    name: str

    def fits(self, stage: Stage, context: Context) -> bool:
        """Return whether this strategy can write the stage."""

    def emit(self, stage: Stage, context: Context) -> None:
        """Write the stage's loops."""


def unflatten(context: Context, flat: Expr | int, shape: Shape) -> list[Index]:
    """Return the indices of a row-major place."""
    if len(shape) == 1:
        return [flat]
    indices: list[Index] = []
    for i, (dim, stride) in enumerate(zip(shape, context.space.strides(shape), strict=True)):
        if dim == 1:
            indices.append(0)
            continue
        step = quotient(flat, stride)
        # The first index needs no modulus: the place lies within the shape.
        first = all(d == 1 for d in shape[:i])
        indices.append(
            context.block.bind(step if first else remainder(step, context.size(dim)), "i")
        )
    return indices


def tasks(
    context: Context, extent: Expr | int, cycles: Expr | int, body: Callable[[Expr], None]
) -> None:
    """Write a loop over independent tasks of ``cycles`` in all, on several threads if worth it.

    Where the size is the call's, both loops are written and the call chooses.
    """
    block = context.block
    if context.trips is not None:
        _tasks_of_trip(block, extent, body, context.trips)
        return
    if context.target.cores == 1 or (isinstance(extent, int) and extent <= 1):
        with block.loop(extent, "task") as task:
            body(task)
        return
    if isinstance(cycles, int):
        parallel = context.choose("tasks", ("inline", "parallel"), _worth(cycles)) == "parallel"
        with block.loop(extent, "task", parallel=parallel) as task:
            body(task)
        return
    least = context.choose("tasks.cycles", (10_000, 30_000, 100_000), PARALLEL_CYCLES)
    with block.when(index(cycles) < index(least)), block.loop(extent, "task") as task:
        body(task)
    with block.otherwise(), block.loop(extent, "task", parallel=True) as task:
        body(task)


def _worth(cycles: int) -> str:
    return "parallel" if cycles >= PARALLEL_CYCLES else "inline"


def _tasks_of_trip(
    block: Block, extent: Expr | int, body: Callable[[Expr], None], trips: Trips
) -> None:
    """Write the tasks of a stage of a trip: for the team that is at it, or for the one thread."""
    end = block.meeting() if trips.team and trips.meets else nullcontext()
    with end, block.loop(extent, "task", parallel=trips.team) as i:
        body(i)


@dataclass(frozen=True)
class Tasks:
    """Independent tasks that a strategy has yet to write.

    Tasks of the same ``key`` are cut alike: task i of each makes the same part of its result.
    ``condition`` says when these are the ones to run; None if the others' conditions did not hold.
    ``around`` writes what one thread does before and behind them.
    """

    key: tuple[object, ...]
    extent: Expr | int
    cycles: Expr | int
    body: Callable[[Expr], None]
    condition: Expr | None = None
    around: Callable[[], AbstractContextManager[None]] = nullcontext


def write_together(sets: Sequence[Sequence[Tasks]], context: Context) -> None:
    """Write stages whose tasks are cut alike as one loop: each task makes its part of them all."""
    block = context.block

    def write(number: int) -> None:
        alike = [one[number] for one in sets]

        def body(task: Expr) -> None:
            for one in alike:
                one.body(task)

        def loop() -> None:
            cycles = sum((one.cycles for one in alike[1:]), alike[0].cycles)
            with ExitStack() as stack:
                for one in alike:
                    stack.enter_context(one.around())
                tasks(context, alike[0].extent, cycles, body)

        if alike[0].condition is None:
            loop()
            return
        with block.when(alike[0].condition):
            loop()
        with block.otherwise():
            write(number + 1)

    write(0)


def is_read(tensor: Tensor, stage: Stage, context: Context) -> bool:
    """Return whether the tensor comes from a buffer, not from the loops of the stage."""
    return tensor not in stage.stores and context.space.storage(tensor) is not None


def chain_cost(stage: Stage, context: Context) -> int:
    """Return the vector instructions that an element-wise stage spends on one vector, roughly."""
    seen: set[Tensor] = set()
    stack = list(stage.stores)
    cost = 0
    while stack:
        tensor = stack.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        if tensor is stage.anchor or is_read(tensor, stage, context):
            cost += 1
            continue
        cost += tensor.node.cost if isinstance(tensor.node, Pointwise) else 1
        stack.extend(tensor.node.operands)
    return cost + len(stage.stores)


def elements(shape: Shape, context: Context) -> Expr | int:
    """Return the number of elements of a shape."""
    return context.size(product(shape))
