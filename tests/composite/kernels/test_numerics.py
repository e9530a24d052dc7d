"""numerics="strict" and the error of a kernel: what docs/numerics.md promises."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite


@Composite("TestRounding", inputs=["x: float", "w: float", "b: float"], outputs=["y: float"])
def rounding(x, w, b):
    """A dense layer, whose sums a kernel makes in another order.

    Not an op that other tests call: their shapes would be measured along with those of here.
    """
    return tf.tanh(tf.matmul(x, w, transpose_b=True) + b)


@Composite("TestShuffled", inputs=["x: T"], derived_attrs=["T: {float, int32}"], outputs=["y: T"])
def shuffled(x):
    """Moves data: rows to columns, twice."""
    return tf.tile(tf.transpose(x), [1, 2])


@Composite("TestCounted", inputs=["x: int32"], outputs=["y: int32"])
def counted(x):
    """Computes with integers."""
    return x * x + 1


NUMBER = itertools.count()
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((13, 96)).astype(np.float32)
W = RANDOM.standard_normal((33, 96)).astype(np.float32)
B = RANDOM.standard_normal(33).astype(np.float32)


@pytest.fixture(scope="module")
def kernel():
    """There is a kernel for these shapes, with other bits."""
    with composite.options(backend="tvm"):
        y = rounding(X, W, B).numpy()
    assert (y != rounding.python_function(X, W, B).numpy()).any()


def test_strict_has_the_bits_of_the_ops(kernel):
    expected = rounding.python_function(X, W, B).numpy()
    in_graph = tf.function(lambda x: rounding.python_function(x, W, B) * 2.0)(X).numpy()
    before = composite.stats()
    with composite.options(numerics="strict"):
        eager = rounding(X, W, B).numpy()
        traced = tf.function(lambda x: rounding(x, W, B) * 2.0)
        told = composite.explain(rounding, X, W, B)
        assert traced(X).numpy().tobytes() == in_graph.tobytes()
    assert eager.tobytes() == expected.tobytes()
    # The choice is in the node: what is outside of the block has no say.
    assert traced(X).numpy().tobytes() == in_graph.tobytes()
    assert (composite.stats() - before)["kernel_launches"] == 0
    assert (told.path, told.reason) == ("expansion", 'numerics="strict"')


def test_strict_gradients_have_the_bits_of_the_ops(kernel):
    def slope(function):
        with tf.GradientTape() as tape:
            w = tf.Variable(W)
            y = function(w)
        return tape.gradient(y, w).numpy()

    expected = slope(lambda w: rounding.python_function(X, w, B))
    before = composite.stats()
    with composite.options(numerics="strict"):
        found = slope(lambda w: rounding(X, w, B))
    assert (composite.stats() - before)["kernel_launches"] == 0
    assert found.tobytes() == expected.tobytes()


def gated(x, w):
    """A chain whose gradient fast numerics make one product of."""
    y = tf.matmul(x, w)
    return y * tf.sigmoid(y) + 0.5


def dense(x, w):
    return tf.nn.relu(tf.matmul(x, w) + w[0])


def curved(x, w):
    return tf.nn.gelu(tf.matmul(x, w) + w[0])


def several(x, w):
    """One tensor that many ops read."""
    y = tf.matmul(x, w)
    return y * tf.sigmoid(y) + tf.tanh(y) * y + tf.exp(-y * y)


def layered(x, w):
    return tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, w) * 0.1) + x, w) * 0.1) + x


BODIES = [gated, dense, curved, several, layered]
# A graph adds up three numbers or more in the order of the names of the nodes that they are from.
OF_TWO_TERMS = [gated, dense, curved]


def slopes(op):
    def of(x, w):
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = tf.reduce_sum(op(x, w) ** 2)
        return tape.gradient(y, [x, w])

    return of


def assert_strict_is_the_body(op, how):
    x, w = (tf.constant(RANDOM.standard_normal(s), tf.float32) for s in ([37, 64], [64, 64]))
    before = composite.stats()
    with composite.options(numerics="strict"):
        found = tf.nest.flatten([how(op)(x, w) for _ in range(3)])
    assert (composite.stats() - before)["kernel_launches"] == 0
    expected = tf.nest.flatten([how(op.python_function)(x, w)] * 3)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.numpy().tobytes() == theirs.numpy().tobytes()


def strict_op(body):
    name = f"TestStrict{next(NUMBER)}"
    declare = Composite(
        name, inputs=["x: T", "w: T"], derived_attrs=["T: {float}"], outputs=["y: T"]
    )
    return declare(body)


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES)
def test_strict_is_the_body_in_eager_calls(body):
    op = strict_op(body)
    assert_strict_is_the_body(op, lambda f: f)
    assert_strict_is_the_body(op, slopes)


@pytest.mark.slow
@pytest.mark.parametrize("body", OF_TWO_TERMS)
def test_strict_is_the_body_in_graphs(body):
    op = strict_op(body)
    assert_strict_is_the_body(op, lambda f: tf.function(f, autograph=False))
    assert_strict_is_the_body(op, lambda f: tf.function(slopes(f), autograph=False))


def test_what_fast_calls_have_learned_to_save_is_not_for_strict_ones():
    """The gradient of a call that saved is made of what that saved."""
    op = strict_op(gated)
    x, w = (tf.constant(RANDOM.standard_normal(s), tf.float32) for s in ([37, 64], [64, 64]))
    for _ in range(3):
        slopes(op)(x, w)
    assert_strict_is_the_body(op, slopes)


def test_must_and_strict_contradict_each_other_for_a_kernel_that_rounds(kernel):
    with composite.options(backend="tvm", numerics="strict"):
        for call in (rounding, lambda *a: composite.explain(rounding, *a)):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"within .* of \|y\| against"):
                call(X, W, B)
    with composite.options(numerics="strict"), composite.options(backend="tf"):
        rounding(X, W, B)


@pytest.mark.parametrize("op", [shuffled, counted])
def test_must_and_strict_agree_for_a_kernel_that_is_exact(op):
    x = tf.constant(RANDOM.integers(-100, 100, (5, 7)), tf.int32)
    before = composite.stats()
    with composite.options(backend="tvm", numerics="strict"):
        y = op(x)
        told = composite.explain(op, x)
    assert (composite.stats() - before)["kernel_launches"] == 1
    np.testing.assert_array_equal(y, op.python_function(x))
    assert told.path == "kernel"
    assert told.details["exact"]
    assert "bit for bit" in told.reason


def test_moved_numbers_keep_their_bits():
    x = np.array([[np.nan, -0.0, np.inf], [1e-40, -np.inf, 3.0]], np.float32)
    x[0, 0] = np.frombuffer(np.uint32(0x7FC01234).tobytes(), np.float32)[0]
    with composite.options(backend="tvm", numerics="strict"):
        assert shuffled(x).numpy().tobytes() == shuffled.python_function(x).numpy().tobytes()


def test_explain_has_the_error_and_the_times(kernel):
    assert composite.wait(120)
    told = composite.explain(rounding, X, W, B)
    assert told.error is not None
    assert 0 < told.error < 1e-3
    assert told.error_unit == "|y| against float64 on adversarial inputs"
    assert f"within {told.error:.2g} of {told.error_unit}" in told.reason
    assert [point.size for point in told.measured] == [1]
    assert told.measured[0].kernel_us == told.kernel_us
    with composite.options(backend="tf"):
        told = composite.explain(rounding, X, W, B)
    assert (told.error, told.measured) == (None, ())


DETERMINISTIC = """
import tensorflow as tf
import composite
from tests.composite.kernels.test_numerics import deterministic_op, slopes

