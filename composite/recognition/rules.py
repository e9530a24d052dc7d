"""What ops compute, in forms: arithmetic, functions of elements, reductions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from composite.recognition.algebra import Algebra, Form
from composite.recognition.layouts import LAYOUTS
from composite.recognition.moving import reshaped
from composite.recognition.reading import Reader, Rule


def _of(function: Callable[..., Form]) -> Rule:
    """The rule of an op that is a function of the elements of its operands."""
    return lambda reader, op: function(reader.algebra, *map(reader.form, op.inputs))


def _same(kind: str) -> Rule:
    """The rule of an op that is an atom of its name."""
    return _of(lambda algebra, *args: algebra.applied(kind, (), args))


def _quotient(algebra: Algebra, x: Form, y: Form) -> Form:
    return algebra.product(x, algebra.power(y, -1.0))


def _sigmoid(algebra: Algebra, x: Form) -> Form:
    inverse = algebra.sum(algebra.one, algebra.exp(algebra.scaled(x, -1.0)))
    return algebra.power(inverse, -1.0)


def _softplus(algebra: Algebra, x: Form) -> Form:
    return algebra.log(algebra.sum(algebra.one, algebra.exp(x)))


def _log1p(algebra: Algebra, x: Form) -> Form:
    return algebra.log(algebra.sum(algebra.one, x))


def _expm1(algebra: Algebra, x: Form) -> Form:
    return algebra.difference(algebra.exp(x), algebra.one)


def _square(algebra: Algebra, x: Form) -> Form:
    return algebra.product(x, x)


def _pow(algebra: Algebra, x: Form, y: Form) -> Form:
    if y.number is not None:
        return algebra.power(x, y.number)
    return algebra.exp(algebra.product(y, algebra.log(x)))


def _max(algebra: Algebra, x: Form, y: Form) -> Form:
    return algebra.extreme("max", x, y)


def _min(algebra: Algebra, x: Form, y: Form) -> Form:
    return algebra.extreme("min", x, y)


def _relu(algebra: Algebra, x: Form) -> Form:
    return _max(algebra, x, algebra.zero)


def _relu6(algebra: Algebra, x: Form) -> Form:
    return _min(algebra, _relu(algebra, x), algebra.constant(6.0))


def _clip(algebra: Algebra, x: Form, low: Form, high: Form) -> Form:
    return _max(algebra, _min(algebra, x, high), low)


def _leaky_relu(reader: Reader, op: Any) -> Form | None:
    slope, x = op.get_attr("alpha"), reader.form(op.inputs[0])
    if not 0 <= slope <= 1:
        return None
    return _max(reader.algebra, x, reader.algebra.scaled(x, slope))


def _not(algebra: Algebra, x: Form) -> Form:
    return algebra.difference(algebra.one, x)


def _greater(algebra: Algebra, x: Form, y: Form) -> Form:
    return algebra.positive(algebra.difference(x, y))


def _less_equal(algebra: Algebra, x: Form, y: Form) -> Form:
    return _not(algebra, _greater(algebra, x, y))


def _or(algebra: Algebra, x: Form, y: Form) -> Form:
    return _not(algebra, algebra.product(_not(algebra, x), _not(algebra, y)))


def _select(algebra: Algebra, condition: Form, x: Form, y: Form) -> Form:
    return algebra.sum(algebra.product(condition, x), algebra.product(_not(algebra, condition), y))


def _elu(algebra: Algebra, x: Form) -> Form:
    return _select(algebra, algebra.positive(x), x, _expm1(algebra, x))


def _bias_add(reader: Reader, op: Any) -> Form:
    x, bias = op.inputs
    form, shape = reader.form(bias), reader.shape(bias)
    if op.get_attr("data_format") == b"NCHW":
        form = reshaped(reader.algebra, form, shape, (*shape, *[1] * (len(x.shape) - 2)))
    return reader.algebra.sum(reader.form(x), form)


def _cast(reader: Reader, op: Any) -> Form:
    """A cast that keeps values is none here; between floats, it says how precise sums are."""
    x = reader.form(op.inputs[0])
    to, source = op.outputs[0].dtype, op.inputs[0].dtype
    if to == source or not source.is_floating:
        return x
    return reader.algebra.applied("Cast", (to.name,), (x,))


def _axes(reader: Reader, op: Any) -> tuple[int, ...]:
    rank = len(reader.shape(op.inputs[0]))
    axes = {int(k) % rank for k in reader.known(op.inputs[1]).reshape(-1)}
    return tuple(sorted(k - rank for k in axes))


def _reduced(reader: Reader, op: Any, kept: Form, axes: tuple[int, ...]) -> Form:
    """A reduction that keeps its axes, without them where the op drops them."""
    shape = reader.shape(op.inputs[0])
    with_axes = tuple(1 if k - len(shape) in axes else n for k, n in enumerate(shape))
    return reshaped(reader.algebra, kept, with_axes, reader.shape(op.outputs[0]))


def _mean(reader: Reader, op: Any) -> Form:
    axes = _axes(reader, op)
    return _reduced(reader, op, reader.algebra.mean(reader.form(op.inputs[0]), axes), axes)


def _sum(reader: Reader, op: Any) -> Form:
    shape, axes = reader.shape(op.inputs[0]), _axes(reader, op)
    mean = reader.algebra.mean(reader.form(op.inputs[0]), axes)
    count = math.prod(shape[k] for k in axes)
    return _reduced(reader, op, reader.algebra.scaled(mean, count), axes)


def _reduction(reader: Reader, op: Any) -> Form:
    """A reduction that is no sum."""
    shape, axes = reader.shape(op.inputs[0]), _axes(reader, op)
    kept = tuple(1 if k - len(shape) in axes else n for k, n in enumerate(shape))
    form = reader.algebra.atom(f"over {op.type}", axes, (reader.form(op.inputs[0]),), kept)
    return _reduced(reader, op, form, axes)


def _log_sum_exp(reader: Reader, tensor: Any) -> Form:
    """Over the last axis, which is kept."""
    algebra, shape = reader.algebra, reader.shape(tensor)
    mean = algebra.mean(algebra.exp(reader.form(tensor)), (-1,))
    return algebra.log(algebra.scaled(mean, shape[-1]))


def _log_softmax(reader: Reader, op: Any) -> Form:
    return reader.algebra.difference(reader.form(op.inputs[0]), _log_sum_exp(reader, op.inputs[0]))


def _softmax(reader: Reader, op: Any) -> Form:
    return reader.algebra.exp(_log_softmax(reader, op))


def _cross_entropy(reader: Reader, op: Any) -> list[Form]:
    algebra, (logits, labels) = reader.algebra, op.inputs
    likely = algebra.difference(reader.form(logits), _log_sum_exp(reader, logits))
    shape = reader.shape(logits)
    mean = algebra.mean(algebra.product(reader.form(labels), likely), (-1,))
    loss = algebra.scaled(mean, -shape[-1])
    return [reshaped(algebra, loss, (*shape[:-1], 1), shape[:-1])]


def _batch_norm(reader: Reader, op: Any) -> list[Form] | None:
    """The inference of a batch norm; in training, it is what it is."""
    if op.get_attr("is_training"):
        return None
    algebra = reader.algebra
    x, *of_channels = map(reader.form, op.inputs)
    if op.get_attr("data_format") == b"NCHW":
        shapes = [reader.shape(one) for one in op.inputs[1:]]
        pairs = zip(of_channels, shapes, strict=True)
        of_channels = [reshaped(algebra, one, n, (*n, 1, 1)) for one, n in pairs]
    scale, offset, mean, variance = of_channels
    epsilon = algebra.constant(op.get_attr("epsilon"))
    factor = algebra.product(scale, algebra.power(algebra.sum(variance, epsilon), -0.5))
    return [algebra.sum(algebra.product(algebra.difference(x, mean), factor), offset)]


RULES: dict[str, Rule] = {
    **LAYOUTS,
    **dict.fromkeys(("Add", "AddV2", "AddN"), _of(Algebra.sum)),
    "BiasAdd": _bias_add,
    "Sub": _of(Algebra.difference),
    "Mul": _of(Algebra.product),
    "RealDiv": _of(_quotient),
    "Neg": _of(lambda algebra, x: algebra.scaled(x, -1.0)),
    "Square": _of(_square),
    "SquaredDifference": _of(lambda algebra, x, y: _square(algebra, algebra.difference(x, y))),
    "Sqrt": _of(lambda algebra, x: algebra.power(x, 0.5)),
    "Rsqrt": _of(lambda algebra, x: algebra.power(x, -0.5)),
    **dict.fromkeys(("Reciprocal", "Inv"), _of(lambda algebra, x: algebra.power(x, -1.0))),
    "Pow": _of(_pow),
    "Exp": _of(Algebra.exp),
    "Expm1": _of(_expm1),
    "Log": _of(Algebra.log),
    "Log1p": _of(_log1p),
    "Sigmoid": _of(_sigmoid),
    "Softplus": _of(_softplus),
    "Softsign": _of(
        lambda algebra, x: _quotient(
            algebra, x, algebra.sum(algebra.one, algebra.applied("Abs", (), (x,)))
        )
    ),
    "Erfc": _of(lambda algebra, x: _not(algebra, algebra.applied("Erf", (), (x,)))),
    **{
        kind: _same(kind)
        for kind in (
            *("Tanh", "Erf", "Abs", "Sin", "Cos", "Tan", "Sign", "Floor", "Round", "Rint"),
            *("FloorDiv", "FloorMod"),
        )
    },
    "Equal": _of(lambda algebra, x, y: algebra.applied("Equal", (), (algebra.difference(x, y),))),
    "Relu": _of(_relu),
    "Relu6": _of(_relu6),
    "LeakyRelu": _leaky_relu,
    "Elu": _of(_elu),
    "Maximum": _of(_max),
    "Minimum": _of(_min),
    "ClipByValue": _of(_clip),
    "Greater": _of(_greater),
    "Less": _of(lambda algebra, x, y: _greater(algebra, y, x)),
    "LessEqual": _of(_less_equal),
    "GreaterEqual": _of(lambda algebra, x, y: _less_equal(algebra, y, x)),
    "LogicalNot": _of(_not),
    "LogicalAnd": _of(Algebra.product),
    "LogicalOr": _of(_or),
    **dict.fromkeys(("Select", "SelectV2"), _of(_select)),
    "ZerosLike": _of(lambda algebra, _: algebra.zero),
    "OnesLike": _of(lambda algebra, _: algebra.one),
    "Cast": _cast,
    "Mean": _mean,
    "Sum": _sum,
    **dict.fromkeys(("Max", "Min", "Prod", "All", "Any"), _reduction),
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _batch_norm),
}
