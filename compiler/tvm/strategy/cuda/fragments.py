"""What a warp holds of a product in registers: fragments of the factors, and of the sums.

The lanes of a warp share 16 x 8 elements of sums as NVIDIA's tensor cores do: lane ``i`` has
elements ``i % 4 * 2`` and the next one of rows ``i // 4`` and ``i // 4 + 8``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from composite.compiler.tvm.codegen.device_block import WARP, DeviceBlock, Place
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cuda.staged_factor import StagedFactor
from composite.compiler.tvm.target import CudaTarget
from composite.compiler.tvm.tir.block import Buffer, const, index, quotient, remainder

_NARROW = 16


@dataclass(frozen=True)
class Numbers:
    """What tensor cores multiply.

    Attributes:
        name: float16, bfloat16 or tf32.
        bytes: Of an element in shared memory.
        depth: Elements of the inner dimension that one instruction multiplies.
    """

    name: str
    bytes: int
    depth: int

    @classmethod
    def of(cls, sums: Tensor, context: Context, *factors: Tensor) -> Numbers | None:
        """Return what a product is computed in; None if tensor cores have no such numbers."""
        target, dtype = context.target, sums.dtype
        if any(t.dtype != dtype for t in factors):
            return None
        if dtype == "float32":
            allowed = isinstance(target, CudaTarget) and target.tensor_float_32
            return cls("tf32", ITEM_SIZE[dtype], 8) if allowed else None
        return cls(dtype, ITEM_SIZE[dtype], 16) if dtype in ("float16", "bfloat16") else None


class Fragments:
    """Registers of a warp, and the instructions on them.

    The inner dimension may be in any order that both factors have. If it is ``paired``, fragments
    of TF32 take it as the lanes have two columns of sums: these can then be a first factor.

    Attributes:
        warp: Its number in the block.
        lane: The number of the thread within it.
        row: The first row of a fragment of sums that the lane has elements of.
        column: Half the number of its first column.
    """

    def __init__(
        self, block: DeviceBlock, numbers: Numbers, thread: Expr, *, paired: bool = False
    ) -> None:
        self._block = block
        self._numbers = numbers
        # Elements of the inner dimension that a lane reads of TF32: half of them apart, or two.
        self._inner_steps = (2, 1) if paired else (1, numbers.depth // 2)
        self.warp = block.bind(quotient(thread, WARP), "warp")
        self.lane = block.bind(remainder(thread, WARP), "lane")
        self.row = block.bind(quotient(self.lane, 4), "group")
        self.column = block.bind(remainder(self.lane, 4), "column")

    def sums(self, count: int) -> Buffer:
        """Return 16 x 8 sums, ``count`` times, all of them 0."""
        block = self._block
        sums = block.registers(4 * count, "float32", "sums")
        for i in range(4 * count):
            block.store(sums, i, const(0.0, "float32"))
        return sums

    def registers(self, count: int, hint: str) -> Buffer:
        """Return registers for 16 x ``depth`` elements, ``count`` times."""
        return self._block.registers(4 * count, "uint32", hint)

    def lane_place(self, staged: StagedFactor, *, is_first: bool) -> Expr:
        """Return which element of a piece a lane reads, or gives the address of, in a fragment."""
        block = self._block
        if self._numbers.bytes == 2:
            matrix = quotient(self.lane, 8)
            halves = (remainder(matrix, 2), quotient(matrix, 2))
            other, inner = halves if is_first else halves[::-1]
            within = remainder(self.lane, 8)
            near, far = (within, 0) if staged.inner_near else (0, within)
            other, inner = other * 8 + near, inner * 8 + far
        else:
            other, inner = self.row, self.column * self._inner_steps[0]
        return block.bind(index(other * staged.step[0] + inner * staged.step[1]), "place")

    def load(self, staged: StagedFactor, source: Place, to: Place, *, is_first: bool) -> None:
        """Load 16 elements of a factor by ``depth``, as the fragment of that number.

        ``source`` is the first of them that this lane reads (:meth:`lane_place`).
        """
        block, numbers = self._block, self._numbers
        if numbers.bytes == 2:
            transposed = "false" if staged.inner_near else "true"
            registers = block.address(to.buffer, 4 * to.at)
            block.call(f"composite_load_matrices<{transposed}>", registers, block.address(*source))
            return
        other, inner = (8 * staged.step[0], self._inner_steps[1] * staged.step[1])
        for i in range(4):
            halves = (i % 2, i // 2) if is_first else (i // 2, i % 2)
            place = source.at + (halves[0] * other + halves[1] * inner)
            address = block.address(source.buffer, place)
            value = tirx.call_pure_extern("uint32", "composite_load_tf32", address)
            block.store(to.buffer, 4 * to.at + i, value)

    def multiply(self, sums: Place, a: Place, b: Place) -> None:
        """Add the product of 16 rows of ``a`` and 8 columns of ``b``, by their numbers."""
        block = self._block
        sizes = ((sums, 4), (a, 4), (b, 2))
        registers = (block.address(one.buffer, size * one.at) for one, size in sizes)
        block.call(f"composite_mma_{self._numbers.name}", *registers)


def factor_of_sums(block: DeviceBlock, numbers: Numbers, sums: Buffer, k: int, i: int) -> Expr:
    """Return register ``i`` of the fragment ``k`` of a first factor, which sums become."""
    if numbers.bytes == 4:
        cell = 4 * k + 2 * (i % 2) + i // 2
        return tirx.call_pure_extern("uint32", "composite_tf32", block.load(sums, cell))
    cell = 4 * (2 * k + i // 2) + 2 * (i % 2)
    both = (block.load(sums, cell + n) for n in range(2))
    return tirx.call_pure_extern("uint32", f"composite_pair_{numbers.name}", *both)
