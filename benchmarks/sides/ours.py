"""Our side: composite ops under `auto`, as a user has them once their kernels are compiled.

What a process has seen decides which dims of its kernels are symbols: `team` starts it again where
that matters.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import composite
from benchmarks import ops
from benchmarks.sides.side import Settings, Way
from benchmarks.sides.tensorflow_layers import eager, function
from benchmarks.warm import warm
from benchmarks.works.layers import LAYER_NORM_EPSILON, RMS_NORM_EPSILON
from benchmarks.works.work import Program
from examples.blocks import ops as blocks
from examples.convnet.ops import fused_conv2d
from examples.digits.ops import fused_fully_connected

OPS: dict[str, tuple[Any, dict[str, Any]]] = {
    "dense": (fused_fully_connected, {"act": "RELU"}),
    "matmul": (ops.matrix_product, {}),
    "softmax": (blocks.fused_softmax, {}),
    "layer norm": (blocks.fused_layer_norm, {"epsilon": LAYER_NORM_EPSILON}),
    "RMS norm": (blocks.fused_rms_norm, {"epsilon": RMS_NORM_EPSILON}),
    "gated": (ops.gated, {}),
    "GELU": (ops.tanh_gelu, {}),
    "conv 3x3": (fused_conv2d, {"act": "RELU"}),
    "attention": (ops.attention_head, {}),
    "LSTM": (ops.lstm, {}),
    "GRU": (ops.gru, {}),
}
"""The op of each kind of layer, with its attributes."""


class Ours:
    """Composite ops; what a node costs is shown as "ours"."""

    def versions(self) -> dict[str, str]:
        """This project."""
        return {"tf-composite": composite.__version__}

    def columns(self, program: Program) -> dict[str, Settings]:
        """A stack as one tf.function; of a single layer, the eager call and the function's."""
        op, attrs = OPS[program.kind]

        def layer(x: Any, *weights: Any) -> Any:
            return op(x, *weights, **attrs)

        @cache  # calls with other weights would be other layers to the op
        def called() -> Way:
            way = _settled(eager(program, layer))
            first = [program.weights[i] for i in program.steps[0]]
            explained = composite.explain(op, program.x, *first, **attrs)
            kernel = f"kernel: {explained.details.get('strategy')}"
            expansion = f"expansion: {explained.reason}"
            return replace(way, note=kernel if explained.path == "kernel" else expansion)

        def in_graph() -> Way:
            return replace(_settled(function(program, layer)), note=called().note)

        if len(program.steps) > 1:
            return {"ours": {"": in_graph}}
        return {"ours": {"": called}, "ours, tf.function": {"": in_graph}}


def _settled(way: Way) -> Way:
    """Wait for all kernels that it asks for: the last are for weights that have been the same."""
    warm({"": way.run})
    return way


def side() -> Ours:
    """The side of this module."""
    return Ours()
