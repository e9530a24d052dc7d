"""Modules and their files: what docs/hybrid.md says of them, beside what they compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import hybrid
from composite.compiler.tvm import Target
from tests.conftest import RunPython

pytestmark = pytest.mark.slow

SPEC = tf.TensorSpec([None, 16], tf.float32)
X = tf.constant(np.random.default_rng(0).standard_normal((3, 16)), tf.float32)


def scaled(factor: float) -> Any:
    def function(x: Any) -> Any:
        return tf.tanh(x * factor) + 1.0

    return function


@pytest.fixture(scope="module")
def module() -> hybrid.HybridModule:
    return hybrid.compile(scaled(2.0), SPEC)


def test_the_file_of_an_open_module_may_be_replaced(
    module: hybrid.HybridModule, tmp_path: Path
) -> None:
    other = hybrid.compile(scaled(0.5), SPEC)
    path = tmp_path / "model.so"
    module.save(path)
    first = hybrid.load(path)
    other.save(path)  # another file under the name
    second = hybrid.load(path)
    path.write_bytes(b"written in place")
    path.unlink()
    for _ in range(2):
        np.testing.assert_array_equal(first(X), module(X))
        np.testing.assert_array_equal(second(X), other(X))
    assert not np.allclose(first(X), second(X))


def test_a_module_is_for_cpus_as_the_one_that_compiled_it(
    module: hybrid.HybridModule, tmp_path: Path, run_python: RunPython
) -> None:
    if Target.host().isa == "x86-64-v2":
        pytest.skip("there is no lower level")
    module.save(tmp_path / "model.so")
    assert module.description.isa == Target.host().isa
    code = """
import sys
import tensorflow as tf
from composite import hybrid
try:
    hybrid.load(sys.argv[1])
except ValueError as error:
    print(error)
lower = hybrid.compile(lambda x: tf.tanh(x * 2.0) + 1.0, tf.TensorSpec([None, 16], tf.float32))
print(lower.description.isa)
lower.save(sys.argv[2])
"""
    paths = str(tmp_path / "model.so"), str(tmp_path / "lower.so")
    done = run_python(code, *paths, env={"COMPOSITE_ISA": "x86-64-v2"})
    refused, isa = done.stdout.strip().splitlines()
    assert "COMPOSITE_ISA=x86-64-v2" in refused
    assert "compile the model here, or with COMPOSITE_ISA set to a lower level" in refused
    assert isa == "x86-64-v2"
    np.testing.assert_allclose(
        hybrid.load(tmp_path / "lower.so")(X), module(X), rtol=1e-5, atol=1e-6
    )


def test_what_tensorflow_runs_may_be_stated() -> None:
    found = []
    for options in ({}, {"deny": ["Tanh"]}, {"min_ops": 3}, {"min_ops": 4}):
        module = hybrid.compile(scaled(2.0), SPEC, **options)
        assert module.report is not None
        found.append((module.report.kernels, module.report.calls))
        np.testing.assert_allclose(module(X), scaled(2.0)(X), rtol=1e-5, atol=1e-6)
    assert found == [(1, 0), (0, 1), (1, 0), (0, 1)]


def test_a_trace_is_compiled(module: hybrid.HybridModule) -> None:
    traced = tf.function(scaled(2.0)).get_concrete_function(SPEC)
    np.testing.assert_array_equal(hybrid.compile(traced)(X), module(X))


def test_strings_by_tvms_own_means(tmp_path: Path) -> None:
    import tvm

    hybrid.compile(tf.strings.upper, tf.constant(["a"])).save(tmp_path / "upper.so")
    hybrid.register()
    vm = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(tmp_path / "upper.so")), tvm.cpu())
    (upper,) = vm["main"](hybrid.Opaque(tf.constant(["b"])))
    assert upper.tensor.numpy().tolist() == [b"B"]


def address(x: Any) -> int:
    return int(np.asarray(memoryview(x)).ctypes.data)


def test_tensors_go_through_without_a_copy() -> None:
    """From the caller to TensorFlow, from there to a kernel, and back to the caller."""

    def reshaped(x: Any) -> Any:  # by TensorFlow, in the same memory
        flat = tf.reshape(x, [-1])
        y = tf.tanh(flat) * 2.0 + 1.0
        return x, flat, y, tf.reshape(y, [2, -1])

    module = hybrid.compile(reshaped, X, deny=["Reshape"])
    report = module.report
    assert report is not None
    assert [p.where for p in report.parts] == ["TensorFlow", "kernel", "TensorFlow"]
    same, flat, y, pairs = module(X)
    assert address(X) == address(same) == address(flat)
    assert address(y) == address(pairs) != address(X)


@pytest.mark.parametrize("offset", [4, 16])
def test_what_is_not_aligned_is_copied(module: hybrid.HybridModule, offset: int) -> None:
    raw = np.zeros(X.numpy().nbytes + 128, np.uint8)
    begin = -raw.ctypes.data % 64 + offset
    rows = raw[begin : begin + X.numpy().nbytes].view(np.float32).reshape(X.shape)
    rows[...] = X
    lent = tf.experimental.dlpack.from_dlpack(rows.__dlpack__())
    np.testing.assert_array_equal(module(lent), module(X))


def test_a_module_has_no_gradients(module: hybrid.HybridModule) -> None:
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = module(X)
    assert tape.gradient(y, X) is None


def test_effects_that_no_output_waits_for_are_left_out_and_named(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def idle() -> Any:
        x = tf.compat.v1.placeholder(tf.float32, [None, 16], "x")
        tf.raw_ops.PrintV2(input="idle", output_stream="stderr", name="print")
        return tf.add(tf.tanh(x), 1.0, "y")

    graph = tf.compat.v1.wrap_function(idle, [])
    ends = [graph.graph.as_graph_element(name) for name in ("x:0", "y:0", "print")]
    module = hybrid.compile(graph.prune(ends[0], ends[1:], input_signature=((SPEC,), {})))
    assert module.report is not None
    assert module.report.left_out == ("PrintV2",)
    assert "no output waits for PrintV2: left out" in str(module.report)
    capfd.readouterr()
    y, _ = module(X)
    np.testing.assert_allclose(y, tf.tanh(X) + 1.0, rtol=1e-5, atol=1e-6)
    assert capfd.readouterr().err == ""


def test_kernels_run_on_the_threads_of_tensorflow(run_python: RunPython) -> None:
    """Of which there are as many as it is told: with one, the caller's own."""
    code = """
import resource
import numpy as np, tensorflow as tf
from composite import hybrid
w = tf.constant(np.random.default_rng(0).standard_normal((512, 512)), tf.float32)
def f(x):
    return tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, w) / 23.0), w) / 23.0)
module = hybrid.compile(f, tf.TensorSpec([None, 512], tf.float32))
assert (module.report.kernels, module.report.calls) == (1, 0)
x = tf.ones([256, 512])
module(x)
def seconds(of):
    used = resource.getrusage(of)
    return used.ru_utime + used.ru_stime
own, all_ = seconds(resource.RUSAGE_THREAD), seconds(resource.RUSAGE_SELF)
others = 0.0
while seconds(resource.RUSAGE_THREAD) < own + LIMIT and others < 0.05:
    module(x)
    others = seconds(resource.RUSAGE_SELF) - all_ - (seconds(resource.RUSAGE_THREAD) - own)
print(others)
"""
    assert float(run_python(code.replace("LIMIT", "0.5"), intra=1).stdout) < 0.05
    if Target.host().cores > 1:  # which others may use
        assert float(run_python(code.replace("LIMIT", "20"), intra=2).stdout) >= 0.05


