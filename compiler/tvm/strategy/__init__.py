"""How a stage becomes loops: one idea a file, the first that fits is taken.

To add one: write a module with a ``Strategy``, and put it in :data:`STRATEGIES` before those that
would also take its stages. Those from rows on take all reductions and what has no anchor.
"""

from __future__ import annotations

from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.base import Context, Strategy
from composite.compiler.tvm.strategy.cpu import constant, elementwise, recurrence, scan, scatter
from composite.compiler.tvm.strategy.cpu.convolution import (
    channelwise,
    convolution,
    filter_gradient,
    unpool,
)
from composite.compiler.tvm.strategy.cpu.product import axpy, contraction, dots, gemm
from composite.compiler.tvm.strategy.cpu.rows import reduction, rows

STRATEGIES: tuple[Strategy, ...] = (
    recurrence.Recurrence(),
    constant.ConstantTable(),
    dots.Dots(),
    axpy.Axpy(),
    gemm.Gemm(),
    contraction.PlainContraction(),
    channelwise.ChannelWise(),
    unpool.Unpool(),
    convolution.ImplicitProduct(),
    filter_gradient.FilterGradients(),
    rows.Rows(),
    reduction.Reduction(),
    scan.RunningSum(),
    scatter.ScatteredRows(),
    elementwise.Elementwise(),
)


def choose(stage: Stage, context: Context) -> Strategy:
    """Return the strategy that will write the stage."""
    return next(s for s in STRATEGIES if s.fits(stage, context))
