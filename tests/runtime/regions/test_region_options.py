"""Which processes form regions."""

from __future__ import annotations

from tests.conftest import RunPython

# Nothing here has a kernel, nor may get one: no other test of the process has installed any.
PROCESS = """
import numpy as np
import tensorflow as tf
import composite
from composite.binding import settings

def body(x):
    return tf.tanh(x * 1.75) * 3.5

def composite_accelerated_f(x):  # as a saved model has it
    return body(x)

ones = tf.ones([3])
with settings.options(regions=True):
    np.testing.assert_allclose(tf.function(body)(ones), body(ones), rtol=1e-6)
np.testing.assert_allclose(tf.function(composite_accelerated_f)(ones), body(ones), rtol=1e-6)
print(composite.stats()["regions"])
with settings.options(regions=True, backend="tvm"):  # where one is a must, its lack is told
    try:
        tf.function(body)(ones)
    except tf.errors.FailedPreconditionError as error:
        print("region" in str(error))
"""


def test_where_no_kernel_may_come_there_are_no_regions(run_python: RunPython) -> None:
    done = run_python(PROCESS, env={"COMPOSITE_JIT": "0"})
    assert done.stdout.splitlines()[-2:] == ["0", "True"]
