"""tf.TensorArray in bodies: what Python gives with TensorFlow's own, in every way an op can run."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite

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
    ways = ["eager", "tf.function", "unknown dims", "gradient", "XLA"]
    report = composite.check(op, x, samples=1, ways=ways, report_dir=tmp_path)
    assert [row.note for row in report.rows if row.note] == []
    np.testing.assert_array_equal(op(-x), op.python_function(tf.constant(-x)))
