"""The table of how far functions may be off, against TensorFlow's ops and what kernels state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import op_traits
from composite.compiler.tvm import table
from composite.compiler.tvm.math.accuracy import BOUNDS
from composite.ops import call
from composite.reference import ulps
from composite.reference.floats import Rounder

raw = tf.raw_ops
EPS = 2.0**-23
COUNT = 100_000
RANDOM = np.random.default_rng(0)

# Whose results are no floating numbers, or integers alone.
OF_INTEGERS = """
    All Any ArgMax ArgMin BroadcastArgs BroadcastGradientArgs ConcatOffset Equal Greater
    GreaterEqual InvertPermutation IsFinite IsInf IsNan Less LessEqual ListDiff LogicalAnd
    LogicalNot LogicalOr NotEqual OptionalNone StatelessRandomGetKeyCounter
    StatelessRandomUniformIntV2
"""


def test_each_op_that_computes_floats_is_stated() -> None:
    computing = {
        op for ops in table.FAMILIES.values() for op in ops if not op_traits.of(op).moves_data
    }
    kinds = [set(ulps.STATED), set(ulps.ROUNDED_ONCE), set(ulps.OF_TERMS), set(OF_INTEGERS.split())]
    assert computing == set().union(*kinds)
    assert len(computing) == sum(map(len, kinds))  # one kind each


def test_what_kernels_state_is_within_the_table() -> None:
    ops = {name: {"power": "Pow"}.get(name, name.capitalize()) for name in BOUNDS}
    stated = {name: op for name, op in ops.items() if op in ulps.STATED}
    assert len(stated) > 10
    for name, op in stated.items():
        bound = BOUNDS[name]
        assert ulps.of(op).result >= max(bound.float32, bound.unfused), name


def numbers(kind: str) -> np.ndarray:
    mixed = np.exp(RANDOM.uniform(-20, 20, COUNT)) * RANDOM.choice([-1.0, 1.0], COUNT)
    near = RANDOM.standard_normal(COUNT) * 3
    drawn = np.where(RANDOM.random(COUNT) < 0.7, near, mixed)
    if kind == "positive":
        drawn = np.abs(drawn)
    if kind == "share":
        drawn = RANDOM.uniform(1e-3, 1 - 1e-3, COUNT)
    if kind == "activation":
        drawn = np.maximum(drawn, -0.999)
    return drawn.astype(np.float32)


def by_name(op: str, *names: str, **attrs: Any) -> Callable[..., Any]:
    def function(*operands: Any) -> Any:
        return getattr(raw, op)(**dict(zip(names, operands, strict=True)), **attrs)

    return function


ANY, POSITIVE, SHARE, ACTIVATION = "any", "positive", "share", "activation"
TABLE = (
    ("Atan Cos Erf Erfc Exp Expm1 Inv Reciprocal Sigmoid Sin Tan Tanh", ("x",), (ANY,)),
    ("Elu Selu Softplus Softsign", ("features",), (ANY,)),
    ("Log Log1p Rsqrt", ("x",), (POSITIVE,)),
    ("InvGrad ReciprocalGrad RsqrtGrad", ("y", "dy"), (POSITIVE, ANY)),
    ("SigmoidGrad TanhGrad", ("y", "dy"), (SHARE, ANY)),
    ("SoftplusGrad SoftsignGrad", ("features", "gradients"), (ANY, ANY)),
    ("EluGrad SeluGrad", ("outputs", "gradients"), (ACTIVATION, ANY)),
    ("Xlog1py Xlogy", ("x", "y"), (ANY, POSITIVE)),
    ("Atan2", ("y", "x"), (ANY, ANY)),
    ("SquaredDifference", ("x", "y"), (ANY, ANY)),
    ("Pow", ("x", "y"), (POSITIVE, ACTIVATION)),
)
CASES = {op: (names, kinds) for ops, names, kinds in TABLE for op in ops.split()}
ROWS = {
    "Softmax": ("logits",),
    "LogSoftmax": ("logits",),
    "SoftmaxCrossEntropyWithLogits": ("features", "labels"),
}
OTHERS = """
CumulativeLogsumexp FusedBatchNormGradV3 FusedBatchNormV3 Range ResizeBilinear
SparseSoftmaxCrossEntropyWithLogits StatelessRandomNormalV2
"""


def check(op: str, function: Callable[..., Any], arrays: list[np.ndarray]) -> None:
    """TensorFlow's results are within what is stated, as if the operands were rounded once."""
    wide = [x.astype(np.float64) for x in arrays]

    def run(operands: list[np.ndarray]) -> list[np.ndarray]:
        results = tf.nest.flatten(function(*map(tf.constant, operands)))
        return [y.numpy().astype(np.float64) for y in results]

    exact, found = run(wide), run(arrays)
    moved = [run([x * (1 + EPS * up) for x in wide]) for up in (1, -1)]
    result, one = ulps.of(op)
    for y, z, *near in zip(found, exact, *moved, strict=True):
        known = (np.abs(z) > 1e-30) & (np.abs(z) < 1e30)
        size = np.abs(z[known])
        assert size.size
        allowed = EPS * (result * size + one) + sum(np.abs(x[known] - z[known]) for x in near)
        off = np.abs(y[known] - z[known]) - allowed
        at = int(off.argmax())
        assert off[at] <= 0, [x[known][at] for x in arrays if x.shape == z.shape]


@pytest.mark.parametrize("op", CASES)
def test_tensorflows_functions_are_within_the_table(op: str) -> None:
    names, kinds = CASES[op]
    check(op, by_name(op, *names), [numbers(kind) for kind in kinds])


@pytest.mark.parametrize("op", ROWS)
def test_tensorflows_softmaxes_are_within_the_table(op: str) -> None:
    logits = RANDOM.standard_normal((2000, 32)) * RANDOM.choice([1.0, 4.0, 10.0], (2000, 1))
    labels = RANDOM.dirichlet(np.ones(32), 2000)
    arrays = [x.astype(np.float32) for x in (logits, labels)]
    check(op, by_name(op, *ROWS[op]), arrays[: len(ROWS[op])])


def test_no_entry_is_left_untested() -> None:
    assert set(ulps.STATED) == CASES.keys() | ROWS.keys() | set(OTHERS.split())
    assert all(call.op_def(op) is not None for op in (*ulps.ROUNDED_ONCE, *ulps.OF_TERMS))


def test_results_are_moved_by_what_is_stated() -> None:
    y = np.array([1.0, -2.0, 0.0] * 500, np.float32)
    moves = np.abs(Rounder(0)(y, ulps.of("Tanh")) - y) / (EPS * np.abs(y).clip(1))
    np.testing.assert_allclose(moves.reshape(-1, 3).max(0), [4.5, 4.5, 0], atol=0.51)
    elu = Rounder(0)(y, ulps.of("Elu")) - y
    assert (np.abs(elu.reshape(-1, 3)[:, 2]) == EPS).all()  # e^x is rounded before 1 is taken off


@pytest.mark.parametrize("dtype", [tf.half, tf.bfloat16])
def test_functions_of_sixteen_bits_are_rounded_once(dtype: tf.DType) -> None:
    y = np.ones(100, dtype.as_numpy_dtype)
    once, stated = Rounder(0)(y), Rounder(0)(y, ulps.of("Tanh"))
    np.testing.assert_array_equal(once, stated)
