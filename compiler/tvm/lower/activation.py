"""Activations and their gradients, with TF's treatment of NaN."""

from __future__ import annotations

from tvm import tirx

from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Body, Expr, Tensor
from composite.compiler.tvm.lower.unary import FLOATS, NUMBERS, gradient, unary
from composite.compiler.tvm.math import elementary as math
from composite.compiler.tvm.math.numeric import absolute, choose, like, neg
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


def relu(_: Block, x: Expr) -> Expr:
    """Return max(x, 0); NaN stays, as in TF."""
    return choose(x < like(0, x), like(0, x), x)


def relu6(_: Block, x: Expr) -> Expr:
    """Return min(max(x, 0), 6); NaN stays, as in TF."""
    x = choose(x < like(0, x), like(0, x), x)
    return choose(x > like(6, x), like(6, x), x)


def _leaky(alpha: float) -> Body:
    return lambda _, x: choose(x > like(0.0, x), x, x * like(alpha, x))


def _leaky_grad(alpha: float) -> Body:
    return lambda _, dy, x: choose(x > like(0.0, x), dy, dy * like(alpha, dy))


def _lower_leaky(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower LeakyRelu and its gradient, whose slope is an attribute."""
    make = _leaky if node.op == "LeakyRelu" else _leaky_grad
    node.require(inputs[0].dtype, *FLOATS)
    body = make(node.real("alpha", 0.2))
    return [pointwise(node.op, body, tuple(inputs), inputs[0].dtype, cost=3)]


def _elu(block: Block, x: Expr) -> Expr:
    return choose(x < like(0.0, x), math.expm1(block, x), x)


def _selu(block: Block, x: Expr) -> Expr:
    negative = like(_SELU_SCALE_ALPHA, x) * math.expm1(block, x)
    return choose(x < like(0.0, x), negative, like(_SELU_SCALE, x) * x)


def _softsign(block: Block, x: Expr) -> Expr:
    return x / (absolute(block, x) + like(1.0, x))


def _relu_grad(_: Block, dy: Expr, x: Expr) -> Expr:
    # A product, as TensorFlow has it: a NaN or an infinity gets through where the unit is off.
    return dy * choose(x > like(0, x), like(1, dy), like(0, dy))


def _relu6_grad(_: Block, dy: Expr, x: Expr) -> Expr:
    inside = tirx.And(x > like(0, x), x < like(6, x))
    return dy * choose(inside, like(1, dy), like(0, dy))


def _elu_grad(_: Block, dy: Expr, y: Expr) -> Expr:
    return choose(y < like(0.0, y), (y + like(1.0, y)) * dy, dy)


def _selu_grad(_: Block, dy: Expr, y: Expr) -> Expr:
    slope = choose(y < like(0.0, y), y + like(_SELU_SCALE_ALPHA, y), like(_SELU_SCALE, y))
    return dy * slope


def _softplus_grad(block: Block, dy: Expr, x: Expr) -> Expr:
    return dy / (math.exp(block, block.let(neg(block, x))) + like(1.0, x))


def _softsign_grad(block: Block, dy: Expr, x: Expr) -> Expr:
    size = block.let(like(1.0, x) + absolute(block, x))
    return dy / (size * size)


def _tanh_grad(_: Block, y: Expr, dy: Expr) -> Expr:
    return dy * (like(1.0, y) - y * y)


def _sigmoid_grad(_: Block, y: Expr, dy: Expr) -> Expr:
    return dy * y * (like(1.0, y) - y)


LOWERINGS = {
    "Relu": unary(relu, dtypes=NUMBERS),
    "Relu6": unary(relu6, cost=2, dtypes=NUMBERS),
    "LeakyRelu": _lower_leaky,
    "LeakyReluGrad": _lower_leaky,
    "Elu": unary(_elu, cost=20),
    "Selu": unary(_selu, cost=22),
    "Softplus": unary(math.softplus, cost=50),
    "Softsign": unary(_softsign, cost=8),
    "Sigmoid": unary(math.sigmoid, cost=26),
    "Tanh": unary(math.tanh, cost=30),
    "ReluGrad": gradient(_relu_grad),
    "Relu6Grad": gradient(_relu6_grad),
    "EluGrad": gradient(_elu_grad),
    "SeluGrad": gradient(_selu_grad),
    "SoftplusGrad": gradient(_softplus_grad, cost=26),
    "SoftsignGrad": gradient(_softsign_grad, cost=8),
    "TanhGrad": gradient(_tanh_grad),
    "SigmoidGrad": gradient(_sigmoid_grad),
}
