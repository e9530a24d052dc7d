"""Matrix products."""

from __future__ import annotations

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.tensor import Tensor, Transpose
from composite.compiler.tvm.lower.unary import NUMBERS
from composite.compiler.tvm.nodes.node import OpNode


def _lower_matmul(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower MatMul: two matrices."""
    a, b = inputs
    if a.rank != 2 or b.rank != 2:
        raise NotCovered(f"MatMul: ranks {a.rank} and {b.rank}")
    return [_product(node, a, b, node.flag("transpose_a"), node.flag("transpose_b"))]


def _lower_batch_matmul(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower BatchMatMul (equal batch dimensions) and V2, V3 (batch dimensions broadcast)."""
    a, b = inputs
    if a.rank < 2 or b.rank < 2:
        raise NotCovered(f"{node.op}: ranks {a.rank} and {b.rank}")
    if node.op == "BatchMatMul" and a.shape[:-2] != b.shape[:-2]:
        raise NotCovered(f"{node.op}: batches {a.shape[:-2]} and {b.shape[:-2]} differ")
    return [_product(node, a, b, node.flag("adj_x"), node.flag("adj_y"))]


def _product(node: OpNode, a: Tensor, b: Tensor, ta: bool, tb: bool) -> Tensor:
    node.require(a.dtype, *NUMBERS)
    if a.dtype != b.dtype or node.op == "BatchMatMulV3":
        out = node.dtype("Tout") if node.op == "BatchMatMulV3" else a.dtype
        if a.dtype != b.dtype or out != a.dtype:
            raise NotCovered(f"{node.op}: dtypes {a.dtype}, {b.dtype} to {out}")
    rows, inner = (a.shape[-1], a.shape[-2]) if ta else (a.shape[-2], a.shape[-1])
    inner_b, columns = (b.shape[-1], b.shape[-2]) if tb else (b.shape[-2], b.shape[-1])
    dims.require_equal(inner, inner_b, f"{node.op}: inner")
    batch = dims.broadcast_shapes((a.shape[:-2], b.shape[:-2]), node.op)
    (a, ta), (b, tb) = factor(a, ta), factor(b, tb)
    return Tensor((*batch, rows, columns), a.dtype, MatMul(a, b, ta, tb))


def factor(tensor: Tensor, transposed: bool) -> tuple[Tensor, bool]:
    """Return the factor as strategies like it best, and whether it is transposed.

    A transpose of the matrices becomes the flag.
    """
    node = tensor.node
    if isinstance(node, Transpose):
        last = tensor.rank - 1
        if node.permutation == (*range(last - 1), last, last - 1):
            return factor(node.operand, not transposed)
    return tensor, transposed


LOWERINGS = {
    "MatMul": _lower_matmul,
    "BatchMatMul": _lower_batch_matmul,
    "BatchMatMulV2": _lower_batch_matmul,
    "BatchMatMulV3": _lower_batch_matmul,
}
