"""Python's operators on tensors of every dtype: what TensorFlow's give, or refused by both."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite

pytestmark = pytest.mark.many_cases

DTYPES = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "string"),
]
OPERATORS = [
    *("x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "x ** y", "x & y", "x | y", "x ^ y"),
    *("x < y", "x >= y", "x == y", "x != y", "-x", "~x", "abs(x)"),
]
NUMBERS = [[3, 0, 1, 2], [1, 1, 2, 3]]

_numbers = itertools.count()


def op_of(expression: str, dtype: str, result: str) -> Any:
    text = f"def body(x, y):\n    return {expression}\n"
    number = next(_numbers)
    file = f"<tensor_operators_{number}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "tensor_operators"}
    exec(compile(text, file, "exec"), namespace)
    decorate = Composite(
        f"TensorOperator{number}",
        inputs=[f"x: {dtype}", f"y: {dtype}"],
        outputs=[f"o: {result}"],
    )
    return decorate(namespace["body"])


@pytest.mark.parametrize("dtype", DTYPES)
def test_as_tensorflow(dtype: str) -> None:
    if dtype == "string":
        x, y = (tf.constant([[b"a"], [b"b"]][n]) for n in range(2))
    else:
        x, y = (tf.cast(tf.constant(numbers), dtype) for numbers in NUMBERS)
    for expression in OPERATORS:
        try:
            theirs = eval(expression, {}, {"x": x, "y": y})
        except (TypeError, ValueError, tf.errors.OpError):
            theirs = None
        op = op_of(expression, dtype, dtype if theirs is None else theirs.dtype.name)
        with composite.options(backend="tf"):
            if theirs is None:
                with pytest.raises((TypeError, ValueError, tf.errors.OpError)):
                    op(x, y)
            else:
                np.testing.assert_array_equal(op(x, y), theirs, err_msg=expression)
