"""No call of a check ends the process over an empty product, where TensorFlow uses oneDNN."""

import numpy as np
import pytest
import tensorflow as tf

from composite.checking.empty_products import unfused
from composite.checking.oracle import Case
from composite.checking.sample import Sample
from tests.composite import dense_ops
from tests.composite.checking import ops

REMAPPING = "remapping"


def remapping():
    return tf.config.optimizer.get_experimental_options().get(REMAPPING)


@pytest.mark.parametrize(
    ("op", "shapes", "attrs", "is_off"),
    [
        (dense_ops.two_layers, ([2, 3], [3, 3], [3]), {}, False),
        (dense_ops.two_layers, ([2, 0], [0, 0], [0]), {}, True),
        (ops.of_first_columns, ([2, 3], [3, 4], [4]), {"n": 0}, True),
        (ops.of_first_columns, ([2, 3], [3, 4], [4]), {"n": 1}, False),
    ],
)
@pytest.mark.parametrize("chosen", [True, False])
def test_the_remapper_is_off_where_a_product_is_empty(op, shapes, attrs, is_off, chosen):
    case = Case(op, Sample(tuple(np.ones(s, np.float32) for s in shapes), attrs))
    tf.config.optimizer.set_experimental_options({REMAPPING: chosen})
    try:
        with unfused(case):
            assert remapping() == (chosen and not is_off)
        assert remapping() == chosen
    finally:
        tf.config.optimizer.set_experimental_options({REMAPPING: True})


CHECK = """
import numpy as np
import composite
from tests.composite import dense_ops
from tests.composite.checking import ops
ways = ["eager", "tf.function", "unknown dims", "unknown ranks", "gradient", "vectorized_map"]
def check(op, *shapes, **attrs):
    inputs = [np.ones(shape, np.float32) for shape in shapes]
    composite.check(op, *inputs, ways=ways, samples=1, **attrs)
check(dense_ops.two_layers, [2, 0], [0, 0], [0])
check(dense_ops.dense, [2, 0], [3, 0], [3], act="TANH")
check(dense_ops.dense, [2, 3], [0, 3], [0], act="RELU")
check(ops.of_first_columns, [2, 3], [3, 4], [4], n=0)
print("checked")
"""


@pytest.mark.slow
def test_no_empty_product_ends_the_process(run_python):
    done = run_python(CHECK, env={"TF_ENABLE_ONEDNN_OPTS": "1", "COMPOSITE_JIT": "0"})
    assert done.stdout.splitlines()[-1] == "checked"


MEASURED = """
import numpy as np
import composite
from tests.composite.checking import ops
x, w, b = (np.ones(shape, np.float32) for shape in ([1, 1], [1, 1], [1]))
with composite.options(backend="tvm"):
    ops.of_first_columns(x, w, b, n=0)
assert composite.wait(60)
print("measured")
"""


@pytest.mark.slow
def test_nor_does_the_measurement_of_a_kernel(run_python):
    done = run_python(MEASURED, env={"TF_ENABLE_ONEDNN_OPTS": "1"})
    assert done.stdout.splitlines()[-1] == "measured"
