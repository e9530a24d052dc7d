"""Write the kernels of a GPU: what each thread of a grid runs.

A :class:`DeviceBlock` is a :class:`.block.Block` whose outermost scopes are launches. A grid has
one dimension: its blocks share out units of work, and any number of blocks is right.

Launches that are written within a resident one are its parts, one after the other. Its blocks are
all there at a time, and meet where it is said: what each wrote before, all read after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from tvm import ir, tirx
from tvm.tirx import stmt as tir_stmt

from composite.compiler.tvm.ir.dims import Dim, floordiv
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.machine import LINE_BYTES
from composite.compiler.tvm.target import MOST_BLOCKS
from composite.compiler.tvm.tir.block import (
    INDEX,
    Block,
    Buffer,
    Stmt,
    const,
    index,
)

WARP = 32
"""Threads that run together and can read each other's registers."""
DECLARED = 48 * 1024
"""Bytes of shared memory that a function may declare; a launch may give more."""


@dataclass(frozen=True)
class Region:
    """The body of one launch.

    Attributes:
        work: Units of work, which the blocks share out.
        share: Units that a block does at once.
        threads: Threads of a block.
        body: What a thread runs.
        shared: Bytes of shared memory that a block declares.
        pool: Bytes that it has beside these.
        copied: Buffers that are accessed in vectors, whose addresses must be aligned.
        resident: Whether its blocks must all be there at a time, since they wait for each other.
        beside: How many blocks a multiprocessor has registers for, at least; 0 is any number.
    """

    work: Dim
    share: int
    threads: int
    body: Stmt
    shared: int
    copied: tuple[Buffer, ...]
    pool: int = 0
    resident: bool = False
    beside: int = 0


@dataclass(frozen=True)
class Grid:
    """Who runs: the block's and the thread's number, and how many blocks there are."""

    block: Expr
    thread: Expr
    blocks: Expr


class Place(NamedTuple):
    """An element of a buffer."""

    buffer: Buffer
    at: Expr | int


@dataclass
class _Resident:
    """A resident launch under construction.

    Its blocks have met when ``counter`` is ``goal``. ``ahead`` are the units of work since then,
    ``works`` those between two meetings before. Parts have the same ``pool`` of shared memory one
    after the other, behind what is ``kept``: ``taken`` bytes of it are the last one's, which
    ``shares`` it if there is any that threads may still use.
    """

    grid: Grid
    threads: int
    counter: Buffer
    goal: Buffer
    size: Callable[[Dim], Expr | int]
    ahead: Dim = 0
    works: list[Dim] = field(default_factory=list)
    pool: int = 0
    kept: int = 0
    taken: int = 0
    shares: bool = False


