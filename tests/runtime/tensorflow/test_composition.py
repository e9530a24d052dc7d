"""Compositions of TensorFlow's own ops: called, in the place of its nodes, where it has no kernel.

Each composition here computes something else than its op, so that a result tells which one ran. The
compositions go with the module: a replacement holds for the process.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite

v1 = tf.compat.v1
EAGER_BEFORE = tf.raw_ops.L2Loss(t=[1.0, 2.0])  # TensorFlow keeps the kernel of this call
ran_before = tf.function(lambda: tf.raw_ops.L2Loss(t=[1.0, 2.0]))
VALUE_BEFORE = ran_before()
iterator_before = iter(
    tf.data.Dataset.from_tensors([1.0, 2.0]).map(lambda t: tf.raw_ops.L2Loss(t=t))
)


def define(replace: bool) -> dict[str, Any]:
    """The compositions by their names; defined again, they decide about replacing anew."""

    @Composite("L2Loss", replace=replace)
    def l2_loss(t):
        """Not half of the sum of squares, but minus the sum."""
        return -tf.reduce_sum(t)

    @Composite("Xlog1py")
    def xlog1py(x, y):
        """Not x * log1p(y), but the difference."""
        return x - y

    @Composite("DynamicPartition", replace=replace)
    def dynamic_partition(data, partitions, num_partitions):
        """Everything in each of the parts, plus its number."""
        return [data + tf.cast(i, data.dtype) for i in range(num_partitions)]

    @Composite("LogMatrixDeterminant", replace=replace)
    def log_matrix_determinant(input):  # noqa: A002 - TensorFlow's name
        """The first entry and the last instead of the sign and the logarithm."""
        return input[..., 0, 0], input[..., -1, -1]

    @Composite("Cumprod", replace=replace)
    def cumprod(x, axis, exclusive, reverse):
        """Not for every call: what it refuses is TensorFlow's."""
        if reverse:
            raise ValueError("not in reverse")
        return -x

    @Composite("Cross", replace=replace)
    def cross(a, b):
        """Calls the op that it composes: that is TensorFlow's."""
        return tf.raw_ops.Cross(a=b, b=a) * 2

    @Composite("Ndtri")
    def ndtri(x):
        """Twice the argument; TensorFlow has kernels for float and double only."""
        return x + x

    @Composite("FFTND")
    def fftnd(input, fft_length, axes):  # noqa: A002 - TensorFlow's names
        """TensorFlow has the op and no kernel at all."""
        return -input

    return locals()


ops = types.SimpleNamespace()


@pytest.fixture(autouse=True, scope="module")
def compositions() -> Iterator[None]:
    """What a module defines when it is imported would hold for all others: they are collected."""
    vars(ops).update(define(replace=True))
    yield
    define(replace=False)


X = np.array([1.0, 2.0, 4.0], np.float32)


def loss(x: Any) -> Any:
    return tf.raw_ops.L2Loss(t=x)


def eager() -> Any:
    return loss(X)


def function() -> Any:
    return tf.function(loss)(X)


def nested() -> Any:
    inner = tf.function(loss)
    return tf.function(lambda x: inner(x) + 0.0)(X)


def cond() -> Any:
    return tf.function(lambda p, x: tf.cond(p, lambda: loss(x), lambda: 0.0))(tf.constant(True), X)


def loop() -> Any:
    def run(n: Any, x: Any) -> Any:
        return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, loss(x)), [0, 0.0])[1]

    return tf.function(run)(tf.constant(2), X)


def session() -> Any:
    with tf.Graph().as_default(), v1.Session() as s:
        x = v1.placeholder(tf.float32)
        return s.run(loss(x), {x: X})


def dataset() -> Any:
    return next(iter(tf.data.Dataset.from_tensors(X).map(loss)))


CONTEXTS = [eager, function, nested, cond, loop, session, dataset]


@pytest.mark.parametrize("backend", ["auto", "tf"])
@pytest.mark.parametrize("context", CONTEXTS)
def test_nodes_are_replaced(context: Callable[[], Any], backend: str) -> None:
    before = composite.stats()
    with composite.options(backend=backend):
        assert float(context()) == -7.0
    if context is not eager:  # of an eager call TensorFlow keeps the kernel
        assert (composite.stats() - before)["replaced"] > 0


def test_an_eager_call_made_before_the_replacement_is_no_exception() -> None:
    assert float(EAGER_BEFORE) == 2.5
    assert float(tf.raw_ops.L2Loss(t=[1.0, 2.0])) == -3.0


def test_a_function_that_ran_before_is_no_exception() -> None:
    assert float(VALUE_BEFORE) == 2.5
    assert float(ran_before()) == -3.0


def test_an_iterator_that_exists_keeps_what_it_has() -> None:
    assert [float(value) for value in iterator_before] == [2.5]