@pytest.mark.skipif(Target.host().cores < 2, reason="there is one thread")
def test_by_tvms_own_means_kernels_run_on_the_threads_of_tvm(
    tmp_path: Path, run_python: RunPython
) -> None:
    """Of which there are two, where TensorFlow has one."""
    weights = tf.constant(np.random.default_rng(0).standard_normal((512, 512)), tf.float32)

    def layers(x: Any) -> Any:
        return tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, weights) / 23.0), weights) / 23.0)

    hybrid.compile(layers, tf.TensorSpec([256, 512], tf.float32)).save(tmp_path / "layers.so")
    code = """
import resource, sys
import numpy as np, tvm
from composite import hybrid
hybrid.register()
main = tvm.relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())["main"]
x = tvm.runtime.tensor(np.ones([256, 512], np.float32))
main(x)
def seconds(of):
    used = resource.getrusage(of)
    return used.ru_utime + used.ru_stime
own, all_ = seconds(resource.RUSAGE_THREAD), seconds(resource.RUSAGE_SELF)
while seconds(resource.RUSAGE_THREAD) < own + 0.3:
    main(x)
print(seconds(resource.RUSAGE_SELF) - all_ - (seconds(resource.RUSAGE_THREAD) - own))
"""
    path = str(tmp_path / "layers.so")
    assert float(run_python(code, path, intra=1, env={"TVM_NUM_THREADS": "2"}).stdout) > 0.05


def test_tvms_table_has_the_functions_of_modules_while_a_vm_starts(run_python: RunPython) -> None:
    code = """
import tensorflow as tf, tvm
from composite import hybrid
def there():
    names = ("call_tf", "call_tf_once", "call_kernel", "memory", "require")
    found = [tvm.get_global_func(f"composite.hybrid.{n}", allow_missing=True) for n in names]
    return sum(one is not None for one in found)
hybrid.compile(tf.strings.upper, tf.constant(["a"]))(["a"])
print(there())
hybrid.register()
print(there())
hybrid.compile(tf.strings.lower, tf.constant(["a"]))(["a"])
print(there())
"""
    assert run_python(code).stdout.split() == ["0", "5", "5"]
