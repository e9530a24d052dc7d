"""numerics="invariant": which path calls take, and that rows have the same bits in any batch."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite


@Composite("TestInvariant", inputs=["x: float", "w: float", "b: float"], outputs=["y: float"])
def layer(x, w, b):
    """A dense layer, and a softmax."""
    return tf.nn.softmax(tf.nn.gelu(tf.matmul(x, w, transpose_b=True) + b))


@Composite("TestInvariantSorted", inputs=["x: float"], outputs=["y: float"])
def without_kernel(x):
    """An op that the compiler has no lowering for."""
    return tf.raw_ops.Betainc(a=tf.abs(x), b=tf.abs(x), x=tf.sigmoid(x))


RANDOM = np.random.default_rng(0)
ROWS = 40
X = RANDOM.standard_normal((ROWS, 300)).astype(np.float32)
W = (RANDOM.standard_normal((33, 300)) / 18).astype(np.float32)
B = RANDOM.standard_normal(33).astype(np.float32)


def assert_rows_are_those_of_the_whole(function):
    whole = np.asarray(function(X))
    for count in (1, 2, 17, ROWS - 1):
        for first in (0, ROWS - count):
            part = np.asarray(function(X[first : first + count]))
            assert part.tobytes() == whole[first : first + count].tobytes()


def gradient(x):
    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, W, B) * B
    return tape.gradient(y, x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: layer(x, W, B),
        tf.function(lambda x: layer(x, W, B), reduce_retracing=True),
        gradient,
        tf.function(gradient, reduce_retracing=True),
    ],
    ids=["eager", "graph", "eager gradient", "gradient"],
)
def test_rows_have_the_same_bits_in_any_batch(function):
    with composite.options(numerics="invariant"):
        assert_rows_are_those_of_the_whole(function)


def test_weights_in_variables_and_constants_give_the_same_bits():
    variable = tf.Variable(W)
    of_variable = tf.function(lambda x: layer(x, variable, B))
    of_argument = tf.function(lambda x, w: layer(x, w, B))
    with composite.options(numerics="invariant"):
        expected = layer(X, W, B).numpy().tobytes()
        for _ in range(20):  # packed once it has been at rest for a while
            assert of_variable(X).numpy().tobytes() == expected
        composite.wait()
        assert of_variable(X).numpy().tobytes() == expected
        assert of_argument(X, tf.constant(W)).numpy().tobytes() == expected
        assert tf.function(lambda x: layer(x, W, B))(X).numpy().tobytes() == expected


def test_the_first_call_waits_for_its_kernel_and_no_other_one_serves():
    shape = (7, 11)
    x, w, b = (RANDOM.standard_normal(s).astype(np.float32) for s in (shape, (5, 11), (5,)))
    with composite.options(backend="tvm"):
        layer(x, w, b)
    with composite.options(numerics="invariant"):
        told = composite.explain(layer, x, w, b)
        assert told.path == "expansion"
        assert told.reason.endswith('with numerics="invariant" the call waits for its kernel')
        before = composite.stats()
        layer(x, w, b)
        counted = composite.stats() - before
        told = composite.explain(layer, x, w, b)
    assert counted["kernel_launches"] == 1
    assert counted["expansion_runs"] == 0
    assert told.path == "kernel"
    assert told.reason.endswith("its rows have the same bits in any batch")


def test_strict_and_fast_calls_keep_their_own_paths():
    with composite.options(numerics="invariant"):
        layer(X, W, B)
        with composite.options(numerics="strict"):
            assert composite.explain(layer, X, W, B).reason == 'numerics="strict"'
    told = composite.explain(layer, X, W, B)
    assert "same bits in any batch" not in told.reason


def test_without_a_kernel_tensorflows_ops_run():
    x = X[:3, :4]
    with composite.options(numerics="invariant"):
        y = without_kernel(x)
        told = composite.explain(without_kernel, x)
    expected = without_kernel.python_function(x)
    np.testing.assert_array_equal(y, expected)
    assert told.path == "expansion"
    assert told.reason.endswith("the rows of TensorFlow's ops may depend on their batch")


def test_a_kernel_is_a_must_with_the_backend_of_kernels():
    with (
        composite.options(numerics="invariant", backend="tvm"),
        pytest.raises(tf.errors.FailedPreconditionError, match="Betainc"),
    ):
        without_kernel(X[:3, :5])


def test_an_unknown_value_names_those_there_are():
    with (
        pytest.raises(ValueError, match="'fast', 'strict', 'invariant'"),
        composite.options(numerics="batch"),
    ):
        pass


SOURCE = """
import tensorflow as tf
from composite import Composite

