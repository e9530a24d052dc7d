"""Write the kernels of a GPU: what each thread of a grid runs.

A :class:`DeviceBlock` is a :class:`.block.Block` whose outermost scopes are launches. A grid has
one dimension: its blocks share out units of work, and any number of blocks is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from tvm import ir, tirx
from tvm.tirx import stmt as tir_stmt

from composite.compiler.tvm.codegen.block import (
    INDEX,
    LINE_BYTES,
    Block,
    Buffer,
    Stmt,
    const,
    index,
    quotient,
)
from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.tensor import Expr

WARP = 32
"""Threads that run together and can read each other's registers."""
_MOST_BLOCKS = (1 << 31) - 1  # of a grid, in its first dimension


@dataclass(frozen=True)
class Region:
    """The body of one launch.

    Attributes:
        work: Units of work, which the blocks share out.
        share: Units that a block does at once.
        threads: Threads of a block.
        body: What a thread runs.
        shared: Bytes of shared memory that a block declares.
        copied: Buffers that are accessed in vectors, whose addresses must be aligned.
    """

    work: Dim
    share: int
    threads: int
    body: Stmt
    shared: int
    copied: tuple[Buffer, ...]


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


class DeviceBlock(Block):
    """Launches under construction.

    Attributes:
        launches: Those that are complete, in the order in which they run.
    """

    def __init__(self) -> None:
        super().__init__()
        self.launches: list[Region] = []
        self._shared = 0
        self._copied: list[Buffer] = []

    @contextmanager
    def launch(self, work: Dim, share: int, threads: int) -> Iterator[Grid]:
        """Have each thread of a grid run what is written inside."""
        here = tirx.Var("blockIdx.x", INDEX)
        thread = tirx.Var("threadIdx.x", INDEX)
        blocks = tirx.call_pure_extern(INDEX, "composite_blocks")
        self._shared, self._copied = 0, []
        body = self._open()
        yield Grid(here, thread, self.let(blocks, "blocks"))
        self._close(body)
        whole = _extent(thread, threads, _extent(here, _MOST_BLOCKS, self._sequence(body)))
        self.launches.append(Region(work, share, threads, whole, self._shared, (*self._copied,)))

    @contextmanager
    def share_out(self, first: Expr, count: Expr | int, step: Expr) -> Iterator[Expr]:
        """Repeat what is written inside for ``first``, ``first + step``, ... below ``count``."""
        trips = quotient(index(count) - first + step - 1, step)
        with self.loop(trips, "trip") as trip:
            yield self.bind(first + trip * step, "unit")

    def shared(self, count: int, dtype: str, hint: str = "shared") -> Buffer:
        """Return an array that the threads of a block share."""
        buffer = tirx.decl_buffer((count,), dtype, self.name(hint), scope="shared")
        self.add(tir_stmt.AllocBuffer(buffer))
        start = -(-self._shared // LINE_BYTES) * LINE_BYTES  # where TVM aligns it to
        self._shared = start + count * _bytes(dtype)
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
