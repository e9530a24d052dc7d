"""What the strategies for matrix products share: sizes, factors, and whether a factor is packed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from composite.compiler.tvm.codegen.access import Index, Strided, strided
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import Dim, Shape, static_shape
from composite.compiler.tvm.ir.dims import product as count_of
from composite.compiler.tvm.ir.dtypes import (
    ITEM_SIZE,
    NARROW_FLOATS,
    STORED_INTEGERS,
    compute_dtype,
)
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import ConstantPacking, Context
from composite.compiler.tvm.strategy.cpu.product.steps import BFLOAT16_PAIRS, Step, integer_steps
from composite.compiler.tvm.strategy.epilogue import write_epilogue
from composite.compiler.tvm.strategy.tasks import Tasks, TaskWriter
from composite.compiler.tvm.tir.block import maximum, quotient

_FLOATS = ("float32", "float64")

_FEW_ROWS = 3
"""Up to so many rows, memory bounds a product, however its second factor lies."""

_STREAMED = ((1 << 20, 8), (1 << 25, 24))
"""Up to so many bytes, a factor of a product of few rows is packed before a loop of at least so
many trips. Packing a factor that no cache holds costs what about ten trips save. A constant one is
packed at rest, unless that widens what memory is read for; a larger one is not held twice."""


@dataclass(frozen=True)
class Product:
    """A stage whose anchor is a product.

    ``[batch..., rows, depth] @ [batch..., depth, columns]``. ``single`` states that there is one
    row, where the call has just been seen to have one.
    """

    stage: Stage
    anchor: Tensor
    node: MatMul
    single: bool = False

    @property
    def batch(self) -> Shape:
        """Batch dimensions of the result."""
        return self.anchor.shape[:-2]

    @property
    def rows(self) -> Dim:
        """Rows of the result."""
        return 1 if self.single else self.anchor.shape[-2]

    @property
    def columns(self) -> Dim:
        """Columns of the result."""
        return self.anchor.shape[-1]

    @property
    def depth(self) -> Dim:
        """The dimension that is summed over."""
        return self.node.a.shape[-2 if self.node.transpose_a else -1]

    @property
    def dtype(self) -> str:
        """The dtype that is computed in."""
        return compute_dtype(self.anchor.dtype)

    @property
    def is_narrow(self) -> bool:
        """Whether its factors are integers of fewer bits."""
        return self.node.a.dtype in STORED_INTEGERS

    @property
    def sizes(self) -> tuple[object, ...]:
        """All sizes: products of the same are cut alike."""
        return (self.batch, self.rows, self.columns, self.depth, self.dtype)

    def write_epilogue(self, context: Context, at: Sequence[Index], total: Expr) -> None:
        """Store what is made of one element, or one vector, of the product."""
        with context.block.flushing(multiplies_pairs(self, context)):
            write_epilogue(context, self.stage, at, total)


class ThinProduct(ABC):
    """A strategy for products of a few rows, which :class:`.gemm.Gemm` uses for single rows too."""

    name: str

    def match(self, stage: Stage, context: Context) -> ThinWriter | None:
        """Take the products that :meth:`match_product` takes."""
        product = float_product(stage)
        return None if product is None else self.match_product(product, context)

    @abstractmethod
    def match_product(self, product: Product, context: Context) -> ThinWriter | None:
        """Return what writes the product, or None if it is not of this kind."""


class ThinWriter(TaskWriter):
    """The writer of a product of a few rows, each task of which makes some columns."""

    def __init__(self, product: Product, matrices: Matrices, context: Context) -> None:
        super().__init__(context)
        self._product = product
        self._matrices = matrices

    @abstractmethod
    def tasks(self) -> Tasks:
        """Return the tasks."""

    def task_sets(self) -> list[Tasks]:
        """Return the one set of tasks."""
        return [self.tasks()]


def product_of(stage: Stage) -> Product | None:
    """Return the stage as a product, if it is one of floats or int32 with something to compute."""
    anchor = stage.anchor
    if anchor is None or not isinstance(anchor.node, MatMul):
        return None
    if compute_dtype(anchor.dtype) not in (*_FLOATS, "int32"):
        return None
    return Product(stage, anchor, anchor.node)


def float_product(stage: Stage) -> Product | None:
    """Return the stage as a product, if it is one of floats."""
    product = product_of(stage)
    return product if product is not None and product.dtype in _FLOATS else None


def step_of(product: Product, context: Context, *, swapped: bool) -> Step:
    """Return what is multiplied at a step, vectors along the columns unless ``swapped``."""
    if multiplies_pairs(product, context):
        return BFLOAT16_PAIRS
    if not product.is_narrow:
        return Step.of_elements(product.dtype)
    factors = list(zip((product.node.a, product.node.b), product.node.zeros, strict=True))
    rows, vectors = reversed(factors) if swapped else factors
    return integer_steps(rows, vectors, context.target)[0]


def is_packed(product: Product, context: Context) -> bool:
    """Return whether the second factor is packed once: it can be, and enough trips pay for it."""
    fewest, trips = packed_from(product, context), context.trips
    least = 0 if trips is None else trips.count
    if least is None:  # the call may well have a single one; a small factor is packed for that
        least = _STREAMED[0][1]
    return fewest is not None and least >= fewest


def packed_from(product: Product, context: Context) -> int | None:
    """Return from how many trips on the second factor is packed; None if it never is.

    A task with few rows reads a packed factor from one end to the other; unpacked, it reads a part
    of each long row.
    """
    packing = context.packing(product.node.b)
    if packing is None:
        return None
    if not (isinstance(product.rows, int) and product.rows <= _FEW_ROWS):
        return 0
    held = math.prod(packing.shape) * ITEM_SIZE[product.dtype]
    if isinstance(packing, ConstantPacking):
        if product.single:  # it is packed for the tiles of more rows
            return None
        widened = product.node.b.dtype in NARROW_FLOATS and not multiplies_pairs(product, context)
        return 0 if held <= _STREAMED[-1][0] and not widened else None
    return next((fewest for most, fewest in _STREAMED if held <= most), None)


def work_cycles(product: Product, context: Context, arithmetic: Expr | int) -> Expr | int:
    """Return about how many cycles a product takes on one thread, that multiplies for so many.

    Few rows wait for the second factor, unless reading it is too short for a second thread anyway.
    """
    factor = product.node.b
    held = context.size(count_of(factor.shape)) * ITEM_SIZE[factor.dtype]
    reading = quotient(held, int(context.machine.l3.bandwidth))
    if isinstance(reading, int) and reading < context.machine.parallel:
        return arithmetic
    return maximum(arithmetic, reading)


def multiplies_pairs(product: Product, context: Context) -> bool:
    """Return whether pairs of bfloat16 are multiplied: the target can, and TensorFlow has them."""
    factors = (product.node.a, product.node.b)
    return context.target.has_bfloat16 and all(t.dtype == "bfloat16" for t in factors)


def is_narrow(tensor: Tensor, context: Context) -> bool:
    """Return whether a factor of fewer bits than the sums lies where strides can say."""
    narrow = (*NARROW_FLOATS, *STORED_INTEGERS)
    return tensor.dtype in narrow and strided(tensor, context.space) is not None


def in_place(tensor: Tensor, dtype: str, context: Context) -> Strided | None:
    """Return where a factor lies, if its elements can be used as they are."""
    where = strided(tensor, context.space)
    return where if where is not None and where.storage.dtype == dtype else None


def batch_offset(tensor: Tensor, where: Strided, batch: list[Index]) -> Expr | int:
    """Return where a factor's matrix starts; its batch dimensions broadcast."""
    own = batch[len(batch) - (tensor.rank - 2) :]
    total = where.offset
    for dim, stride, i in zip(tensor.shape, where.strides, own, strict=False):
        total = total + (0 if dim == 1 else i * stride)
    return total


@dataclass(frozen=True)
class Matrices:
    """Where the factors of a product lie, and its sizes, all known.

    16-bit floats are widened as they are loaded: each is, about once.
    """

    a: Strided
    b: Strided
    rows: int
    columns: int
    depth: int

    @classmethod
    def of(cls, product: Product, context: Context) -> Matrices | None:
        """Return them, if both factors are floats and lie where strides can say."""
        sizes = static_shape((product.rows, product.columns, product.depth))
        a, b = (strided(t, context.space) for t in (product.node.a, product.node.b))
        if sizes is None or a is None or b is None or product.dtype not in _FLOATS:
            return None
        if {compute_dtype(where.storage.dtype) for where in (a, b)} != {product.dtype}:
            return None
        return cls(a, b, *sizes)