@Composite("TestInvariantBuilt", inputs=["x: float", "w: float"], outputs=["y: float"])
def built(x, w):
    return tf.tanh(tf.matmul(x, w))
"""
SIGNATURES = {"built": [{"x": ("float32", ["n", 300]), "w": ("float32", [300, 21])}]}
SERVING = """
import sys, hashlib
import numpy as np
import composite

ops = composite.load(sys.argv[1])
random = np.random.default_rng(0)
x = random.standard_normal((40, 300)).astype(np.float32)
w = random.standard_normal((300, 21)).astype(np.float32)
with composite.options(numerics="invariant", backend="tvm"):
    whole = ops.built(x, w).numpy()
    for row in range(40):
        assert ops.built(x[row : row + 1], w).numpy().tobytes() == whole[row].tobytes()
assert composite.explain(ops.built, x, w).path == "expansion"
with composite.options(numerics="invariant"):
    for _ in range(3):
        ops.built(x, w[:, :20])
print("digest", hashlib.sha256(whole).hexdigest())
"""


def test_a_built_library_serves_calls_with_any_number_of_threads(tmp_path, run_python):
    source = tmp_path / "ops_of_rows.py"
    source.write_text(SOURCE)
    built = composite.build(source, tmp_path / "lib", signatures=SIGNATURES, numerics="invariant")
    environment = {"COMPOSITE_JIT": "0", "TF_CPP_MIN_LOG_LEVEL": "0"}
    digests = set()
    for threads in (1, 4):
        done = run_python(SERVING, str(built), intra=threads, env=environment)
        digests |= {line for line in done.stdout.splitlines() if line.startswith("digest")}
        # The calls that it has no kernel for, once.
        assert done.stderr.count("whose rows may depend on their batch") == 1
    assert len(digests) == 1


def test_a_library_for_gpus_is_refused(tmp_path):
    source = tmp_path / "ops_of_gpus.py"
    source.write_text(SOURCE.replace("TestInvariantBuilt", "TestInvariantGpu"))
    with pytest.raises(ValueError, match="for CPUs alone"):
        composite.build(source, tmp_path / "lib", targets=["cuda:sm_90"], numerics="invariant")
    with pytest.raises(ValueError, match="'fast' or 'invariant'"):
        composite.build(source, tmp_path / "lib", numerics="strict")


@pytest.mark.slow
def test_what_xla_compiles_has_the_bits_of_nodes():
    before = composite.stats()
    with composite.options(numerics="invariant"):
        compiled = tf.function(lambda x: layer(x, W, B), jit_compile=True, autograph=False)
        assert_rows_are_those_of_the_whole(compiled)
        assert np.asarray(compiled(X)).tobytes() == np.asarray(layer(X, W, B)).tobytes()
        said = composite.explain(layer, X, W, B).xla
    counted = composite.stats() - before
    assert counted["xla_kernel_nodes"] == counted["xla_nodes"] > 1
    assert said.startswith("kernel"), said


def test_what_has_no_invariant_kernel_is_compiled_by_xla_as_it_is():
    with composite.options(numerics="invariant"):
        compiled = tf.function(without_kernel, jit_compile=True, autograph=False)
        found = compiled(X[:3, :40])
        assert composite.explain(without_kernel, X[:3, :40]).xla.startswith("expansion")
    np.testing.assert_allclose(found, without_kernel(X[:3, :40]), rtol=1e-3, atol=1e-5)
