"""Products of four warps together, which go on by themselves until they are waited for."""

from __future__ import annotations

from collections.abc import Iterable

from composite.compiler.tvm.codegen.device_block import DeviceBlock
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.tir.block import Buffer


def begin_products(
    block: DeviceBlock, function: str, sums: Buffer, factors: Iterable[tuple[Expr, Expr]]
) -> None:
    """Begin to add the products of each two factors to the sums, as one group."""
    block.call("composite_wgmma_begin")
    for first, second in factors:
        block.call(f"composite_wgmma_{function}", block.address(sums, 0), first, second)
    block.call("composite_wgmma_commit")


def end_products(block: DeviceBlock, sums: Buffer) -> None:
    """Wait until all that have begun are in the sums."""
    block.call(f"composite_wgmma_end<{int(sums.shape[0])}>", block.address(sums, 0))
