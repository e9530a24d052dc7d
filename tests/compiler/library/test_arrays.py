"""tf.TensorArray in bodies: what Python gives with TensorFlow's own, in every way an op can run."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite

pytestmark = pytest.mark.many_cases

Define = Callable[[str], Any]
_numbers = itertools.count()

# Bodies of `def body(x)`, x [3, 4]; those that end in a tensor of any shape.
BODIES = {
    "written in a loop": """
        rows = tf.shape(x)[0]
        ys = tf.TensorArray(x.dtype, size=rows, element_shape=[x.shape[1]])
        for i in range(rows):
            ys = ys.write(i, x[i] * 2)
        return ys.stack()""",
    "read in a loop": """
        rows = tf.TensorArray(x.dtype, size=tf.shape(x)[0]).unstack(x)
        total = tf.zeros_like(x[0])
        for i in range(rows.size()):
            total = total * 2 + rows.read(i)
        return total""",
    "by an if of the loop": """
        ys = tf.TensorArray(x.dtype, 3, element_shape=(None,))
        for i in range(tf.shape(x)[0]):
            if tf.reduce_sum(x[i]) > 0:
                ys = ys.write(i, x[i])
            else:
                ys = ys.write(i, -x[i])
        return ys.stack()""",
    "by a while, with a continue": """
        i, ys = tf.constant(0), tf.TensorArray(x.dtype, 3, element_shape=x.shape[1:])
        while i < 3:
            i += 1
            if i == 2:
                continue
            ys = ys.write(i - 1, x[i - 1])
        return ys.stack()""",
    "trips that are counted at once": """
        ys = tf.TensorArray(x.dtype, size=3)
        for i in range(3):
            ys = ys.write(2 - i, x[i])
        return ys.stack() + x""",
    "numbers": """
        ys = tf.TensorArray(tf.float64, 2, element_shape=[]).write(0, 0.1).write(1, 2)
        return tf.cast(ys.stack(), x.dtype) + x[0, 0]""",
    "a helper's": """
        def filled(ys, rows):
            for i in range(tf.shape(rows)[0]):
                ys = ys.write(i, rows[i] + 1)
            return ys
        return filled(tf.TensorArray(x.dtype, 3, element_shape=[4]), x).stack()""",
    "a helper's that returns early": """
        def filled(ys, rows):
            if tf.reduce_sum(rows) > 0:
                return ys.write(0, rows)
            return ys.write(0, -rows)
        return filled(tf.TensorArray(x.dtype, 1, element_shape=x.shape), x).read(0)""",
    "two arrays of a choice": """
        one, two = tf.TensorArray(x.dtype, 1), tf.TensorArray(x.dtype, size=1)
        if tf.reduce_sum(x) > 0:
            one, two = two.write(0, x), one.write(0, -x)
        else:
            one, two = one.write(0, -x), two.write(0, x)
        return one.read(0) - two.read(0) * 2""",
    "the rest of a path": """
        ys = tf.TensorArray(x.dtype, 2, element_shape=x.shape).write(1, x)
        if tf.reduce_sum(x) > 0:
            if tf.reduce_sum(x) > 100:
                return x
            ys = ys.write(0, x * 2)
        else:
            ys = ys.write(0, x * 3)
        return ys.read(0) + ys.read(1)""",
}


def defined(define: Define, body: str) -> Any:
    function = define(f"import tensorflow as tf\n\ndef body(x):\n{body}\n")
    decorate = composite.Composite(
        f"Arrays{next(_numbers)}",
        inputs=["x: T"],
        derived_attrs=["T: {float, double}"],
        outputs=["y: T"],
    )
    return decorate(function)


@pytest.mark.parametrize("name", BODIES)
def test_an_array_is_what_python_has(name: str, define: Define, tmp_path: Any) -> None:
    op = defined(define, BODIES[name])
    x = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    ways = ["eager", "tf.function", "unknown dims", "shape function", "gradient", "XLA"]
    report = composite.check(op, x, samples=1, ways=ways, report_dir=tmp_path)
    assert [row.note for row in report.rows if row.note] == []
    np.testing.assert_array_equal(op(-x), op.python_function(tf.constant(-x)))


# What is known of x, and of what is stacked then; when all is known, all is.
SHAPES: dict[str, tuple[list[Any], list[Any]]] = {
    "written in a loop": ([None, 4], [None, 4]),
    "by an if of the loop": ([None, None], [3, None]),
    "by a while, with a continue": ([None, None], [3, None]),
    "a helper's": ([None, None], [3, 4]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_stacked_has_a_shape_while_tracing(name: str, define: Define) -> None:
    op = defined(define, BODIES[name])
    row = defined(define, BODIES[name] + "[0]")  # its expansion wants a rank
    for dims, expected in (SHAPES[name], ([3, 4], [3, 4])):
        spec = tf.TensorSpec(dims, tf.float32)
        for one, shape in ((op, expected), (row, expected[1:])):
            traced = tf.function(one.__call__, input_signature=[spec]).get_concrete_function()
            assert traced.output_shapes.as_list() == shape


def test_xla_compiles_the_gradient_of_a_loop_that_counts_up(define: Define) -> None:
    op = defined(define, BODIES["written in a loop"])

    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(op(x) ** 3)
        return tape.gradient(y, x)

    x = tf.random.stateless_normal([3, 4], [1, 2])
    compiled = tf.function(gradient, jit_compile=True)(x)
    np.testing.assert_allclose(compiled, 24 * x**2, rtol=1e-5)


def test_an_array_that_is_not_stacked_leaves_no_node(define: Define) -> None:
    op = defined(define, "    ys = tf.TensorArray(x.dtype, 3)\n    return x")
    assert list(op.expand(tf.TensorSpec([3, 4])).function[0].node_def) == []
