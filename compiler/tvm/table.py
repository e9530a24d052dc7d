"""The one table of TF ops that a kernel can be made of.

Names only: importable without TVM, because the runtime is told the names when it starts. A family
is a module of :mod:`.lower` whose ``LOWERINGS`` maps each of its names to a function. To add an
op: write its function in its family and add its name here (a test compares the two).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from composite.compiler.tvm.ir.graph import Tensor
from composite.compiler.tvm.read.node import OpNode

Lowering = Callable[[OpNode, list[Tensor]], list[Tensor]]

FAMILIES: dict[str, str] = {
    "activation": """Relu Relu6 LeakyRelu Elu Selu Softplus Softsign Sigmoid Tanh
        ReluGrad Relu6Grad LeakyReluGrad EluGrad SeluGrad SoftplusGrad SoftsignGrad TanhGrad
        SigmoidGrad""",
    "arithmetic": """Add AddV2 Sub Mul RealDiv Div DivNoNan MulNoNan FloorDiv FloorMod Maximum
        Minimum Pow SquaredDifference AddN BiasAdd BiasAddV1 ClipByValue Xlogy Xdivy Xlog1py""",
    "comparison": """Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr
        LogicalNot Select SelectV2 IsNan IsInf IsFinite""",
    "contraction": "MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3",
    "convolution": """Conv2D DepthwiseConv2dNative Conv2DBackpropInput Conv2DBackpropFilter""",
    "data": """Const Identity Cast ZerosLike OnesLike Fill BroadcastTo Tile Reshape ExpandDims
        Squeeze Transpose StopGradient PreventGradient Snapshot EnsureShape""",
    "joining": """Concat ConcatV2 ConcatOffset Pack Pad PadV2 MirrorPad MirrorPadGrad
        StridedSliceGrad""",
    "normalization": "FusedBatchNormV3 FusedBatchNormGradV3",
    "pooling": "MaxPool AvgPool MaxPoolGrad AvgPoolGrad",
    "reduction": "Sum Mean Max Min Prod All Any L2Loss ArgMax ArgMin BiasAddGrad",
    "scanning": "Cumsum Cumprod CumulativeLogsumexp",
    "scattering": "UnsortedSegmentSum ScatterNd",
    "softmax": """Softmax LogSoftmax SoftmaxCrossEntropyWithLogits
        SparseSoftmaxCrossEntropyWithLogits""",
    "lists": """TensorListReserve TensorListFromTensor TensorListSetItem TensorListGetItem
        TensorListStack TensorListLength TensorListElementShape EmptyTensorList
        TensorListPushBack TensorListPopBack""",
    "slicing": "Slice StridedSlice Reverse ReverseV2 Split SplitV Unpack",
    "gathering": "Gather GatherV2 GatherNd OneHot",
    "static": """Shape ShapeN Size Rank Range BroadcastArgs
        BroadcastGradientArgs ListDiff DynamicStitch InvertPermutation""",
    "unary": """Conj Neg Abs Sign Square Sqrt Rsqrt Reciprocal Inv Exp Expm1 Log Log1p Erf Erfc
        Floor Ceil Round Rint Sin Cos Tan SqrtGrad RsqrtGrad ReciprocalGrad InvGrad""",
}

# What an op is refused for besides the dtype of its data, where that is not plain: for the docs.
LIMITS: dict[str, str] = {
    "AvgPool": "NHWC",
    "BatchMatMulV3": "one dtype for both factors and the product",
    "BroadcastArgs": "known sizes",
    "BroadcastGradientArgs": "known sizes",
    "Cast": "no `Truncate`",
    "Concat": "at most 64 tensors",
    "ConcatOffset": "known sizes",
    "ConcatV2": "at most 64 tensors",
    "Conj": "may stand where it is not reached, as in `tf.matmul` for complex numbers",
    "Const": "at most 4096 elements, unless all are equal",
    "Conv2D": "NHWC, filters of known size",
    "CumulativeLogsumexp": "NaN stays NaN (TensorFlow loses some)",
    "DepthwiseConv2dNative": "NHWC, filters of known size",
    "Div": "integers: known sizes",
    "DynamicStitch": "known sizes",
    "FloorDiv": "integers: known sizes",
    "FloorMod": "integers: known sizes",
    "FusedBatchNormGradV3": "NHWC",
    "FusedBatchNormV3": "NHWC, no `exponential_avg_factor`",
    "GatherNd": "indices of known depth",
    "InvertPermutation": "known sizes",
    "ListDiff": "known sizes",
    "MaxPool": "NHWC",
    "Mean": "over dimensions of known size",
    "Pack": "at most 64 tensors",
    "Range": "known integers",
    "Slice": "begin and size known",
    "TensorListFromTensor": "no scalars",
    "TensorListGetItem": "in a loop that sets elements, before it sets the same one",
    "TensorListPopBack": "in a loop, one a trip",
    "TensorListPushBack": "in a loop, one a trip",
    "TensorListReserve": "elements of known rank",
    "TensorListSetItem": "in a loop, one a trip",
    "TensorListStack": "behind the loop that sets the elements",
    "Split": "along a dimension that is known to divide",
    "Squeeze": "without axes: known dims",
    "StridedSlice": "begin, end and strides known",
}

# TF ops that call a function; they vanish when the function is read.
CALLS: frozenset[str] = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
# TF's loops, which become loops within a kernel where the trips can be counted beforehand.
LOOPS: frozenset[str] = frozenset({"While", "StatelessWhile"})
_FAMILY_OF: dict[str, str] = {n: family for family, ns in FAMILIES.items() for n in ns.split()}

NAMES: frozenset[str] = frozenset(_FAMILY_OF) | CALLS | LOOPS
"""Every TF op that a kernel may hold (some only for certain dtypes, attributes or shapes)."""


def lowering(op: str) -> Lowering | None:
    """Return the function that lowers the op, or None if it is not in the table."""
    family = _FAMILY_OF.get(op)
    if family is None:
        return None
    return import_module(f".lower.{family}", __package__).LOWERINGS[op]
