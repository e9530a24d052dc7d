"""Which sweep over a row computes what, for a stage over rows.

A sweep is one loop over the elements of a row. It computes the reductions that depend on those of
earlier sweeps only, and stores elements. An expensive element that several sweeps need is computed
in the first of them and kept in a buffer; a cheap one is computed again from what the sweep reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from composite.compiler.tvm.codegen.access import Storage
from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dims import Shape
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Constant, Pointwise, Reshape, Tensor
from composite.compiler.tvm.ir.walk import reachable, topological
from composite.compiler.tvm.plan.row_stages import Rows
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.row_tensors import rebuild

_KEEP_COST = 5
"""Vector instructions above which an element is kept for the next sweep: a store and a load, and
room in the cache, cost about as much."""


@dataclass
class Sweep:
    """One loop over a row.

    Attributes:
        reductions: Computed by this sweep, with their nodes.
        stores: Elements of the row that are stored, in an order in which they can be computed.
        keeps: Elements that are kept for later sweeps.
        kept: Elements of earlier sweeps that are read.
        in_place: Of those, the ones that nothing reads later, each with a store that is computed
            from it and has its shape: it may lie where the store will.
        values: One value a row each, needed before the sweep.
        reads: What is read from buffers that lay there before the stage.
        cost: Vector instructions for one vector of elements, roughly.
    """

    reductions: dict[Tensor, Reduce] = field(default_factory=dict)
    stores: list[Tensor] = field(default_factory=list)
    keeps: list[Tensor] = field(default_factory=list)
    kept: list[Tensor] = field(default_factory=list)
    in_place: dict[Tensor, Tensor] = field(default_factory=dict)
    values: list[Tensor] = field(default_factory=list)
    reads: list[Tensor] = field(default_factory=list)
    cost: int = 0

    @property
    def roots(self) -> list[Tensor]:
        """What is computed, stores first."""
        return [*self.stores, *(node.operand for node in self.reductions.values())]


@dataclass(frozen=True)
class RowProgram:
    """A stage over rows.

    Attributes:
        rows: The dimensions that number the rows.
        inner: The dimensions within a row.
        sweeps: In order.
        values: For each sweep, the stored tensors of one value a row that are known after it.
        streams: What has an element for each of the rows' and lies in a buffer as they do, and
            whether it is a result.
    """

    rows: Shape
    inner: Shape
    sweeps: list[Sweep]
    values: list[list[Tensor]]
    streams: list[tuple[Storage, bool]]

    @property
    def most_expensive(self) -> Sweep:
        """The sweep that takes the most instructions."""
        return max(self.sweeps, key=lambda one: one.cost)

    @property
    def keeps(self) -> list[Tensor]:
        """All elements that are kept between sweeps."""
        return [t for one in self.sweeps for t in one.keeps]

    @property
    def in_place(self) -> dict[Tensor, Tensor]:
        """All that may be kept where a store will be, and that store."""
        return {t: store for one in self.sweeps for t, store in one.in_place.items()}


def row_program(stage: Stage, rows: Rows, context: Context) -> RowProgram:
    """Return the sweeps of a stage over rows."""
    shape, stores = rebuild(stage, rows, context)
    return _Sweeps(shape, stores, context).program()


class _Sweeps:
    """Sorts tensors into sweeps by how many reductions, one after the other, they wait for."""

    def __init__(self, rows: Rows, stores: list[Tensor], context: Context) -> None:
        self._rows = rows
        self._stores = stores
        self._context = context
        self._level: dict[Tensor, int] = {}
        self._cost: dict[Tensor, int] = {}
        self._reductions: dict[Tensor, Reduce] = {}

    def program(self) -> RowProgram:
        # The last operand first: this order is the order of the reductions within a sweep.
        for tensor in topological(self._stores, lambda t: reversed(self._operands(t))):
            self._measure(tensor)
        last = max(self._level.values())
        full = [t for t in self._stores if not self._is_value(t)]
        count = last + any(self._level[t] == last for t in full)
        sweeps = [Sweep() for _ in range(count)]
        values: list[list[Tensor]] = [[] for _ in sweeps]
        for tensor, node in self._reductions.items():
            sweeps[self._level[tensor] - 1].reductions[tensor] = node
        for tensor in self._stores:
            if self._is_value(tensor):
                values[max(0, self._level[tensor] - 1)].append(tensor)
            else:
                sweeps[self._level[tensor]].stores.append(tensor)
        self._choose_kept(sweeps)
        self._choose_places(sweeps)
        return RowProgram(self._rows.outer, self._rows.reduced, sweeps, values, self._streams())

    def _streams(self) -> list[tuple[Storage, bool]]:
        full = [t for t in self._level if t.shape == self._rows.full]
        read: list[Storage] = []
        for tensor in full:
            source = tensor.node.operand if isinstance(tensor.node, Reshape) else tensor
            storage = self._context.space.storage(source)
            if self._is_leaf(tensor) and storage is not None:
                read.append(storage)
        stored = [self._context.space.storages[t] for t in full if t in self._stores]
        return [(one, False) for one in read] + [(one, True) for one in stored]

    def _is_value(self, tensor: Tensor) -> bool:
        """Return whether the tensor has no element dimension: one value a row, or for all rows."""
        return all(d == 1 for d in tensor.shape[len(self._rows.outer) :])

    def _is_given(self, tensor: Tensor) -> bool:
        return self._context.space.storage(tensor) is not None and tensor not in self._stores

    def _is_leaf(self, tensor: Tensor) -> bool:
        return self._is_given(tensor) or not isinstance(tensor.node, Pointwise | Reduce)

    def _is_expensive(self, tensor: Tensor) -> bool:
        return self._cost[tensor] >= _KEEP_COST and tensor.dtype != "bool"

    def _operands(self, tensor: Tensor) -> tuple[Tensor, ...]:
        return () if self._is_leaf(tensor) else tensor.node.operands

    def _measure(self, tensor: Tensor) -> None:
        """Note level and cost of a tensor, those of its operands being known."""
        operands = self._operands(tensor)
        level = max((self._level[t] for t in operands), default=0)
        cost = 1
        if isinstance(tensor.node, Reduce) and not self._is_leaf(tensor):
            level += 1
            self._reductions[tensor] = tensor.node
        elif isinstance(tensor.node, Pointwise):
            free = (t for t in set(operands) if not self._is_value(t))
            cost = tensor.node.cost + sum(self._cost[t] for t in free)
        self._level[tensor], self._cost[tensor] = level, cost

    def _choose_kept(self, sweeps: list[Sweep]) -> None:
        first: dict[Tensor, Sweep] = {}  # where an element is computed first
        stored: dict[Tensor, Sweep] = {t: one for one in sweeps for t in one.stores}

        def below(one: Sweep, tensor: Tensor) -> tuple[Tensor, ...]:
            if self._is_value(tensor):
                if not isinstance(tensor.node, Constant):
                    one.values.append(tensor)
                return ()
            if self._is_leaf(tensor) or stored.get(tensor, one) is not one:
                one.cost += 1
                if self._is_leaf(tensor):
                    one.reads.append(tensor)
                return ()
            before = first.setdefault(tensor, one)
            if before is not one and self._is_expensive(tensor):
                one.kept.append(tensor)
                if tensor not in before.keeps:
                    before.keeps.append(tensor)
                return ()
            one.cost += tensor.node.cost if isinstance(tensor.node, Pointwise) else 1
            return tensor.node.operands

        for one in sweeps:
            reachable(one.roots, partial(below, one))
            one.cost += len(one.reductions) + len(one.stores)

    def _choose_places(self, sweeps: list[Sweep]) -> None:
        last = {t: one for one in sweeps for t in one.kept}
        taken: set[Tensor] = set()
        for tensor, one in last.items():
            readers = self._element_wise_readers(one, tensor)
            fitting = (t for t in one.stores if t in readers and self._is_like(t, tensor))
            store = next((t for t in fitting if t not in taken), None)
            if store is not None:
                one.in_place[tensor] = store
                taken.add(store)

    def _is_like(self, store: Tensor, tensor: Tensor) -> bool:
        dtype = self._context.space.storages[store].dtype
        return store.shape == tensor.shape and dtype == compute_dtype(tensor.dtype)

    def _element_wise_readers(self, one: Sweep, tensor: Tensor) -> set[Tensor]:
        """Return what a sweep makes of a kept element at its place; nothing if a view reads it."""
        kept = set(one.kept)

        def below(t: Tensor) -> tuple[Tensor, ...]:
            known = t in kept or self._is_given(t) or self._is_value(t)
            return () if known else t.node.operands

        reads: dict[Tensor, bool] = {}
        for reader in topological(one.roots, below):
            reads[reader] = reader is tensor or any(reads[t] for t in below(reader))
            if reads[reader] and reader is not tensor and self._is_leaf(reader):
                return set()
        return {t for t, does in reads.items() if does}
