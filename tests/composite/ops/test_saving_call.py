"""Eager calls that save what their gradients need: when they do, and that gradients are right."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from composite import Composite, options
from composite.autodiff import eager_gradient
from composite.ops import call, saving_call

pytestmark = pytest.mark.usefixtures("expansions_only")

RANDOM = np.random.default_rng(7)
X, W = (tf.constant(RANDOM.standard_normal(s), tf.float32) for s in ([5, 256], [256, 6]))


@Composite(
    "EagerlySaved",
    inputs=["x: T", "ws: N * T"],
    attrs=["scale: float = 1.0"],
    derived_attrs=["T: {float, double}", "N: int"],
    outputs=["y: T", "z: T"],
)
def dense(x, ws, scale):
    """The gradient reads the products."""
    y = tf.math.softplus(tf.matmul(x, ws[0]) * scale)
    for w in ws[1:]:
        y += tf.math.softplus(tf.matmul(x, w))
    return y, y * 2.0


@Composite("EagerlySavedNothing", inputs=["x: float"], outputs=["y: float"])
def cheap(x):
    return x * x


@pytest.fixture(autouse=True)
def saved(monkeypatch):
    """A list with an item for each call that has saved something."""
    calls = []
    record = call.record_call

    def spied(*args):
        calls.append(args)
        record(*args)

    monkeypatch.setattr(call, "record_call", spied)
    return calls


def saving_calls(op_name):
    calls = saving_call.of(op_name)
    assert calls is not None
    return calls


def step(op, x=X, ws=(W,), of=None, **attrs):
    with tf.GradientTape() as tape:
        tape.watch([x, *ws])
        y, z = op(x, list(ws), **attrs)
        loss = tf.reduce_sum(y * y) + tf.reduce_sum(z)
    return y, tape.gradient(loss, [x, *ws] if of is None else of)


def assert_close(found, expected):
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4)


def assert_right(**arguments):
    expected = step(by_hand, **arguments)
    assert_close(step(dense, **arguments), expected)


def by_hand(x, ws, scale=1.0):
    return dense.python_function(x, ws, scale=scale)


@pytest.fixture
def learned(saved):
    """Calls of X and W save."""
    for _ in range(2):
        step(dense)
    saved.clear()


def test_from_the_third_call_on(saved):
    arguments = {"x": X[:3], "scale": 0.5}
    for expected in (0, 0, 1, 2):
        assert_right(**arguments)
        assert len(saved) == expected
    assert_right(x=X[:2], scale=0.5)  # other calls learn for themselves
    assert_right(x=X[:3], scale=-0.5)
    assert_right(x=X[:3], ws=(W, W + 1.0), scale=0.5)
    assert_right(x=tf.cast(X[:3], tf.double), ws=(tf.cast(W, tf.double),), scale=0.5)
    assert len(saved) == 2
    assert_right(x=X[:3], scale=np.float64(0.5))
    assert len(saved) == 3


def test_nothing_is_saved_that_is_cheap(saved):
    for _ in range(4):
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = cheap(X)
        np.testing.assert_array_equal(tape.gradient(y, X), 2 * X)
    assert not saved
    assert not saving_calls("EagerlySavedNothing").learned


@pytest.mark.usefixtures("learned")
def test_gradients_that_were_not_asked_for_before(saved):
    expected = step(by_hand)
    for _ in range(4):
        assert_close(step(dense, of=[W])[1], expected[1][1:])
        assert_close(step(dense), expected)
    assert len(saved) == 8


@pytest.mark.usefixtures("learned")
def test_gradients_of_gradients(saved):
    def nested(op):
        with tf.GradientTape() as outer:
            outer.watch(X)
            _, slopes = step(op)
            total = tf.reduce_sum(slopes[0] ** 2)
        return outer.gradient(total, X)

    def persistent(op):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(X)
            y = tf.reduce_sum(op(X, [W])[0] ** 2)
            slope = tape.gradient(y, X)
        return slope, tape.gradient(slope, X), tape.gradient(y, X)

    def forward_over_reverse(op):
        with tf.autodiff.ForwardAccumulator(X, tf.ones_like(X)) as accumulator:
            _, slopes = step(op)
        return [accumulator.jvp(slope) for slope in slopes]

    def forward(op):
        with tf.autodiff.ForwardAccumulator(X, tf.ones_like(X)) as accumulator:
            y, _ = op(X, [W])
        return accumulator.jvp(y)

    for orders in (nested, persistent, forward_over_reverse, forward):
        assert_close(orders(dense), orders(by_hand))
        assert not saved


@pytest.mark.usefixtures("learned")
def test_what_was_saved_is_not_for_a_gradient_that_is_recorded(saved):
    factor = tf.constant(3.0)

    def recorded_later(op):
        with tf.GradientTape() as tape:
            tape.watch(X)
            y, _ = op(X, [W])
        with tf.GradientTape() as later:
            later.watch([X, factor])
            slope = tape.gradient(y, X, factor * tf.ones_like(y))
        return later.gradient(slope, factor)

    def jacobian(op):
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = tf.reduce_sum(op(X, [W])[0], axis=0)
        return tape.jacobian(y, X)

    for function in (recorded_later, jacobian):
        assert_close(function(dense), function(by_hand))
    assert len(saved) == 2


@pytest.mark.usefixtures("learned")
def test_what_converts(saved):
    expected = step(by_hand)
    x, w = tf.Variable(X), keras.Variable(W)
    with tf.GradientTape() as tape:
        y, z = dense(x, [w])
        loss = tf.reduce_sum(y * y) + tf.reduce_sum(z)
    assert_close((y, tape.gradient(loss, [x, w.value])), expected)
    assert len(saved) == 1
    with tf.GradientTape() as tape:
        tape.watch(W)
        y, _ = dense(X.numpy(), [W])
    with tf.GradientTape() as plain:
        plain.watch(W)
        expected, _ = by_hand(X, [W])
    assert_close(tape.gradient(y, W), plain.gradient(expected, W))
    assert len(saved) == 1  # an array is converted by TensorFlow


@pytest.mark.usefixtures("learned")
def test_calls_that_nobody_differentiates(saved):
    dense(X, [W])
    with tf.GradientTape() as tape:
        dense(X, [W])  # the tape watches neither
        with tape.stop_recording():
            tape.watch(X)
            dense(X, [W])
    assert not saved


@pytest.mark.usefixtures("learned")
def test_functions_and_devices(saved):
    for _ in range(2):
        assert_close(step(tf.function(dense)), step(by_hand))
    tf.config.run_functions_eagerly(True)
    try:
        assert_close(tf.function(step)(dense), step(by_hand))
    finally:
        tf.config.run_functions_eagerly(False)
    assert len(saved) == 1
    with tf.device("/CPU:0"):
        assert_close(step(dense), step(by_hand))
    assert len(saved) == 2


@pytest.mark.usefixtures("learned")
def test_what_fails_fails_as_the_op_itself(saved, monkeypatch):
    def fails(*_):
        raise tf.errors.ResourceExhaustedError(None, None, "for a test")

    calls = saving_calls("EagerlySaved")
    broken = {key: one._replace(run=fails) for key, one in calls.learned.items()}
    monkeypatch.setattr(calls, "learned", broken)
    monkeypatch.setattr(calls, "_known", {})
    assert_right()
    with pytest.raises(tf.errors.InvalidArgumentError, match="EagerlySaved"):
        step(dense, ws=(W[:3],))
    assert not saved


@pytest.mark.usefixtures("learned")
def test_who_insists_on_a_kernel_gets_its_error(saved):
    with options(backend="tvm"), pytest.raises(tf.errors.OpError):
        step(dense)
    assert not saved


def test_deterministic_ops_stay_what_they_are(saved, monkeypatch):
    monkeypatch.setattr(call, "is_deterministic", lambda: True)
    for _ in range(4):
        assert_right(x=X[:4])
    assert not saved


def test_the_author_gives_a_gradient_later(saved):
    @Composite("EagerlySavedOwn", inputs=["x: float", "w: float"], outputs=["y: float"])
    def op(x, w):
        return tf.math.softplus(tf.matmul(x, w))

    def slope():
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = op(X, W)
        return tape.gradient(y, X)

    for _ in range(3):
        slope()
    assert len(saved) == 1
    op.gradient(lambda op, upstream: [op.inputs[0] * len(op.outputs), None])
    np.testing.assert_array_equal(slope(), X)


def test_what_is_known_is_bounded(monkeypatch):
    monkeypatch.setattr(saving_call, "_MOST", 2)
    monkeypatch.setattr(eager_gradient, "_MOST_PLANS", 3)
    for rows in (1, 2, 3):
        for _ in range(3):
            assert_right(x=X[:rows], scale=0.125 * rows)
    calls = saving_calls("EagerlySaved")
    assert len(calls.learned) <= 2
    assert len(calls._known) <= 2
    assert len(eager_gradient._asked) <= 3
