"""tf.vectorized_map over models in a process that has a built library, and no body in Python."""

from pathlib import Path

import pytest

import composite
from tests.composite.vectorize import mapped_ops

_SAVE = """
import sys
import tensorflow as tf
from tests.composite.vectorize import mapped_ops as ops

class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([4]), tf.TensorSpec([4])])
    def __call__(self, x, y):
        product = ops.matmul(x[None], y[:, None])
        return self.inner(x, y) + ops.elements(x, 0.5) + tf.reduce_sum(product)

    @tf.function(input_signature=[tf.TensorSpec([4]), tf.TensorSpec([4])])
    def inner(self, x, y):
        return ops.loops(ops.chooses(x, y), tf.abs(y) + 0.1)

    @tf.function(input_signature=[tf.TensorSpec([4]), tf.TensorSpec([4])])
    def slope(self, x, y):
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = self(x, y)
        return tape.jacobian(z, x)

    @tf.function(input_signature=[tf.TensorSpec([4]), tf.TensorSpec([4, 4])])
    def row(self, x, w):
        return ops.elements(x, 0.5) * ops.matmul(x[None], w)[0]

    @tf.function(input_signature=[tf.TensorSpec([3, 4]), tf.TensorSpec([4, 4])])
    def slopes(self, x, w):
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = tf.vectorized_map(lambda one: self.row(one, w), x)
        return tape.gradient(z, x)

tf.saved_model.save(Model(), sys.argv[1])
"""
_LOAD = """
import sys
import numpy as np
import tensorflow as tf
import composite
composite.load(sys.argv[1])
model = tf.saved_model.load(sys.argv[2])
random = np.random.default_rng(5)
x, y = (tf.constant(random.standard_normal([3, 4]).astype(np.float32)) for _ in "xy")
rows = lambda f: tf.stack([f(x[i], y[i]) for i in range(3)])
close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
warned = []
tf.get_logger().addFilter(lambda record: warned.append(record.getMessage()) or True)
call = lambda xy: model.inner(*xy)
close(tf.vectorized_map(call, (x, y)), rows(model.inner))
close(tf.vectorized_map(lambda xy: model(*xy), (x, y)), rows(model))
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    z = model(x[0], y[0])
found = tape.jacobian(z, x)[:, 0]
close(found, tape.jacobian(z, x, experimental_use_pfor=False)[:, 0])
close(found, model.slope(x[0], y[0]))
w = tf.constant(random.standard_normal([4, 4]).astype(np.float32))
with tf.GradientTape() as tape:
    tape.watch(x)
    z = tf.stack([model.row(one, w) for one in tf.unstack(x)])
close(model.slopes(x, w), tape.gradient(z, x))
assert not [text for text in warned if "while_loop" in text], warned
assert "tvm" not in sys.modules and "tests.composite.vectorize.mapped_ops" not in sys.modules
print("mapped")
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "lib"
    return composite.build(Path(mapped_ops.__file__), folder, name="mapped_lib")


def test_a_saved_model_in_a_fresh_process(library, run_python, tmp_path):
    model = str(tmp_path / "model")
    run_python(_SAVE, model)
    assert run_python(_LOAD, str(library), model).stdout.endswith("mapped\n")
