"""Gradients of element-wise chains as one product: which are, and that they are the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from composite.autodiff import factors
from composite.ops import functions
from tests.composite.autodiff.test_residuals import assert_like_python, step, tensors

CHAINS = {
    "gelu": tf.nn.gelu,
    "gelu by tanh": lambda x: tf.nn.gelu(x, True),
    "swish": lambda x: x * tf.sigmoid(x),
    "mish": lambda x: x * tf.tanh(tf.math.softplus(x)),
    "tanh of a quotient": lambda x: tf.tanh(x / 3.0) - x,
    "softsign": lambda x: tf.exp(tf.nn.softsign(x)),
    "three terms": lambda x: tf.exp(x) + x * tf.sin(x) + tf.tanh(x) * 0.5,
}


def gradient_graph(
    chain: Callable[[Any], Any], shape: list[int | None], dtype: tf.DType = tf.float64
) -> tuple[Any, ...]:
    """A graph of a chain and its gradient: itself, x, g, the forward's nodes, the gradient."""
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(dtype, shape, "x")
        y = chain(x)
        forward = {op.name for op in graph.get_operations()}
        g = tf.compat.v1.placeholder(dtype, shape, "g")
        (found,) = tf.gradients(y, x, grad_ys=g)
    return graph, x, g, forward, found


def found_in(chain: Callable[[Any], Any], *shape: int | None, dtype: Any = tf.float64) -> int:
    graph, _, _, forward, gradient = gradient_graph(chain, list(shape), dtype)
    return len(factors.of_chains(graph, forward, {gradient.name}))


@pytest.mark.parametrize("name", CHAINS)
def test_the_product_is_the_gradient(name: str) -> None:
    graph, x, g, forward, gradient = gradient_graph(CHAINS[name], [7, 5])
    found = factors.of_chains(graph, forward, {gradient.name})
    assert found, "no factor"
    made = functions.imported(factors.multiplied(graph.as_graph_def(), found))
    random = np.random.default_rng(0)
    fed = {t.name: random.normal(size=(7, 5)) for t in (x, g)}
    with tf.compat.v1.Session(graph=graph) as session:
        wanted = session.run(gradient.name, fed)
    product = next(one.product for one in found if one.gradient == gradient.name)
    with tf.compat.v1.Session(graph=made) as session:
        np.testing.assert_allclose(session.run(product, fed), wanted, rtol=1e-12, atol=1e-12)
        # The factor is made of the forward alone: nothing has to come in for it.
        session.run([one.factor for one in found], {x.name: fed[x.name]})


@pytest.mark.parametrize(
    ("chain", "shape", "dtype"),
    [
        pytest.param(lambda x: x * x * 3.0, (7, 5), tf.float32, id="cheap"),
        pytest.param(lambda x: tf.tanh(tf.nn.relu(x)), (7, 5), tf.float32, id="a choice"),
        pytest.param(tf.nn.gelu, (None, 5), tf.float32, id="an unknown size"),
        pytest.param(tf.nn.gelu, (7, 5), tf.float16, id="a product may overflow"),
        pytest.param(
            lambda x: x + tf.exp(tf.reduce_sum(x, 1, keepdims=True)),
            (7, 5),
            tf.float32,
            id="a reduction",
        ),
        pytest.param(
            lambda x: x * tf.add_n([tf.sin(x * k) for k in range(40)]),
            (7, 5),
            tf.float32,
            id="long",
        ),
    ],
)
def test_other_chains_stay(chain: Any, shape: Any, dtype: tf.DType) -> None:
    assert found_in(chain, *shape, dtype=dtype) == 0


@Composite("FactorMlp", inputs=["x: T", "v: T", "w: T"], derived_attrs=["T: {float, double}"],
           outputs=["y: T"])  # fmt: skip
def mlp(x, v, w):
    """A GELU between two products."""
    return tf.matmul(tf.nn.gelu(tf.matmul(x, v)), w)


def test_a_forward_keeps_the_factor_and_what_a_product_reads() -> None:
    """So the backward computes no erfc again, and reads no more than before."""
    inputs = tensors([6, 16], [16, 64], [64, 5])
    kept = composite.explain(mlp, *inputs).gradient
    assert kept == "keeps Mul (6, 64), a gradient's factor (6, 64); computes nothing again"


@pytest.mark.parametrize("backend", ["auto", "tf"])
def test_a_step_is_right(backend: str) -> None:
    inputs = tensors([6, 16], [16, 64], [64, 5])
    with composite.options(backend=backend):
        traced = tf.function(step)
        for _ in range(2):
            assert_like_python(mlp, inputs, traced(mlp, *inputs))
            composite.wait()


def test_the_gradient_of_a_product_with_a_factor() -> None:
    x, v, w = (tf.cast(t, tf.float64) for t in tensors([3, 8], [8, 40], [40, 2]))

    def second(op: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(v)
            slope = step(op, x, v, w)[1][1]
            loss = tf.reduce_sum(slope * slope)
        return outer.gradient(loss, v)

    found = tf.function(lambda: second(mlp))()
    np.testing.assert_allclose(found, second(mlp.python_function), rtol=1e-8)
