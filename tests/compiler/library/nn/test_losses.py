"""Losses of tf.nn: which shapes they take. What they give is held by test_library.py."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite


@pytest.mark.parametrize(
    "call",
    [
        "tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=y)",
        "tf.nn.weighted_cross_entropy_with_logits(x, y, 2.0)",
        "tf.nn.log_poisson_loss(x, y)",
    ],
)
def test_shapes_that_would_broadcast_are_refused(tmp_path: Path, call: str) -> None:
    path = tmp_path / "losses.py"
    path.write_text(f"import tensorflow as tf\n\n\ndef body(x, y):\n    return {call}\n")
    namespace: dict[str, Any] = {"__name__": "losses"}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    name = f"RefusedLoss{zlib.crc32(call.encode())}"
    op = composite.Composite(name, inputs=["x: float", "y: float"], outputs=["o: float"])(
        namespace["body"]
    )
    one, three = tf.constant([0.5]), tf.constant([0.5, 1.0, 0.0])
    np.testing.assert_allclose(op(three, three), op.python_function(three, three), rtol=1e-6)
    for x, y in ((one, three), (three, one), (tf.constant(1.0), one)):
        for function in (op, op.python_function, tf.function(op)):
            with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="shape"):
                function(x, y)
    unknown = tf.TensorSpec([None], tf.float32)
    loss = tf.function(op, input_signature=[unknown] * 2)
    np.testing.assert_allclose(loss(three, three), op(three, three))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have one shape"):
        loss(one, three)
