"""Gradients that are tf.IndexedSlices: of what rows are gathered from, as those of the same ops."""

import numpy as np
import pytest
import tensorflow as tf

from composite import Composite
from tests.composite import gradient_ops as ops

pytestmark = [pytest.mark.many_cases, pytest.mark.usefixtures("expansions_only")]

TABLE = tf.reshape(tf.range(10.0), [5, 2])
IDS = tf.constant([[0, 2], [0, 4]])
WRAPS = [lambda f: f, tf.function, lambda f: tf.function(f, jit_compile=True)]


def loss(op, table, ids):
    y = op(table, ids)
    return tf.reduce_sum(y * y * y)


def slope(op, table=TABLE, ids=IDS):
    with tf.GradientTape() as tape:
        tape.watch(table)
        y = loss(op, table, ids)
    return tape.gradient(y, table)


@pytest.mark.parametrize("wrap", WRAPS)
def test_rows_of_a_table(wrap):
    found, expected = wrap(lambda: slope(ops.rows))(), slope(ops.rows.python_function)
    assert isinstance(found, tf.IndexedSlices)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.values, expected.values)
    np.testing.assert_array_equal(found.dense_shape, expected.dense_shape)


def test_the_function_of_a_gradient_writes_the_rows_alone():
    concrete = tf.function(slope).get_concrete_function(ops.rows, TABLE, IDS)
    functions = concrete.graph.as_graph_def().library.function
    made = [n.op for f in functions if "backward" in f.signature.name for n in f.node_def]
    assert made
    assert not {"UnsortedSegmentSum", "ResourceScatterAdd", "ScatterNd"} & set(made)


@pytest.mark.parametrize("wrap", WRAPS[:2])
def test_a_table_that_is_also_read_whole_has_a_dense_one(wrap):
    @Composite("SlicesTied", inputs=["x: float", "ids: int32"], outputs=["y: float"])
    def tied(x, ids):
        return tf.gather(tf.matmul(x, x, transpose_b=True), ids) + tf.reduce_sum(tf.gather(x, ids))

    found, expected = wrap(lambda: slope(tied))(), slope(tied.python_function)
    np.testing.assert_allclose(tf.convert_to_tensor(found), tf.convert_to_tensor(expected))


@pytest.mark.parametrize("wrap", WRAPS[:2])
def test_a_second_order(wrap):
    def curvature(op):
        with tf.GradientTape() as tape:
            tape.watch(TABLE)
            found = tf.convert_to_tensor(slope(op))
            length = tf.reduce_sum(found * found)
        return tf.convert_to_tensor(tape.gradient(length, TABLE))

    found, expected = wrap(lambda: curvature(ops.rows))(), curvature(ops.rows.python_function)
    np.testing.assert_allclose(found, expected)


def test_a_loop_around():
    @tf.function
    def total(op):
        with tf.GradientTape() as tape:
            tape.watch(TABLE)
            y = tf.constant(0.0)
            for i in tf.range(3):
                y += loss(op, TABLE, IDS[:, :1] + i % 2)
        return tf.convert_to_tensor(tape.gradient(y, TABLE))

    np.testing.assert_allclose(total(ops.rows), total(ops.rows.python_function))


def test_sizes_that_vary():
    spec = [tf.TensorSpec([None, 2]), tf.TensorSpec(None, tf.int32)]
    traced = tf.function(lambda table, ids: slope(ops.rows, table, ids), input_signature=spec)
    for rows in (5, 6):
        table = tf.ones([rows, 2])
        found, expected = traced(table, IDS), slope(ops.rows.python_function, table)
        np.testing.assert_array_equal(found.dense_shape, [rows, 2])
        np.testing.assert_allclose(found.values, expected.values)


@pytest.mark.parametrize("vectorized", [False, True])
def test_jacobians(vectorized):
    def jacobian(op):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(TABLE)
            y = op(TABLE, IDS[0])
        return tape.jacobian(y, TABLE, experimental_use_pfor=vectorized)

    np.testing.assert_allclose(jacobian(ops.rows), jacobian(ops.rows.python_function))


@pytest.mark.parametrize("wrap", WRAPS[:2])
def test_a_variable_is_updated_row_by_row(wrap):
    variables = [tf.Variable(TABLE) for _ in range(2)]
    optimizers = [tf.keras.optimizers.Adam(0.1) for _ in variables]
    for one, optimizer in zip(variables, optimizers, strict=True):
        optimizer.build([one])

    def step(op, i):
        gradient = slope(op, variables[i])
        assert isinstance(gradient, tf.IndexedSlices)
        optimizers[i].apply_gradients([(gradient, variables[i])])

    for _ in range(2):
        wrap(lambda: step(ops.rows, 0))()
        wrap(lambda: step(ops.rows.python_function, 1))()
    np.testing.assert_allclose(variables[0], variables[1], rtol=1e-6)
