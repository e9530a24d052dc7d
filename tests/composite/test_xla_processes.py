"""Composites under XLA where it matters when and where they became known.

Clusters that TensorFlow forms itself, models that are loaded in a process without the source, ops
that are decorated after XLA was used, bodies that are replaced.
"""

from __future__ import annotations

import linecache
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.composite import xla_ops as ops
from tests.conftest import RunPython

X = np.random.default_rng(5).standard_normal((4, 3)).astype(np.float32)


def defined(name: str, body: str, inputs: str = '"x: float"') -> Any:
    """An op as a notebook cell defines it: again, from the same place, is a new version."""
    parameters = ", ".join(part.strip(' "').split(":")[0] for part in inputs.split(","))
    text = f'@Composite("{name}", inputs=[{inputs}], outputs=["y: float"])\n'
    text += f"def made({parameters}):\n{textwrap.indent(body, '    ')}\n"
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"tf": tf, "Composite": composite.Composite, "__name__": "cell"}
    exec(compile(text, filename, "exec"), scope)
    return scope["made"]


def jit(function: Any) -> Any:
    return tf.function(function, jit_compile=True, autograph=False)


def test_an_op_that_is_new_after_xla_was_used() -> None:
    assert float(jit(lambda: tf.constant(1.0) + 1)()) == 2
    late = defined("XlaLate", "return tf.reshape(x, shape) * 2", '"x: float", "shape: int32"')
    np.testing.assert_allclose(jit(late)(X, tf.constant([12])), 2 * X.reshape(12))


def test_a_new_body_and_the_one_before() -> None:
    one = defined("XlaVersioned", "return x * 2.0")
    before = jit(lambda x: one(x) + 0.0)
    before(X)
    two = defined("XlaVersioned", "return x * 3.0")
    assert one.digest != two.digest
    for old in (before, jit(one)):
        np.testing.assert_allclose(old(tf.ones([2, 5])), 2 * np.ones([2, 5]))
    np.testing.assert_allclose(jit(two)(X), 3 * X, rtol=1e-6)


def test_no_kernel_for_an_op_of_tensorflow() -> None:
    """A composition has one for its own name, and takes nothing from the op that it is for."""

    @composite.Composite("Softsign")
    def softsign(features):
        return features / (2 + tf.abs(features))

    np.testing.assert_allclose(jit(softsign)(X), X / (2 + np.abs(X)), rtol=1e-5)
    np.testing.assert_allclose(jit(tf.nn.softsign)(X), X / (1 + np.abs(X)), rtol=1e-5)


def test_a_saved_model_that_xla_compiles(tmp_path: Path, run_python: RunPython) -> None:
    class Model(tf.Module):
        @tf.function(jit_compile=True, input_signature=[tf.TensorSpec([None, 3])])
        def gradient(self, x: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = ops.weak(ops.activated(x, 0.5, act="tanh", times=2))
            return tape.gradient(y, x)

        @tf.function(jit_compile=True, input_signature=[tf.TensorSpec([None, 3])])
        def forward(self, x: Any) -> Any:
            return ops.decided(ops.reshaped(ops.weak(x), [-1]))

    model = Model()
    tf.saved_model.save(model, tmp_path / "model")
    composite.build(ops.__file__, tmp_path / "library", name="xla_ops_built")
    np.save(tmp_path / "x.npy", X)
    run_python(
        "import sys, numpy as np, tensorflow as tf, composite\n"
        "folder = sys.argv[1]\n"
        "composite.load(folder + '/library')\n"
        "model = tf.saved_model.load(folder + '/model')\n"
        "x = np.load(folder + '/x.npy')\n"
        "for name in ('forward', 'gradient'):\n"
        "    np.save(f'{folder}/{name}.npy', getattr(model, name)(x))\n"
        "assert composite.stats()['xla_nodes'] >= 3\n"
        "assert not any('tvm' in m or 'mlir' in m.lower() for m in sys.modules if '.' not in m)\n",
        str(tmp_path),
    )
    for name in ("forward", "gradient"):
        found = np.load(tmp_path / f"{name}.npy")
        np.testing.assert_allclose(found, getattr(model, name)(X), rtol=1e-5, atol=1e-6)


_CLUSTERED = """
import sys
import numpy as np, tensorflow as tf, composite
from tests.composite import xla_ops as ops

tf.config.optimizer.set_jit("autoclustering")
x = tf.constant(np.load(sys.argv[1]))


def compiled(function, *inputs):
    before = composite.stats()
    result = tf.function(function, autograph=False)(*inputs)
    return result, (composite.stats() - before)["xla_nodes"]


def chain(x):
    return ops.weak(ops.decided(ops.activated(x, 0.5, act="tanh") * 2) + 1)

found, nodes = compiled(chain, x)
assert nodes >= 3, nodes
expected = ops.decided.python_function(tf.tanh(x * 0.5) * 2) + 1
np.testing.assert_allclose(found, ops.weak.python_function(expected), rtol=1e-5, atol=1e-5)

found, nodes = compiled(lambda x, s: ops.reshaped(tf.tanh(x) * 2, s) * 3, x, tf.constant([2, 6]))
assert nodes >= 1, nodes
np.testing.assert_allclose(found, tf.reshape(tf.tanh(x) * 6, [2, 6]), rtol=1e-5)

def slope(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = ops.activated(x * 2, 0.5, act="tanh") * 3
    return tape.gradient(y, x)

found, nodes = compiled(slope, x)
np.testing.assert_allclose(found, 3 * (1 - tf.tanh(x) ** 2), rtol=1e-4, atol=1e-5)

# What XLA cannot compile runs without it.
found, nodes = compiled(lambda x: ops.spelled(x * 2, spell=True) * 3 + tf.tanh(x), x)
assert nodes == 0, nodes
spelled = tf.cast(tf.strings.length(tf.strings.as_string(x * 2)), tf.float32)
np.testing.assert_allclose(found, spelled * 3 + tf.tanh(x), rtol=1e-5)
"""


def test_clusters_that_tensorflow_forms(tmp_path: Path, run_python: RunPython) -> None:
    np.save(tmp_path / "x.npy", X)
    flags = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=2"
    run_python(_CLUSTERED, str(tmp_path / "x.npy"), env={"TF_XLA_FLAGS": flags})


@pytest.mark.slow
@pytest.mark.skipif(not tf.config.list_physical_devices("GPU"), reason="there is no GPU")
def test_on_a_gpu() -> None:
    with tf.device("GPU:0"):
        np.testing.assert_allclose(jit(ops.weak)(X), ops.weak.python_function(X), rtol=1e-5)