if {from_the_start}:
    tf.config.experimental.enable_op_determinism()
tf.random.set_seed(1)
x, w = tf.random.normal([32, 64]), tf.random.normal([64, 64])
with composite.options(regions=True):
    region = tf.function(lambda x, w: tf.tanh(tf.matmul(x, w)) * tf.sigmoid(x) + 0.5)
    region(x, w)
ways = {{
    "eager": deterministic_op,
    "eager gradient": slopes(deterministic_op),
    "function": tf.function(lambda x, w: deterministic_op(x, w) * 2.0),
    "function's gradient": tf.function(slopes(deterministic_op)),
    "region": region,
}}
first = {{name: tf.nest.flatten(way(x, w)) for name, way in ways.items()}}
tf.config.experimental.enable_op_determinism()
assert composite.wait(120)
before = composite.stats()
for call in range(40):
    if call == 20:  # TensorFlow forgets the ops of eager calls, and makes new ones
        deterministic_op(x, w), slopes(deterministic_op)(x, w)
        tf.random.set_seed(2)
        composite.wait(120)
        ways = {{name: ways[name] for name in ("eager", "eager gradient")}}
    for name, way in ways.items():
        for one, again in zip(first[name], tf.nest.flatten(way(x, w)), strict=True):
            assert one.numpy().tobytes() == again.numpy().tobytes(), (name, call)
assert (composite.stats() - before)["kernel_launches"] == 0
later = tf.function(lambda x, w: deterministic_op(x, w) * 2.0)(x, w)
assert (composite.stats() - before)["kernel_launches"] == 1, "no kernel was there to be used"
"""


@Composite(
    "TestDeterministic", inputs=["x: T", "w: T"], derived_attrs=["T: {float}"], outputs=["y: T"]
)
def deterministic_op(x, w):
    y = tf.matmul(x, w)
    return y * tf.sigmoid(y) + 0.5


@pytest.mark.slow
@pytest.mark.parametrize("from_the_start", [True, False])
def test_with_deterministic_ops_calls_keep_their_bits(run_python, tmp_path, from_the_start):
    """A kernel that becomes ready is for nodes that have not run, not for calls by another way."""
    code = DETERMINISTIC.format(from_the_start=from_the_start)
    run_python(code, env={"COMPOSITE_CACHE_DIR": str(tmp_path / "cache")})
