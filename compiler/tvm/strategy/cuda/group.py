"""Threads that work on one reduction together: part of a warp, a warp, or a block.

Each adds up its own elements; the totals are then combined in a fixed order, so that a call gives
the same bits every time.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from composite.compiler.tvm.codegen.device_block import WARP, DeviceBlock
from composite.compiler.tvm.ir.anchors import Combine
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.numeric import choose, from_storage, storage_dtype, to_storage
from composite.compiler.tvm.tir.block import Buffer, const, index


class Total:
    """The combination of the elements that one thread sees, in its compute dtype."""

    def __init__(self, block: DeviceBlock, combine: Combine, dtype: str) -> None:
        self._block = block
        self._combine = combine
        self._dtype = dtype
        self._cell = block.registers(1, storage_dtype(dtype), "total")
        self._put(self._identity())

    def _identity(self) -> Expr:
        value = self._combine.identity(self._dtype)
        return const(bool(value) if self._dtype == "bool" else value, self._dtype)

    def _put(self, value: Expr) -> None:
        self._block.store(self._cell, 0, to_storage(self._block, value, self._dtype))

    def value(self) -> Expr:
        """Return the combination so far."""
        raw = self._block.let(tirx.BufferLoad(self._cell, [index(0)]))
        return self._block.let(from_storage(raw, self._dtype))

    def add(self, value: Expr, valid: Expr | None = None) -> None:
        """Combine an element, if it is valid."""
        both = self._block.let(self._combine.apply(self._block, self.value(), value))
        self._put(both if valid is None else choose(valid, both, self.value()))

    def add_partners(self, bits: int) -> None:
        """Combine with the total of the thread of the warp whose number differs in these bits."""
        own = to_storage(self._block, self.value(), self._dtype)
        raw = self._block.let(
            tirx.call_pure_extern(
                storage_dtype(self._dtype), "composite_partner", own, const(bits, "int32")
            )
        )
        self.add(from_storage(raw, self._dtype))

    def leave(self, shared: Buffer, place: Expr) -> None:
        """Store it where other threads can read it."""
        self._block.store(shared, place, to_storage(self._block, self.value(), self._dtype))

    def add_left(self, shared: Buffer, place: Expr) -> None:
        """Combine one that another thread has stored."""
        raw = self._block.let(tirx.BufferLoad(shared, [index(place)]))
        self.add(from_storage(raw, self._dtype))

    def shared(self, count: int) -> Buffer:
        """Return room for that many totals."""
        return self._block.shared(count, storage_dtype(self._dtype), "totals")

    def restart(self) -> None:
        """Begin anew, with no element."""
        self._put(self._identity())


@dataclass(frozen=True)
class Group:
    """``size`` threads, a power of two, that share a row; ``thread`` is the number within them.

    A group of more than a warp is all of a block.
    """

    block: DeviceBlock
    size: int
    thread: Expr

    def combine(self, total: Total) -> Expr:
        """Return the combination of the totals of all threads of the group, to each of them."""
        bits = min(self.size, WARP) // 2
        while bits:
            total.add_partners(bits)
            bits //= 2
        if self.size <= WARP:
            return total.value()
        block, warps = self.block, self.size // WARP
        room = total.shared(warps)
        lane = tirx.truncmod(self.thread, const(WARP, "int64"))
        with block.when(tirx.EQ(lane, index(0))):
            total.leave(room, tirx.truncdiv(self.thread, const(WARP, "int64")))
        block.barrier()
        total.restart()
        with block.loop(warps, "warp") as warp:
            total.add_left(room, warp)
        return total.value()

    def part(self) -> None:
        """End the work on a row, before the next: what is shared may be written again."""
        if self.size > WARP:
            self.block.barrier()
