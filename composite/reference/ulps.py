"""How far off the results of TensorFlow's ops may be, whether they or a kernel compute them.

Runs with other roundings move the result of an op by as much (`source`), and a result may have as
many roundings as the ops of its expansion have together. An op that consists of several functions
is stated as a whole, for the operands as they are rounded: those are moved by themselves.

tests/composite/reference/test_ulps.py measures TensorFlow's ops, and compares with the bounds of
kernels' functions (compiler/tvm/math/accuracy.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

_NARROW_EPS = 2.0**-16  # above it: 16-bit floats, of which functions are computed in float32


class Ulps(NamedTuple):
    """How far off an op's results may be.

    Attributes:
        result: in units of eps * |y|.
        one: what is added to that, in units of eps: of numbers near 1, of which 1 is taken off.
    """

    result: float = 1.0
    one: float = 0.0

    def at(self, eps: float) -> Ulps:
        """The same for a dtype: numbers of 16 bits are rounded once, and much coarser."""
        if eps < _NARROW_EPS:
            return self
        return Ulps(min(1.0, self.result), min(1.0, self.one))


STATED: Mapping[str, Ulps] = MappingProxyType(
    {
        "Atan": Ulps(3.0),
        "Atan2": Ulps(3.0),
        "Cos": Ulps(1.5),
        "CumulativeLogsumexp": Ulps(3.0, one=2.0),
        "Elu": Ulps(3.0, one=1.0),
        "EluGrad": Ulps(1.5),
        "Erf": Ulps(7.0),
        "Erfc": Ulps(8.0),
        "Exp": Ulps(1.5),
        "Expm1": Ulps(3.0),
        "FusedBatchNormGradV3": Ulps(4.0),
        "FusedBatchNormV3": Ulps(4.0),
        "Inv": Ulps(1.5),
        "InvGrad": Ulps(1.5),
        "Log": Ulps(2.5),
        "Log1p": Ulps(2.5),
        "LogSoftmax": Ulps(2.5, one=2.5),
        "Pow": Ulps(1.5),
        "Range": Ulps(2.0),
        "Reciprocal": Ulps(1.5),
        "ReciprocalGrad": Ulps(1.5),
        "ResizeBilinear": Ulps(2.0),
        "Rsqrt": Ulps(2.0),
        "RsqrtGrad": Ulps(2.0),
        "Selu": Ulps(3.0, one=2.0),
        "SeluGrad": Ulps(2.0),
        "Sigmoid": Ulps(4.5),
        "SigmoidGrad": Ulps(2.0),
        "Sin": Ulps(1.5),
        "Softmax": Ulps(4.0),
        "SoftmaxCrossEntropyWithLogits": Ulps(4.0, one=2.5),
        "Softplus": Ulps(4.0),
        "SoftplusGrad": Ulps(3.5),
        "Softsign": Ulps(1.5),
        "SoftsignGrad": Ulps(2.0),
        "SparseSoftmaxCrossEntropyWithLogits": Ulps(4.0, one=2.5),
        "SquaredDifference": Ulps(1.5),
        "StatelessRandomNormalV2": Ulps(4.0, one=8.0),
        "Tan": Ulps(3.0),
        "Tanh": Ulps(4.5),
        "TanhGrad": Ulps(1.5),
        "Xlog1py": Ulps(3.0),
        "Xlogy": Ulps(3.0),
    }
)

# Of which each result is a number rounded once, or one of the operands.
_ROUNDED_ONCE = """
    Abs Add AddV2 BiasAdd BiasAddV1 Cast Ceil ClipByValue Conj Div DivNoNan Floor FloorDiv FloorMod
    LeakyRelu LeakyReluGrad Max MaxPool MaxPool3D Maximum Min Minimum Mod Mul MulNoNan Neg RealDiv
    Relu Relu6 Relu6Grad ReluGrad Rint Round Sign Sqrt SqrtGrad Square StatelessRandomUniformV2 Sub
    TopKV2 TruncateDiv TruncateMod UnsortedSegmentMax UnsortedSegmentMin Xdivy
"""
ROUNDED_ONCE = frozenset(_ROUNDED_ONCE.split())

# Sums and products of any number of terms. Each term is moved by itself.
_OF_TERMS = """
    AddN AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad BatchMatMul BatchMatMulV2 BatchMatMulV3
    BiasAddGrad Conv2D Conv2DBackpropFilter Conv2DBackpropInput Conv3D Conv3DBackpropFilterV2
    Conv3DBackpropInputV2 Cumprod Cumsum DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter
    DepthwiseConv2dNativeBackpropInput Einsum L2Loss MatMul MaxPool3DGrad MaxPoolGrad Mean
    MirrorPadGrad Prod ScatterNd Sum TensorScatterAdd TensorScatterSub UnsortedSegmentProd
    UnsortedSegmentSum
"""
OF_TERMS = frozenset(_OF_TERMS.split())

_ONCE = Ulps()


def of(op: str) -> Ulps:
    """Of a TensorFlow op; one rounding where none is stated."""
    return STATED.get(op, _ONCE)


def halvings(op: str, operands: Sequence[Any]) -> float:
    """How often a sum is halved until one term is left: as many roundings does a term have."""
    if op == "AddN":
        return math.log2(len(operands))
    return math.log2(max(1, *(x.shape.num_elements() for x in operands)))
