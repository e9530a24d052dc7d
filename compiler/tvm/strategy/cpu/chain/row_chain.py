"""A chain of stages, block of rows by block of rows.

A task takes some blocks of the rows of one batch. Each block goes through all parts of the chain,
which the strategies that match them write as they would write them alone, on one thread. What a
part hands on lies in a workspace of a block's size. What all blocks of a task read, such as the
second factors of products, is packed before the first.

If the blocks do not cover the rows, a smaller one follows them, in loops of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from composite.compiler.tvm.codegen.access import Index, Storage, Strided, flat_index
from composite.compiler.tvm.ir.dims import Dim, ceildiv, product, symbol
from composite.compiler.tvm.ir.loop import varies
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.row_block import RowBlock
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cpu.chain.joining import handed_on, row_bytes
from composite.compiler.tvm.strategy.cpu.product.blocking import BLOCK_ROWS, equal_blocks
from composite.compiler.tvm.strategy.cpu.product.cycles import stage_cycles
from composite.compiler.tvm.strategy.indexing import elements, unflatten
from composite.compiler.tvm.strategy.tasks import tasks
from composite.compiler.tvm.tir.block import index, maximum, minimum, quotient, remainder

_TASKS_PER_CORE = 2
"""A thread that comes late then still finds work, and none waits long for the last task."""


class RowChain:
    """Stages that are chains."""

    name = "chain"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take every chain, whose rows are known."""
        rows = stage.shape[-1] if stage.parts else None
        return _Writer(stage, rows, context) if isinstance(rows, int) else None


@dataclass(frozen=True)
class _Blocks:
    """The loop over the blocks of a task, as strategies see it: one thread goes through it.

    ``outer`` is the context of the task, ``depth`` that of its scope; ``made`` is what the parts
    of the chain store.
    """

    counter: str
    made: frozenset[Tensor]
    outer: Context
    depth: int
    count: int | None = None
    team: bool = False
    meets: bool = False

    def stays(self, tensor: Tensor) -> bool:
        """Return whether a tensor is the same for all blocks."""
        return not varies((tensor,), self.counter, self.made)[tensor]

    def next_place(self, tensor: Tensor) -> Strided | None:  # noqa: ARG002
        """Return None: the hardware foresees what the next block reads."""
        return None

    @contextmanager
    def ahead(self) -> Iterator[Context]:
        """Write before the loop."""
        with self.outer.block.ahead(self.depth):
            yield self.outer


class _OnBlock:
    """The stages of a chain on a block of ``count`` rows."""

    def __init__(self, chain: Stage, count: Dim, context: Context) -> None:
        self.starts = tuple(f"at{i}" for i in range(len(chain.shape)))
        where = tuple(symbol(name) for name in self.starts)
        self._block = RowBlock(chain.shape, where, count, context.plan.stored)
        self.stages = [stage for part in chain.parts if (stage := self._block.add(part))]
        self.stores = {t: self._block[t] for part in chain.parts for t in part.stores}


class _Writer:
    def __init__(self, stage: Stage, rows: int, context: Context) -> None:
        self._stage = stage
        self._rows = rows
        self._context = context
        self._block = context.block
        self._batch = stage.shape[:-1]
        self._size = _block_rows(stage, rows, context)

    def write(self) -> None:
        """Write the loop over tasks."""
        context, block = self._context, self._block
        count = ceildiv(self._rows, self._size)
        batches = elements(self._batch, context)
        wanted = _TASKS_PER_CORE * context.target.cores
        chunks = maximum(1, quotient(wanted + (batches - 1), maximum(1, batches)))
        share = block.bind(maximum(1, quotient(count + (chunks - 1), chunks)), "share")
        chunks = block.bind(maximum(1, quotient(count + (share - 1), share)), "chunks")
        part = _OnBlock(self._stage, self._size, context)
        cycles_of_row = ceildiv(stage_cycles(part.stages), self._size)

        def body(task: Expr) -> None:
            number = block.bind(quotient(task, chunks), "batch")
            batch = unflatten(context, number, self._batch) if self._batch else []
            first = block.bind(remainder(task, chunks) * share, "first")
            self._write_task(part, batch, first, minimum(share, count - first))

        tasks(context, batches * chunks, batches * self._rows * cycles_of_row, body)

    def _write_task(self, part: _OnBlock, batch: list[Index], first: Expr, count: Expr) -> None:
        """Write ``count`` blocks from ``first`` on."""
        block, size = self._block, self._size
        context = self._of_task(batch, part)
        handed = [t for t in part.stores if t not in self._stage.stores]
        rooms = {tensor: context.temporary(part.stores[tensor]) for tensor in handed}
        made = frozenset(part.stores.values())
        trips = _Blocks(part.starts[-1], made, context, block.depth)
        with block.loop(count, "block") as b:
            number = block.bind(first + b, "number")
            row = block.bind(number * size, "row")
            whole, rest = divmod(self._rows, self._size)
            with block.when(index(number) < whole if rest else True):
                self._write_block(part, replace(context, trips=trips), batch, row, rooms)
            if rest:
                with block.otherwise():
                    own = replace(context, scope=f"{context.scope}rest.")
                    last = _OnBlock(self._stage, rest, self._context)
                    self._write_block(last, own, batch, row, rooms)

    def _of_task(self, batch: list[Index], part: _OnBlock) -> Context:
        """Return the context of a task, which knows its batch and runs on one thread."""
        space = self._context.space
        for name, place in zip(part.starts, batch, strict=False):
            space = space.within(name, index(place))
        return replace(self._context, space=space, target=replace(self._context.target, cores=1))

    def _write_block(
        self,
        part: _OnBlock,
        context: Context,
        batch: list[Index],
        row: Expr,
        rooms: dict[Tensor, Storage],
    ) -> None:
        """Write all parts of the chain on the block that begins at a row."""
        space = context.space.within(part.starts[-1], row)
        place = flat_index([*batch, row], space.strides(self._stage.shape))
        for tensor, made in part.stores.items():
            if tensor in rooms:
                space.storages[made] = rooms[tensor]
                continue
            whole = space.storages[tensor]
            width = space.size(product(tensor.shape[len(self._stage.shape) :]))
            offset = self._block.bind(index(whole.offset + place * width), "place")
            space.storages[made] = replace(whole, offset=offset)
        for number, stage in enumerate(part.stages):
            own = replace(context, space=space, scope=f"{context.scope}{number}.")
            own.match(stage).writer.write()


def _block_rows(stage: Stage, rows: int, context: Context) -> int:
    """Return the rows of a block: what its stages hand on should stay in a cache.

    Equal blocks, if the number of rows has such a divisor.
    """
    near = context.machine.held // max(1, row_bytes(stage, handed_on(stage)))
    default = max(BLOCK_ROWS // 2, min(BLOCK_ROWS, near))
    most = context.choose("chain.rows", (24, BLOCK_ROWS, 96, 192), default)
    blocks = equal_blocks(rows, most)
    return rows // blocks if blocks else ceildiv(rows, ceildiv(rows, most))
