"""Compositions of elementary functions that have a body of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from composite.compiler.tvm.ir.tensor import Pointwise, Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.passes.identities import compose_elementary
from composite.compiler.tvm.read.reader import read_function
from composite.compiler.tvm.show import show
from composite.compiler.tvm.target import Target
from tests.compiler.tvm.conftest import library_of


def mish(x: Any) -> Any:
    return x * tf.tanh(tf.nn.softplus(x))


def ops(function: Any, x: Any) -> list[str]:
    read = read_function(library_of(function, [x]), [x.shape])
    return [op_of(t) for t in topological(compose_elementary(read).outputs) if op_of(t)]


def op_of(tensor: Tensor) -> str:
    return tensor.node.op if isinstance(tensor.node, Pointwise) else ""


X = np.random.default_rng(0).normal(0, 8, (33, 21)).astype(np.float32)


def test_mish_takes_one_exponential() -> None:
    assert ops(mish, X) == ["Tanh(Softplus)", "Mul"]


def test_the_slope_of_erfc_takes_no_square() -> None:
    assert ops(lambda x: tf.exp(-tf.square(x)), X) == ["Exp(Neg(Square))"]


def test_other_compositions_stay() -> None:
    assert ops(lambda x: tf.nn.softplus(tf.tanh(x)), X) == ["Tanh", "Softplus"]


def test_mish_and_its_gradient_are_tensorflows(compiler: Any) -> None:
    def both(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = mish(x)
        return y, tape.gradient(y, x)

    compiler.compare(both, X, rtol=1e-5, atol=1e-6)


def test_a_gelu_and_its_slope_take_one_exponential() -> None:
    """LLVM finds that both take the same: no second polynomial of eight coefficients."""

    def slope(x: Any) -> Any:
        return tf.math.erfc(x) + tf.exp(-tf.square(x))

    texts = [instructions(f) for f in (tf.math.erfc, slope)]
    multiplied = [text.count("vfmadd") for text in texts]
    assert multiplied[0] == multiplied[1]


def instructions(function: Any) -> str:
    library = library_of(function, [tf.TensorSpec([64])])
    return show(library, [[64]], "asm", Target.of("x86-64-v3", 1))
