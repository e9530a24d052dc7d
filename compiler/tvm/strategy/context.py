"""What a strategy is, and what it sees of the kernel that is written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

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
from composite.compiler.tvm.codegen.indices import moved
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir.constants import Constants
from composite.compiler.tvm.ir.dims import Dim, product, shape_text, static_shape
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE, compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.machine import Machine
from composite.compiler.tvm.math.numeric import storage_dtype, to_storage
from composite.compiler.tvm.plan.in_place import Forwards
from composite.compiler.tvm.plan.plan import Plan
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.target import Target
from composite.compiler.tvm.tir.block import Block, maximum, spread


class Writer(Protocol):
    """The loops of one stage, as the strategy that matched it will write them."""

    def write(self) -> None:
        """Write the loops into the context's block."""


@runtime_checkable
class InPlaceWriter(Writer, Protocol):
    """A writer whose loops may write over inputs.

    Attributes:
        forwards: Of what the plan allows, where each element of the input is read, by the task that
            needs it, before its place is written to. Known once the loops are written.
    """

    forwards: Forwards


class Strategy(Protocol):
    """A way to write one kind of stage."""

    @property
    def name(self) -> str:
        """The name that records and `explain` show."""

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Return what writes the stage, or None if this strategy cannot.

        Matching writes nothing. All that the writer relies on is checked here.
        """


class Match(NamedTuple):
    """A stage's strategy, and what it writes."""

    strategy: Strategy
    writer: Writer


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
        """Return whether a tensor has the same elements in all trips."""

    def next_place(self, tensor: Tensor) -> Strided | None:
        """Return where the next trip reads an array from before the loop; None if it does not."""

    def ahead(self) -> AbstractContextManager[Context]:
        """Write in front of the loop, in the context around it, while this is entered."""


@dataclass(frozen=True)
class ConstantPacking:
    """A factor of static ``shape``, made of the constant input ``source`` alone."""

    shape: tuple[int, ...]
    source: int


@dataclass(frozen=True)
class LoopPacking:
    """A factor of static ``shape`` that is the same in all ``trips``."""

    shape: tuple[int, ...]
    trips: Trips


Packing = ConstantPacking | LoopPacking


@dataclass(frozen=True)
class Context:
    """One kernel under construction.

    ``strategies`` are asked in their order, ``trips`` is the loop within the kernel that is being
    written, ``scope`` begins the names of a stage's choices, ``forwards`` are the inputs that the
    outputs may lie in.
    """

    block: Block
    space: Space
    plan: Plan
    target: Target
    strategies: tuple[Strategy, ...]
    constants: Constants = field(default_factory=Constants)
    trips: Trips | None = None
    choices: Choices = field(default_factory=Choices)
    scope: str = ""
    forwards: Forwards = ()

    def choose(self, name: str, candidates: Sequence[V], default: V) -> V:
        """Return the candidate that this stage is to use: ``default``, unless it is tuned.

        ``name`` is the strategy's, as in ``gemm.tile``.
        """
        return self.choices.choose(self.scope + name, candidates, default)

    def match(self, stage: Stage) -> Match:
        """Return the first strategy that matches a stage, and what writes it."""
        for strategy in self.strategies:
            writer = strategy.match(stage, self)
            if writer is not None:
                return Match(strategy, writer)
        around = "element-wise work" if stage.anchor is None else type(stage.anchor.node).__name__
        raise NotCovered(f"no strategy writes {around} of shape [{shape_text(stage.shape)}]")

    def packing(self, tensor: Tensor) -> Packing | None:
        """Return who packs a factor of a product once, for all calls or for all trips of a loop.

        None if each task packs for itself.
        """
        shape = static_shape(tensor.shape)
        if shape is None:
            return None
        source = self.constants.source(tensor)
        if source is not None:
            return ConstantPacking(shape, source)
        if self.trips is not None and self.trips.stays(tensor):
            return LoopPacking(shape, self.trips)
        return None

    def __post_init__(self) -> None:
        """Tell the block what it is written for."""
        self.block.fuses = self.target.has_fma
        self.block.keeps_roundings = self.target.has_fma and self.invariant

    @property
    def machine(self) -> Machine:
        """The CPU that the kernel is written for."""
        machine = self.target.machine
        assert isinstance(machine, Machine), "strategies for CPUs are asked for CPUs alone"
        return machine

    @property
    def invariant(self) -> bool:
        """Whether the order of a sum depends on its length and the machine alone."""
        return self.target.invariant

    def lanes(self, dtype: str) -> int:
        """Return how many elements of a compute dtype fill a vector register."""
        return max(1, self.target.lanes * 4 // ITEM_SIZE[compute_dtype(dtype)])

    def size(self, dim: Dim) -> Expr | int:
        """Return a size as an index expression or int."""
        return self.space.size(dim)

    def temporary(self, tensor: Tensor, copies: int = 1, *, rounded: bool = False) -> Storage:
        """Return a workspace for a tensor that later stages read, or for ``copies`` of its size.

        It holds what was computed, or, if it is to be ``rounded``, elements of the tensor's dtype.
        """
        dtype = tensor.dtype if rounded else compute_dtype(tensor.dtype)
        count = product(tensor.shape) * copies
        size = maximum(1, self.size(count))
        return Storage(self.block.temporary(count, size, storage_dtype(dtype)), dtype)

    def access(self) -> Access:
        """Return what reads elements of tensors in the scope that is open now."""
        return Access(self.block, self.space)

    def store(self, tensor: Tensor, at: Sequence[Index], value: Expr) -> None:
        """Store a computed element (or vector) of a stored tensor."""
        self.store_flat(tensor, flat_index(at, self.space.strides(tensor.shape)), value)

    def store_flat(self, tensor: Tensor, place: Index, value: Expr) -> None:
        """Store an element at a row-major index, or a vector at a Lane."""
        storage = self.space.storages[tensor]
        raw = to_storage(self.block, value, storage.dtype)
        place = moved(place, storage.offset)
        if isinstance(place, Lane):
            raw = spread(raw, place.lanes)
            self.block.store(storage.buffer, place.base, raw, place.step)
        else:
            self.block.store(storage.buffer, place, raw)
