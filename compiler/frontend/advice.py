"""What to write instead of TensorFlow's functions that take functions, and of a few others.

Each has the lines that do the same in a body, in terms of `x`, `f` and so on.

Not for: functions that are one op or in the library (tf_ops.py, callables.py).
"""

from __future__ import annotations

# By the name of the Python function, without the suffix of its version.
_INSTEAD = {
    "while_loop": "write the loop, `while condition(x): x = f(x)`",
    "cond": "write the branches, `y = f(x) if condition else g(x)`",
    "cond_for_tf": "write the branches, `y = f(x) if condition else g(x)`",
    "case": "write the branches, `y = f(x) if first else g(x) if second else h(x)`",
    "switch_case": "write the branches, `y = f(x) if index == 0 else g(x)`",
    "map_fn": "write the loop, `y = tf.stack([f(row) for row in x])`",
    "vectorized_map": "write the loop, `y = tf.stack([f(row) for row in x])`",
    "foldl": "write the loop, `for row in x: a = f(a, row)`, with its first `a` before it",
    "foldr": "write the loop, `for row in x[::-1]: a = f(a, row)`, with its first `a` before it",
    "scan": "write the loop, with its first `a` and `ys = []` before it, "
    "`for row in x: a = f(a, row); ys = ys + [a]`, and `y = tf.stack(ys)` after it",
    "custom_gradient": "define the gradient of the whole op, below it: `@op.gradient`, "
    "`def gradient(op, upstream): return ...`, where `op.inputs` are its inputs",
    "resize_images": "call `tf.raw_ops.ResizeBilinear(images=x, size=size, "
    "half_pixel_centers=True)`, or ResizeNearestNeighbor",
    "py_func": "write it in the body, in terms of TensorFlow's ops; a kernel runs no Python",
    "eager_py_func": "write it in the body, in terms of TensorFlow's ops; a kernel runs no Python",
    "numpy_function": "write it in the body, in terms of TensorFlow's ops; a kernel runs no Python",
    "gradients": "call the op under a tf.GradientTape; an op has the gradient of its body",
    "print": "call `tf.raw_ops.PrintV2(input=tf.strings.format('{}', x))`",
}


def instead_of(name: str) -> str | None:
    """Return what to write instead of a function of TensorFlow, by its Python name.

    >>> instead_of("map_fn_v2")
    'write the loop, `y = tf.stack([f(row) for row in x])`'
    """
    return _INSTEAD.get(name.removesuffix("_v2"))