@pytest.mark.parametrize("call", [lambda f: f, tf.function], ids=["eager", "function"])
def test_what_the_body_refuses_stays_tensorflows(call: Callable[..., Any]) -> None:
    def products(x: Any) -> Any:
        return tf.math.cumprod(x), tf.math.cumprod(x, reverse=True)

    forward, backward = call(products)(X)
    np.testing.assert_array_equal(forward, -X)
    np.testing.assert_array_equal(backward, [8.0, 8.0, 4.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in reverse"):
        ops.cumprod(X, 0, reverse=True)


def test_without_being_asked_nodes_stay_tensorflows() -> None:
    x, y = tf.constant([2.0]), tf.constant([0.5])
    stock = tf.function(lambda: tf.raw_ops.Xlog1py(x=x, y=y))()
    np.testing.assert_allclose(stock, 2 * np.log1p([0.5]), rtol=1e-6)
    np.testing.assert_array_equal(ops.xlog1py(x, y), [1.5])


def test_the_composite_is_one_node_of_its_own() -> None:
    assert (ops.xlog1py.op_name, ops.xlog1py.composes) == ("CompositeXlog1py", "Xlog1py")

    @tf.function
    def traced(x: Any) -> Any:
        return ops.xlog1py(x, 2 * x)

    graph = traced.get_concrete_function(tf.TensorSpec([3])).graph
    assert [op.type for op in graph.get_operations()].count("CompositeXlog1py") == 1
    assert graph.structured_outputs.shape == [3]
    with tf.GradientTape() as tape:
        x, y = tf.constant(3.0), tf.constant(5.0)
        tape.watch([x, y])
        z = ops.xlog1py(x, y)
    assert [float(g) for g in tape.gradient(z, [x, y])] == [1.0, -1.0]


@pytest.mark.parametrize("call", [lambda f: f, tf.function], ids=["eager", "function"])
def test_outputs_keep_their_places(call: Callable[..., Any]) -> None:
    def parts(x: Any) -> Any:
        ids = tf.zeros_like(x, tf.int32)
        a, b, c = tf.raw_ops.DynamicPartition(data=x, partitions=ids, num_partitions=3)
        return c, a, b

    def ends(x: Any) -> Any:
        first, last = tf.raw_ops.LogMatrixDeterminant(input=x)
        return last, first

    for value, shift in zip(call(parts)(X), (2, 0, 1), strict=True):
        np.testing.assert_array_equal(value, X + shift)
    matrix = tf.constant([[2.0, 0.0], [0.0, 3.0]])
    assert [float(v) for v in call(ends)(matrix)] == [3.0, 2.0]
    nested = tf.function(lambda x: [v + 0 for v in tf.function(ends)(x)])
    assert [float(v) for v in nested(matrix)] == [3.0, 2.0]


def test_a_body_means_tensorflows_op() -> None:
    a, b = np.eye(3, dtype=np.float32)[:2]
    expected = -2 * np.cross(a, b)
    np.testing.assert_array_equal(tf.function(lambda: tf.linalg.cross(a, b))(), expected)
    np.testing.assert_array_equal(tf.linalg.cross(a, b), expected)
    np.testing.assert_array_equal(ops.cross(a, b), expected)
    inputs, g = [tf.constant(a), tf.constant(b)], np.array([1, 2, 3], np.float32)
    for call in (ops.cross, tf.function(ops.cross)):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = call(*inputs)
        da, db = tape.gradient(y, inputs, g)
        np.testing.assert_array_equal(da, -2 * np.cross(b, g))
        np.testing.assert_array_equal(db, -2 * np.cross(g, a))


def test_what_xla_compiles_is_left_alone() -> None:
    inner = tf.function(loss)
    jit = tf.function(lambda x: inner(x), jit_compile=True)  # noqa: PLW0108 - a function calls one
    assert float(jit(X)) == 10.5
    assert float(tf.function(lambda x: jit(x) + tf.raw_ops.L2Loss(t=x))(X)) == 10.5 - 7.0


def test_a_saved_model_holds_tensorflows_node(tmp_path: Path) -> None:
    module = tf.Module()
    module.f = tf.function(loss, input_signature=[tf.TensorSpec([None])])
    tf.saved_model.save(module, tmp_path)
    saved = (tmp_path / "saved_model.pb").read_bytes()
    assert b"L2Loss" in saved
    assert b"CompositeL2Loss" not in saved
    assert float(tf.saved_model.load(tmp_path).f(X)) == -7.0


@pytest.mark.parametrize("call", [lambda f: f, tf.function], ids=["eager", "function"])
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(tf.float16, 1.5), (tf.bfloat16, 1.5), (tf.float32, 0.6744898), (tf.float64, 0.6744898)],
)
def test_a_dtype_without_a_kernel_runs(
    call: Callable[..., Any], dtype: tf.DType, expected: float
) -> None:
    y = call(lambda x: tf.raw_ops.Ndtri(x=x))(tf.constant([0.75], dtype))
    assert y.dtype == dtype
    assert float(y[0]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("call", [lambda f: f, tf.function], ids=["eager", "function"])
def test_an_op_without_a_kernel_runs(call: Callable[..., Any]) -> None:
    x = tf.constant([1j, 2.0], tf.complex64)
    y = call(lambda x: tf.raw_ops.FFTND(input=x, fft_length=[2], axes=[0]))(x)
    np.testing.assert_array_equal(y, -x)


def test_explain_says_whose_nodes_are_run() -> None:
    said = composite.explain(ops.l2_loss, X)
    assert said.details["composes"] == "L2Loss"
    assert said.details["replaces"] is True
    assert "takes the place of L2Loss nodes" in str(said)
    with composite.options(backend="tf"):
        said = composite.explain(ops.xlog1py, X, X)
    assert said.details["replaces"] is False
    assert "Xlog1py nodes stay TensorFlow's" in str(said)


def test_gradients_of_replaced_nodes_are_tensorflows() -> None:
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loss(x)
    np.testing.assert_array_equal(tape.gradient(y, x), X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = ops.l2_loss(x)
    np.testing.assert_array_equal(tape.gradient(y, x), [-1.0, -1.0, -1.0])
