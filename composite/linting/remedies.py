"""What to write instead of what keeps an op from a kernel: one table, with an example a row.

docs/lint.md is written from it (page.py). tests/composite/linting/test_remedies.py compiles the
example both ways: the first has the obstacle, the second has a kernel, and both compute the same.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from composite.compiler.tvm.read.obstacles import Obstacle

KNOWN_SIZES = (
    "call it with known sizes there, each of which gets a kernel of its own: tf.ensure_shape, a "
    "tf.TensorSpec with sizes, or sizes in CompositeOp.add_signature"
)
NARROW = (
    "compute in 32 bits: tf.cast to float32 or int32, output_type=tf.int32 of argmax and argmin"
)
KEEP = "return the value as a further output: the backward reads outputs instead of computing them"
GRADIENT = (
    "only the gradient needs it: write this line with other ops, or give the op a gradient of its "
    "own, @op.gradient"
)
SPLIT = (
    "end the op in front of it and begin another one behind it: the bodies before and after it "
    "have kernels"
)


class Remedy(NamedTuple):
    """What to write instead of one obstacle.

    Attributes:
        matches: a pattern; it is found in what the compiler says of the obstacle.
        advice: what to do.
        before, after: an example of a body without its imports and declaration: of `x`, a square
            matrix of float32, of `n`, its size, and of `r`, `tf.range(n)`.
    """

    matches: str
    advice: str
    before: str
    after: str


ROWS = (
    Remedy(
        r"op (Assert|CheckNumerics|PrintV2|Print)\b",
        "check or print outside of the op: in front of the call, or on its results",
        'return tf.debugging.check_numerics(x, "x") * 2',
        "return x * 2",
    ),
    Remedy(
        "that only one branch may have",
        "compute both branches and choose with tf.where: the index must be in range in both",
        "i = tf.cast(x[0, 0] * 0, tf.int32)\n"
        "return tf.gather(x, i) if tf.reduce_sum(x) > 0 else x[1]",
        "i = tf.cast(x[0, 0] * 0, tf.int32)\n"
        "return tf.where(tf.reduce_sum(x) > 0, tf.gather(x, i), x[1])",
    ),
    Remedy(
        "trips of the loop cannot be counted",
        "write a loop of a fixed number of trips, of which the last ones change nothing more",
        "y = x\nwhile tf.reduce_max(tf.abs(y * y - x)) > 1e-4:\n    y = (y + x / y) / 2\nreturn y",
        "y = x\nfor _ in range(8):\n    y = (y + x / y) / 2\nreturn y",
    ),
    Remedy(
        r"op Where\b",
        "keep the shape: put a neutral element in place of what is to be left out",
        "return tf.reduce_sum(tf.boolean_mask(x, x[:, 0] > 2))",
        "return tf.reduce_sum(tf.where(x[:, :1] > 2, x, 0.0))",
    ),
    Remedy(
        "StridedSlice: its begin is computed at run time",
        "read a known number of rows with tf.gather",
        "start = tf.cast(x[0, 0], tf.int32)\nreturn x[start : start + 2]",
        "start = tf.cast(x[0, 0], tf.int32)\nreturn tf.gather(x, start + tf.range(2))",
    ),
    Remedy(
        "is computed at run time",
        "take it from a shape, make it an attribute, or, if it is a size, an input that is a "
        "scalar: the value of any other tensor is not known when a kernel is compiled",
        "return tf.reduce_sum(x, axis=tf.cast(x[0, 0], tf.int32))",
        "return tf.reduce_sum(x, axis=1)",
    ),
    Remedy(
        "Const: .* elements",
        "make it an input, or compute it in the body",
        "return tf.constant([float(i) for i in range(5000)]) * x[0, 0]",
        "return tf.cast(tf.range(5000), tf.float32) * x[0, 0]",
    ),
    Remedy(
        "several diagonals",
        "take one diagonal at a time",
        "return tf.reduce_sum(tf.linalg.diag_part(x, k=(0, 1)), 0)",
        "others = tf.pad(tf.linalg.diag_part(x, k=1), [[1, 0]])\n"
        "return tf.linalg.diag_part(x) + others",
    ),
    Remedy(
        "TensorScatterUpdate: .* updates",
        "choose with tf.where",
        "return tf.tensor_scatter_nd_update(x, tf.range(5)[:, None], x[:5] * 2)",
        "return tf.where(r[:, None] < 5, x * 2, x)",
    ),
    Remedy(
        r"op (UpperBound|LowerBound)\b",
        "for tf.repeat, stack copies along a new axis and reshape; for tf.searchsorted, count with "
        "a comparison and a sum",
        "return tf.repeat(x, 2, axis=0)",
        "return tf.reshape(tf.stack([x, x], axis=1), [2 * n, n])",
    ),
    Remedy(
        r"op EuclideanNorm\b",
        "write the sum of squares",
        "return tf.math.reduce_euclidean_norm(x, axis=1)",
        "return tf.sqrt(tf.reduce_sum(x * x, axis=1))",
    ),
    Remedy(
        r"dtype DT_",
        "convert to a dtype that docs/kernels.md lists, if it is an input in front of the call, "
        "and leave this one out of the declaration",
        "return tf.math.real(tf.cast(x, tf.complex64) * 2)",
        "return x * 2",
    ),
)


def of(obstacle: Obstacle) -> str:
    """The advice for an obstacle; the general one where the table has none."""
    return next((row.advice for row in ROWS if re.search(row.matches, obstacle.reason)), SPLIT)
