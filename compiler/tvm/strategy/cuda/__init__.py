"""Strategies for NVIDIA's GPUs: how a stage becomes launches over blocks and threads.

What no strategy here takes has no kernel on a GPU: convolutions, scans and scatters run as
TensorFlow's own ops.
"""

from __future__ import annotations

from composite.compiler.tvm.strategy.context import Strategy
from composite.compiler.tvm.strategy.cuda.attention import Attention
from composite.compiler.tvm.strategy.cuda.attention_shapes import joined_stages
from composite.compiler.tvm.strategy.cuda.constant import ConstantTable
from composite.compiler.tvm.strategy.cuda.elementwise import Elementwise
from composite.compiler.tvm.strategy.cuda.product import Product
from composite.compiler.tvm.strategy.cuda.recurrence import Recurrence
from composite.compiler.tvm.strategy.cuda.reduction import Reduction
from composite.compiler.tvm.strategy.cuda.rows import RowStages
from composite.compiler.tvm.strategy.cuda.tensor_product import TensorProduct
from composite.compiler.tvm.strategy.cuda.tiled_product import TiledProduct
from composite.compiler.tvm.strategy.cuda.warp_group_attention import WarpGroupAttention
from composite.compiler.tvm.strategy.cuda.warp_group_product import WarpGroupProduct
from composite.compiler.tvm.strategy.cuda.warp_group_tf32 import WarpGroupTf32

__all__ = ["STRATEGIES", "joined_stages"]

STRATEGIES: tuple[Strategy, ...] = (
    ConstantTable(),
    Recurrence(),
    WarpGroupAttention(),
    Attention(),
    WarpGroupProduct(),
    WarpGroupTf32(),
    TensorProduct(),
    TiledProduct(),
    Product(),
    RowStages(),
    Reduction(),
    Elementwise(),
)
