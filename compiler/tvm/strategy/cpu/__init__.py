"""Strategies for CPUs: how a stage becomes loops over threads, vectors and registers.

The first strategy that matches a stage writes it. Those from ``RowStages`` on take every reduction
and every stage without an anchor, so what is more special stands in front of them.
"""

from __future__ import annotations

from composite.compiler.tvm.strategy.context import Strategy
from composite.compiler.tvm.strategy.cpu.chain.joining import joined_stages
from composite.compiler.tvm.strategy.cpu.chain.row_chain import RowChain
from composite.compiler.tvm.strategy.cpu.constant import ConstantTable
from composite.compiler.tvm.strategy.cpu.convolution.channel_filters import ChannelFilters
from composite.compiler.tvm.strategy.cpu.convolution.channelwise import ChannelWise
from composite.compiler.tvm.strategy.cpu.convolution.convolution import ImplicitProduct
from composite.compiler.tvm.strategy.cpu.convolution.filter_gradient import FilterGradients
from composite.compiler.tvm.strategy.cpu.convolution.unpool import Unpool
from composite.compiler.tvm.strategy.cpu.elementwise.elementwise import Elementwise
from composite.compiler.tvm.strategy.cpu.product.axpy import Axpy
from composite.compiler.tvm.strategy.cpu.product.contraction import PlainContraction
from composite.compiler.tvm.strategy.cpu.product.dots import Dots
from composite.compiler.tvm.strategy.cpu.product.gemm import Gemm
from composite.compiler.tvm.strategy.cpu.product.turned import TurnedSquares
from composite.compiler.tvm.strategy.cpu.recurrence import Recurrence
from composite.compiler.tvm.strategy.cpu.rows.reduction import Reduction
from composite.compiler.tvm.strategy.cpu.rows.rows import RowStages
from composite.compiler.tvm.strategy.cpu.scan import RunningSum
from composite.compiler.tvm.strategy.cpu.scatter import ScatteredRows

__all__ = ["STRATEGIES", "joined_stages"]

STRATEGIES: tuple[Strategy, ...] = (
    Recurrence(),
    RowChain(),
    ConstantTable(),
    Dots(),
    TurnedSquares(),
    Axpy(),
    Gemm(),
    PlainContraction(),
    ChannelWise(),
    Unpool(),
    ImplicitProduct(),
    FilterGradients(),
    ChannelFilters(),
    RowStages(),
    Reduction(),
    RunningSum(),
    ScatteredRows(),
    Elementwise(),
)
