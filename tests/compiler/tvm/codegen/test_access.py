"""Elements are computed as the author's ops are: a result is rounded before another op reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm import Target

# Each is zero for equal inputs, as long as both products are rounded or neither is.
DIFFERENCES: dict[str, Callable[[Any, Any], Any]] = {
    "of products": lambda x, y: x * x - y * y,
    "of squares": lambda x, y: tf.square(x) - tf.square(y),
    "of powers": lambda x, y: tf.pow(x, 3.0) - tf.pow(y, 3.0),
    "of reshaped products": lambda x, y: tf.reshape(x * x, [7, -1]) - tf.reshape(y * y, [7, -1]),
    "of a product and a sliced one": lambda x, y: (x * x)[1:] - (y * y)[1:],
    "of products and a third": lambda x, y: (x * y - x * x) * 3.0 - (y * x - y * y),
    "in a reduction": lambda x, y: tf.reduce_sum(x * x - y * y),
    "of sums of products": lambda x, y: tf.reduce_sum(x * x) - tf.reduce_sum(y * y),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("what", DIFFERENCES)
def test_the_difference_of_equal_products_is_zero(compiler: Any, what: str, dtype: Any) -> None:
    x = np.linspace(0.1, 3, 1001).astype(dtype)
    loaded = compiler.compile(DIFFERENCES[what], [x, x], target=Target.of("x86-64-v3", 2))
    (result,) = loaded([x, x], [DIFFERENCES[what](x, x).shape], [dtype])
    assert not result.any(), result[result != 0][:4]
