"""Derivatives of higher orders, in each way that TensorFlow composes them, in float64.

Each is compared with the same computation over the Python function.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.composite import gradient_ops as ops

pytestmark = [pytest.mark.many_cases, pytest.mark.usefixtures("expansions_only")]

RANDOM = np.random.default_rng(2)
X, W = (tf.constant(RANDOM.uniform(0.3, 1.2, (3, 2))) for _ in range(2))
V = [tf.constant(RANDOM.standard_normal((3, 2))) for _ in range(2)]
INDICES = [0, 2, 0]
ZERO = tf.UnconnectedGradients.ZERO

# Op and Python function of two float64 tensors, and the tensors.
BODIES = {
    "tanh": (ops.tanh, ops.tanh.python_function, X, W),
    "two outputs": (ops.two, ops.two.python_function, X, W),
    "stop_gradient": (ops.stop, ops.stop.python_function, X, W),
    "then": (ops.branch, ops.branch.python_function, X, W),
    "else": (ops.branch, ops.branch.python_function, -X, W),
    "while": (ops.loop, ops.loop.python_function, X, W),
    "list": (
        lambda x, w: ops.listed([x, w], 3),
        lambda x, w: ops.listed.python_function([x, w], tf.constant(3)),
        X,
        W,
    ),
    "types": (
        lambda x, w: ops.types([x, 3]) * w,
        lambda x, w: ops.types.python_function([x, tf.constant(3)]) * w,
        X,
        W,
    ),
    "gather": (
        lambda x, w: ops.gather(x, INDICES) * w,
        lambda x, w: ops.gather.python_function(x, tf.constant(INDICES)) * w,
        X,
        W,
    ),
}


def forward(function, inputs):
    """The directional derivative along V."""
    with tf.autodiff.ForwardAccumulator(list(inputs), V) as accumulator:
        outputs = function(*inputs)
    return [accumulator.jvp(y, ZERO) for y in tf.nest.flatten(outputs)]


def reverse(function, inputs):
    """The gradient of the sum of the sines of the outputs: no seed is a constant."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = [tf.sin(y) for y in tf.nest.flatten(function(*inputs))]
    return tape.gradient(outputs, inputs, unconnected_gradients=ZERO)


def along(gradients):
    return [tf.reduce_sum(g * v) for g, v in zip(gradients, V, strict=True)]


def forward_over_reverse(function, inputs):
    return forward(lambda *i: reverse(function, i), inputs)


def reverse_over_forward(function, inputs):
    return reverse(lambda *i: forward(function, i), inputs)


def reverse_over_reverse(function, inputs):
    return reverse(lambda *i: along(reverse(function, i)), inputs)


def forward_over_forward(function, inputs):
    return forward(lambda *i: forward(function, i), inputs)


def third(function, inputs):
    return reverse(lambda *i: along(reverse_over_reverse(function, i)), inputs)


def third_with_forward(function, inputs):
    return reverse(lambda *i: along(reverse_over_forward(function, i)), inputs)


def jacobian(function, inputs):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        outputs = tf.nest.flatten(function(*inputs))
    return [tape.jacobian(y, inputs, unconnected_gradients=ZERO) for y in outputs]


def hessian(function, inputs, vectorized=True):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        gradients = reverse(function, inputs)
    return [
        tape.jacobian(g, inputs, unconnected_gradients=ZERO, experimental_use_pfor=vectorized)
        for g in gradients
    ]


def hessian_in_a_loop(function, inputs):
    """Without vectorizing: TensorFlow cannot do that with the second gradient of an If."""
    return hessian(function, inputs, vectorized=False)


def recomputed(function, inputs):
    return reverse(tf.recompute_grad(function), inputs)


def run(way, body, how):
    """The arrays that a way gives for the op, called `how`, and for the Python function."""
    op, python, *inputs = BODIES[body]
    expected = arrays(way(python, inputs))
    if how == "eager":
        return arrays(way(op, inputs)), expected
    unknown = how == "unknown shapes"
    specs = [tf.TensorSpec(None if unknown else x.shape, x.dtype) for x in inputs]
    traced = tf.function(lambda *i: way(op, i), input_signature=specs, autograph=False)
    return arrays(traced(*inputs)), expected


def arrays(values):
    return [tf.convert_to_tensor(value).numpy() for value in tf.nest.flatten(values)]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


HOW = ["eager", "unknown shapes"]
STRAIGHT = [body for body in BODIES if body not in ("then", "else", "while")]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("way", [reverse, forward, recomputed, reverse_over_reverse])
def test_orders_of_every_body(way, body, how):
    assert_same(*run(way, body, how))


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("body", ["two outputs", "gather"])
@pytest.mark.parametrize("way", [reverse_over_forward, third])
def test_more_orders(way, body, how):
    assert_same(*run(way, body, how))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("body", ["tanh", "two outputs", "stop_gradient", "list", "types"])
def test_forward_over_reverse(body, how):
    assert_same(*run(forward_over_reverse, body, how))


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("body", ["then", "while"])
@pytest.mark.parametrize("way", [forward_over_reverse, jacobian, hessian_in_a_loop])
def test_orders_through_control_flow(way, body, how):
    assert_same(*run(way, body, how))


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("way", [forward_over_forward, third_with_forward])
def test_nested_accumulators(way, how):
    assert_same(*run(way, "tanh", how))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("body", STRAIGHT)
def test_jacobians(body, how):
    assert_same(*run(jacobian, body, how))


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("body", ["tanh", "two outputs"])
def test_hessians(body, how):
    assert_same(*run(hessian, body, how))
