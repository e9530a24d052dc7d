"""The convolutional network: its layers beside tf.nn, its training beside the same without them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import composite
from examples.convnet.model import COMPOSITES, PLAIN, ConvNet, accuracy, train
from examples.convnet.ops import fused_conv2d, fused_max_pool2d
from examples.digits.model import Digits
from examples.digits.ops import fused_fully_connected
from tests.conftest import no_compiling

pytestmark = pytest.mark.many_cases

ACTIVATIONS = {"": tf.identity, "RELU": tf.nn.relu, "RELU6": tf.nn.relu6, "TANH": tf.tanh}
PADDINGS = ("SAME", "VALID")
DTYPES = (tf.float32, tf.float64, tf.float16, tf.bfloat16)


def normal(shape: Any, seed: int, dtype: tf.DType = tf.float64) -> Any:
    return tf.cast(np.random.default_rng(seed).standard_normal(shape) * 3, dtype)


def check(ours: Any, theirs: Any, inputs: list[Any], rtol: float = 1e-12) -> None:
    """The same values, and the same gradients for every input."""
    results = []
    for function in (ours, theirs):
        with composite.options(backend="tf"), tf.GradientTape() as tape:
            tape.watch(inputs)
            y = function(*inputs)
        results.append([y, *tape.gradient(y, inputs, normal(y.shape, 9, y.dtype))])
    for a, b in zip(*results, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(tf.cast(a, tf.float64), tf.cast(b, tf.float64), rtol, rtol)


windows = st.tuples(st.integers(1, 3), st.integers(1, 3))


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    act=st.sampled_from(sorted(ACTIVATIONS)),
    padding=st.sampled_from(PADDINGS),
    filters=windows,
    steps=windows,
    dilated=st.booleans(),
)
def test_convolution(act: str, padding: str, filters: Any, steps: Any, *, dilated: bool) -> None:
    strides, dilations = ((1, 1), steps) if dilated else (steps, (1, 1))

    def ours(x: Any, w: Any, b: Any) -> Any:
        rates = dict(zip(("stride_h", "stride_w"), strides, strict=True))
        rates |= dict(zip(("dilation_h", "dilation_w"), dilations, strict=True))
        return fused_conv2d(x, w, b, **rates, padding=padding, act=act)

    def theirs(x: Any, w: Any, b: Any) -> Any:
        return ACTIVATIONS[act](tf.nn.conv2d(x, w, strides, padding, dilations=dilations) + b)

    inputs = [normal([2, 9, 8, 3], 0), normal([*filters, 3, 4], 1), normal([4], 2)]
    if max(dilations) == 1:
        check(ours, theirs, inputs)
    else:  # TensorFlow's gradients of convolutions take no dilation on a CPU
        np.testing.assert_allclose(ours(*inputs), theirs(*inputs), 1e-12)


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(PADDINGS), windows, windows)
def test_pooling(padding: str, window: Any, strides: Any) -> None:
    def ours(x: Any) -> Any:
        return fused_max_pool2d(
            x,
            filter_h=window[0],
            filter_w=window[1],
            stride_h=strides[0],
            stride_w=strides[1],
            padding=padding,
        )

    check(ours, lambda x: tf.nn.max_pool2d(x, window, strides, padding), [normal([2, 7, 6, 3], 0)])


@pytest.mark.parametrize("act", ACTIVATIONS)
def test_dense(act: str) -> None:
    check(
        lambda x, w, b: fused_fully_connected(x, w, b, act=act),
        lambda x, w, b: ACTIVATIONS[act](tf.matmul(x, w, transpose_b=True) + b),
        [normal([5, 7], 0), normal([3, 7], 1), normal([3], 2)],
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: tf.DType) -> None:
    x, w, b = normal([1, 4, 4, 2], 0, dtype), normal([3, 3, 2, 2], 1, dtype), normal([2], 2, dtype)

    def ours(x: Any, w: Any, b: Any) -> Any:
        return fused_max_pool2d(fused_conv2d(x, w, b, act="RELU"), filter_w=2, filter_h=2)

    def theirs(x: Any, w: Any, b: Any) -> Any:
        convolved = tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b)
        return tf.nn.max_pool2d(tf.nn.relu(convolved), 2, 1, "SAME")

    check(ours, theirs, [x, w, b], rtol=1e-6 if dtype.size > 2 else 1e-2)


@pytest.mark.parametrize("act", ACTIVATIONS)
def test_layers_have_kernels(act: str) -> None:
    x, w, b = (normal(s, i, tf.float32) for i, s in enumerate(([5, 8, 8, 3], [3, 3, 3, 16], [16])))
    with composite.options(backend="tvm"):
        y = fused_conv2d(x, w, b, act=act)
        pooled = fused_max_pool2d(y, filter_w=2, filter_h=2, stride_w=2, stride_h=2)
    plain = PLAIN.conv(x, w, b, act)
    np.testing.assert_allclose(y, plain, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(pooled, PLAIN.pool(plain), rtol=1e-4, atol=1e-4)


def test_shapes_while_tracing() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, 28, 20, 1], tf.float32)])
    def layer(x: Any) -> Any:
        y = fused_conv2d(x, tf.zeros([5, 3, 1, 8]), tf.zeros([8]), stride_h=2, padding="VALID")
        return y, fused_max_pool2d(y, filter_w=2, filter_h=3, stride_w=2, stride_h=3)

    shapes = [shape.as_list() for shape in layer.get_concrete_function().output_shapes]
    assert shapes == [[None, 12, 18, 8], [None, 4, 9, 8]]


def test_what_the_declaration_forbids_is_an_error() -> None:
    x, w, b = tf.zeros([1, 4, 4, 1]), tf.zeros([1, 1, 1, 1]), tf.zeros([1])
    forbidden: list[dict[str, Any]] = [{"stride_w": 0}, {"padding": "FULL"}, {"act": "ELU"}]
    for attrs in forbidden:
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=str(*attrs)):
            fused_conv2d(x, w, b, **attrs)
    with pytest.raises((TypeError, tf.errors.NotFoundError, tf.errors.InvalidArgumentError)):
        fused_conv2d(tf.zeros([1, 4, 4, 1], tf.int32), tf.zeros([1, 1, 1, 1], tf.int32), [0])


@pytest.fixture(scope="module")
def digits() -> Digits:
    return Digits.load()


@pytest.mark.slow
def test_training_gives_the_losses_of_the_plain_network(digits: Digits, tmp_path: Path) -> None:
    network = ConvNet(COMPOSITES)
    with no_compiling():  # a kernel that arrives between two calls would change bits
        losses = train(network, digits, steps=60)
        np.testing.assert_allclose(losses, train(ConvNet(PLAIN), digits, steps=60), rtol=1e-3)
        assert losses[-1] < losses[0] / 5

        pixels = tf.constant(digits.x_test)
        assert accuracy(network.logits(pixels), digits.y_test) > 0.9
        tf.saved_model.save(network, tmp_path)
        loaded: Any = tf.saved_model.load(tmp_path)
        np.testing.assert_array_equal(loaded.logits(pixels), network.logits(pixels))


def test_a_layer_is_a_node() -> None:
    network = ConvNet(COMPOSITES)
    graph = network.logits.get_concrete_function().graph
    ops = [op.type for op in graph.get_operations()]
    counts = [ops.count(f"Fused{name}") for name in ("Conv2D", "MaxPool2D", "FullyConnected")]
    assert counts == [2, 2, 2]


def test_the_script(run_python: Callable[..., Any]) -> None:
    code = "from examples.convnet.train import main\nmain(['--steps', '40'])"
    printed = run_python(code).stdout
    assert float(re.findall(r"differ by at most (\S+)", printed)[0]) < 1e-3
    assert float(re.findall(r"test accuracy (\S+),", printed)[0]) > 0.5


TWO_REPLICAS = """
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

from examples.convnet.model import COMPOSITES, PLAIN, ConvNet, Digits

def losses(layers):
    digits = Digits.load()
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        network = ConvNet(layers)

    def step(x, y):
        with tf.GradientTape() as tape:
            logits = network.logits.python_function(x)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        variables = network.trainable_variables
        gradients = tape.gradient(loss, variables)
        replica = tf.distribute.get_replica_context()
        for variable, gradient in zip(variables, replica.all_reduce("MEAN", gradients)):
            variable.assign_sub(0.1 * gradient)
        return loss

    train = tf.function(lambda x, y: strategy.reduce("MEAN", strategy.run(step, (x, y)), axis=None))
    data = tf.data.Dataset.from_tensor_slices((digits.x_train, digits.y_train)).batch(64)
    batches = strategy.experimental_distribute_dataset(data)
    return [float(train(x, y)) for (x, y), _ in zip(batches, range(5))]

np.testing.assert_allclose(losses(COMPOSITES), losses(PLAIN), rtol=1e-4)
"""


def test_on_two_replicas(run_python: Callable[..., Any]) -> None:
    run_python(TWO_REPLICAS)