class DeviceBlock(Block):
    """Launches under construction.

    ``take`` gives memory of the device for a number of elements, for as long as a call runs.

    Attributes:
        launches: Those that are complete, in the order in which they run.
    """

    def __init__(self, take: Callable[[Dim, str], Buffer]) -> None:
        super().__init__()
        self.launches: list[Region] = []
        self._take = take
        self._shared = 0
        self._given = 0
        self._copied: list[Buffer] = []
        self._resident: _Resident | None = None

    def _keep_whole(self, body: list[Stmt]) -> None:
        """Nothing: LLVM does not see it."""

    def temporary(self, count: Dim, size: Expr | int, dtype: str) -> Buffer:  # noqa: ARG002
        """Return memory of the device."""
        return self._take(count, dtype)

    @property
    def threads(self) -> int | None:
        """Threads of a block, which a launch must have where a resident one is around it."""
        return None if self._resident is None else self._resident.threads

    @contextmanager
    def launch(self, work: Dim, share: int, threads: int, beside: int = 0) -> Iterator[Grid]:
        """Have each thread of a grid run what is written inside; see `Region`."""
        if self._resident is not None:
            yield self._part(self._resident, floordiv(work + (share - 1), share), threads)
            return
        grid, body = self._open_grid()
        yield grid
        self._close(body)
        whole, copied = self._whole(grid, threads, body), (*self._copied,)
        self.launches.append(
            Region(work, share, threads, whole, self._shared, copied, self._given, beside=beside)
        )

    @contextmanager
    def resident(self, threads: int, size: Callable[[Dim], Expr | int]) -> Iterator[None]:
        """Make one launch of those that are written inside; ``size`` gives a dimension's value."""
        counter = self._take(1, INDEX)
        with self.launch(1, 1, WARP) as grid, self.when(grid.thread < index(1)):
            self.store(counter, 0, index(0))
        grid, body = self._open_grid()
        goal = self.registers(1, INDEX, "goal")
        self.store(goal, 0, index(0))
        self._resident = own = _Resident(grid, threads, counter, goal, size)
        yield
        self._resident = None
        self._close(body)
        whole, work = self._whole(grid, threads, body), _largest([*own.works, own.ahead])
        copied = (*self._copied,)
        # The only one of its multiprocessor has all the registers.
        region = Region(work, 1, threads, whole, 0, copied, own.pool, resident=True, beside=1)
        self.launches.append(region)

    def meet(self) -> None:
        """Have all blocks of a resident launch meet."""
        own = self._resident
        if own is None:
            raise RuntimeError("only the blocks of a resident launch can meet")
        self.store(own.goal, 0, self.load(own.goal, 0) + own.grid.blocks)
        self.call("composite_meet", self.address(own.counter, 0), self.load(own.goal, 0))
        own.works.append(own.ahead)
        own.ahead, own.shares = 0, False

    def keep(self, count: int, dtype: str, hint: str = "kept") -> Buffer:
        """Return an array that the threads of a block share in all later parts of the launch."""
        own = self._resident
        if own is None:
            raise RuntimeError("only a resident launch has parts")
        start = _next_line(own.kept)
        own.kept = start + count * _bytes(dtype)
        own.pool = max(own.pool, own.kept)
        return self._declare(start, count, dtype, hint)

    def _open_grid(self) -> tuple[Grid, list[Stmt]]:
        here = tirx.Var("blockIdx.x", INDEX)
        thread = tirx.Var("threadIdx.x", INDEX)
        blocks = tirx.call_pure_extern(INDEX, "composite_blocks")
        self._shared, self._given, self._copied = 0, 0, []
        body = self._open()
        return Grid(here, thread, self.let(blocks, "blocks")), body

    def _whole(self, grid: Grid, threads: int, body: Sequence[Stmt]) -> Stmt:
        inner = _extent(grid.block, MOST_BLOCKS, self._sequence(body))
        return _extent(grid.thread, threads, inner)

    def _part(self, own: _Resident, work: Dim, threads: int) -> Grid:
        """Return who runs a part of a resident launch.

        Blocks are numbered from the first on that has no work of the parts since the last meeting,
        if there is one.
        """
        if threads != own.threads:
            raise RuntimeError(f"a part of {threads} threads in a launch of {own.threads}")
        own.taken = own.kept
        block, blocks = own.grid.block, own.grid.blocks
        if own.ahead != 0:
            ahead = self.bind(index(own.size(own.ahead)), "ahead")
            busy = self.bind(tirx.Select(ahead < blocks, ahead, index(0)), "busy")
            free = tirx.Select(block < busy, block + blocks, block) - busy
            block = self.bind(free, "block")
        own.ahead = own.ahead + work
        return Grid(block, own.grid.thread, blocks)

    @contextmanager
    def share_out(self, first: Expr, count: Expr | int, step: Expr) -> Iterator[Expr]:
        """Repeat what is written inside for ``first``, ``first + step``, ... below ``count``."""
        unit = tirx.Var(self.name("unit"), INDEX)
        body = self._open()
        yield unit
        self._close(body)
        # No number of trips is computed: a division of 64 bits is a routine of many instructions.
        left, kind = index(count) - first, tir_stmt.ForKind.SERIAL
        self.add(tir_stmt.For(unit, first, left, kind, self._sequence(body), step=step))

    def shared(self, count: int, dtype: str, hint: str = "shared") -> Buffer:
        """Return an array that the threads of a block share."""
        if self._resident is not None:
            return self._of_pool(self._resident, count, dtype, hint)
        buffer = tirx.decl_buffer((count,), dtype, self.name(hint), scope="shared")
        self.add(tir_stmt.AllocBuffer(buffer))
        self._shared = _next_line(self._shared) + count * _bytes(dtype)  # as TVM aligns it
        return buffer

    def pool(self, size: int, hint: str = "pool") -> Buffer:
        """Return the bytes that the launch gives a block, at a multiple of 1024.

        They may be more than a function may declare. A launch has one such pool.
        """
        if self._resident is not None or self._given:
            raise RuntimeError("a launch has one pool, and a resident one has its parts' pool")
        self._given = size
        return self._declare(0, size, "uint8", hint)

    def _of_pool(self, own: _Resident, count: int, dtype: str, hint: str) -> Buffer:
        """Return an array that lies where those of other parts lay."""
        if own.shares and own.taken == own.kept:
            self.barrier()
        start = _next_line(own.taken)
        own.taken = start + count * _bytes(dtype)
        own.pool, own.shares = max(own.pool, own.taken), True
        return self._declare(start, count, dtype, hint)

    def _declare(self, start: int, count: int, dtype: str, hint: str) -> Buffer:
        """Return an array in the pool of a resident launch, from a byte on."""
        buffer = tirx.decl_buffer((count,), dtype, self.name(hint), scope="shared")
        place = tirx.call_pure_extern("handle", "composite_pool", const(start, "int32"))
        self.add(tir_stmt.DeclBuffer(buffer, data=place))
        return buffer

    def barrier(self) -> None:
        """Have the threads of a block meet; what each wrote before, all read after."""
        self.add(tir_stmt.Evaluate(tirx.call_intrin("void", "tirx.tvm_storage_sync", "shared")))

    def view(self, shared: Buffer, dtype: str, hint: str = "view") -> Buffer:
        """Return an array that threads share as one of another dtype, at the same place."""
        size = _bytes(str(shared.dtype)) * int(shared.shape[0]) // _bytes(dtype)
        name = self.name(hint)
        buffer = tirx.decl_buffer((size,), dtype, name, data=shared.data, scope="shared")
        self.add(tir_stmt.DeclBuffer(buffer, data=shared.data))
        return buffer

    def address(self, buffer: Buffer, at: Expr | int) -> Expr:
        """Return the address of an element."""
        return tirx.address_of(tirx.BufferLoad(buffer, [index(at)]))

    def call(self, function: str, *arguments: Expr) -> None:
        """Call a function of the preamble that returns nothing."""
        self.add(tir_stmt.Evaluate(tirx.call_extern("void", function, *arguments)))

    def begin_copy(self, to: Place, source: Place, count: int, valid: Expr) -> None:
        """Begin to copy elements to shared memory; to store zeros where they are not valid.

        ``count`` elements are 4, 8 or 16 bytes, and both places are multiples of them.
        """
        size = count * _bytes(str(to.buffer.dtype))
        if count > 1:
            self._copied.append(source.buffer)
        self.call(f"composite_begin_copy<{size}>", self.address(*to), self.address(*source), valid)

    def copy(
        self, to: Buffer, at: Expr | int, source: Buffer, start: Expr | int, count: int
    ) -> None:
        """Copy ``count`` elements, in accesses of 16 bytes where they are so many.

        Both places must be multiples of ``count`` elements from an address that is a multiple of
        16 bytes.
        """
        self._copied += [to, source]
        self.call(f"composite_copy<{count}>", self.address(to, at), self.address(source, start))


def _next_line(size: int) -> int:
    return -(-size // LINE_BYTES) * LINE_BYTES


def _largest(works: Sequence[Dim]) -> Dim:
    """Return the largest of some sizes, or more where the call decides."""
    known = max((work for work in works if isinstance(work, int)), default=0)
    return sum({work: None for work in works if not isinstance(work, int)}, known)


def _bytes(dtype: str) -> int:
    return int(const(0, dtype).ty.dtype.itemsize)


def _extent(var: Expr, count: int, body: Stmt) -> Stmt:
    whole = ir.Range(const(0, INDEX), const(count, INDEX))
    return tir_stmt.AttrStmt(
        tirx.IterVar(whole, var, tirx.IterVar.ThreadIndex, var.name),
        "thread_extent",
        const(count, INDEX),
        body,
    )
