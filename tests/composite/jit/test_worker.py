"""From a first call to a kernel that was compiled behind it, in processes of their own."""

import pytest

from composite.binding.records import record
from composite.jit import worker

_FIRST = """
import threading, time, sys
import numpy as np
import tensorflow as tf
import composite
from tests.composite.dense_ops import dense

random = np.random.default_rng(0)
x = random.standard_normal((32, 256)).astype(np.float32)
w = random.standard_normal((256, 256)).astype(np.float32)
b = random.standard_normal(256).astype(np.float32)
expected = dense.python_function(x, w, b, "RELU").numpy()
"""

_COMPILES = (
    _FIRST
    + """
np.testing.assert_allclose(dense(x, w, b, act="RELU"), expected, rtol=1e-4, atol=1e-4)
told = composite.explain(dense, x, w, b, act="RELU")
print("first", told.path)
assert composite.wait(timeout=60)
told = composite.explain(dense, x, w, b, act="RELU")
print("then", told.path, told.kernel, told)
assert told.kernel_us and told.expansion_us, told
assert (told.path == "kernel") == (told.kernel_us <= told.expansion_us * 1.2), told
before = composite.stats()
with composite.options(backend="tvm"):
    found = dense(x, w, b, act="RELU")
np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
since = composite.stats() - before
assert since["kernel_launches"] == 1 and since["expansion_runs"] == 0, since
assert composite.stats()["copies"] == 0
print("compiles", composite.stats()["compiles"])
"""
)


def test_a_kernel_arrives_and_the_next_process_finds_it(run_python, tmp_path):
    env = {"COMPOSITE_CACHE_DIR": str(tmp_path / "cache"), "COMPOSITE_LOG": "info"}
    first = run_python(_COMPILES, env=env)
    assert "first compiling" in first.stdout
    assert "compiled in" in first.stderr
    second = run_python(_COMPILES + "assert 'tvm' not in sys.modules", env=env)
    assert "is in the cache" in second.stderr
    assert "compiled in" not in second.stderr
    for library in (tmp_path / "cache" / "v1" / "objects").iterdir():
        library.write_bytes(library.read_bytes()[:1000])
    third = run_python(_COMPILES, env=env)
    assert "is damaged" in third.stderr
    assert "compiled in" in third.stderr


def test_must_waits_for_the_compiler(run_python):
    run_python(
        _FIRST
        + """
with composite.options(backend="tvm"):
    found = dense(x, w, b, act="RELU")
np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
stats = composite.stats()
assert stats["kernel_launches"] == 1 and stats["expansion_runs"] == 0, stats
""",
    )


def test_must_waits_in_the_only_thread(run_python):
    run_python(
        """
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
"""
        + _FIRST
        + """
with composite.options(backend="tvm"):
    traced = tf.function(lambda x: dense(x, w, b, act="RELU"))
    np.testing.assert_allclose(traced(x), expected, rtol=1e-4, atol=1e-4)

def mapped(x):
    with composite.options(backend="tvm"):
        return dense(x, w, b, act="TANH")

expected = dense.python_function(x[:8], w, b, "TANH").numpy()
(found,) = tf.data.Dataset.from_tensors(x[:8]).map(mapped)
np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
assert composite.stats()["kernel_launches"] >= 2
assert composite.stats()["expansion_runs"] == 0
"""
    )


def test_what_goes_wrong_around_a_kernel_fails_its_request_alone(run_python):
    run_python(
        _FIRST
        + """
from composite.jit import worker

def note(request, real=worker.recording.note, left=[1]):
    if left:
        left.pop()
        raise OSError("no place to note this")
    real(request)

worker.recording.note = note
with composite.options(backend="tvm"):
    try:
        dense(x, w, b, act="RELU")
        sys.exit("no error")
    except tf.errors.FailedPreconditionError as error:
        assert "no place to note this" in str(error), error
    found = dense(x[:5], w, b, act="RELU")
np.testing.assert_allclose(found, expected[:5], rtol=1e-4, atol=1e-4)
"""
    )


def test_a_request_that_is_none_fails_alone():
    message = record("Op", "7", _composite_program="abc", _in_shapes=[], _hints=[3])
    status, reason = worker._outcome(
        message, lambda: pytest.fail("a cache is opened"), lambda: False
    )
    assert status == "failed"
    assert "request 7 of Op: unknown field _hints; did you mean _hint?" in reason


def test_nobody_waits_for_a_thread_that_has_ended(run_python):
    found = run_python(
        _FIRST
        + """
from composite.jit import worker

def outcome(*_):
    raise SystemError("the compiler's thread is shot down")

worker._outcome = outcome
with composite.options(backend="tvm"):
    try:
        dense(x, w, b, act="RELU")
        sys.exit("no error")
    except tf.errors.FailedPreconditionError as error:
        assert "not running in this process" in str(error), error
assert composite.wait(timeout=10)
np.testing.assert_allclose(dense(x, w, b, act="RELU"), expected, rtol=1e-4, atol=1e-4)
"""
    )
    assert "the compiler's thread is shot down" in found.stderr


def test_a_call_that_cannot_be_expanded_is_no_news_for_the_log(run_python):
    done = run_python(
        _FIRST
        + """
for backend in ("auto", "tvm"):
    with composite.options(backend=backend):
        try:
            dense(x, w[:7], b, act="RELU")
        except tf.errors.OpError as error:
            assert "Dimensions must be equal" in str(error), error
        else:
            raise AssertionError("the shapes do not fit")
assert composite.wait(timeout=60)
"""
    )
    assert "Traceback" not in done.stderr


def test_without_the_worker(run_python):
    run_python(
        _FIRST
        + """
np.testing.assert_allclose(dense(x, w, b, act="RELU"), expected, rtol=1e-4, atol=1e-4)
assert composite.wait(timeout=1)
assert [t.name for t in threading.enumerate()] == ["MainThread"]
assert composite.explain(dense, x, w, b, act="RELU").path == "expansion"
try:
    with composite.options(backend="tvm"):
        dense(x, w, b, act="RELU")
except tf.errors.FailedPreconditionError as error:
    print(error.message)
else:
    sys.exit("no error")
""",
        env={"COMPOSITE_JIT": "0"},
    )


def test_one_thread_that_ends_with_the_interpreter(run_python):
    done = run_python(
        _FIRST
        + """
names = [t.name for t in threading.enumerate()]
assert names.count("composite-jit") == 1, names
dense(x, w, b, act="RELU")  # leaves while the compiler is at it
""",
        timeout=60,
    )
    assert done.stderr.count("Traceback") == 0


def test_a_forked_child_runs_expansions(run_python):
    run_python(
        """
import os, sys
from tests.composite import dense_ops
from composite.jit import worker
child = os.fork()
if child == 0:
    ok = not worker.running() and worker.wait(timeout=1)
    os._exit(0 if ok else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert worker.running()
""",
        timeout=60,
    )


@pytest.mark.slow
def test_many_batch_sizes_make_few_kernels(run_python):
    run_python(
        _FIRST
        + """
import resource
w, b = w[:16, :32], b[:16]
for batch in range(1, 200):
    dense(np.ones((batch, 32), np.float32), w, b)
composite.wait(timeout=60)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for batch in range(200, 10_200):
    dense(np.ones((batch, 32), np.float32), w, b)
assert composite.wait(timeout=60)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print("grown", grown // 1024, "MB; compiles", composite.stats()["compiles"])
assert grown < 100 * 1024
assert composite.stats()["compiles"] <= 8
""",
        timeout=300,
    )


_MANY_WAIT = """
import tensorflow as tf
import composite
from tests.composite.dense_ops import dense

@tf.function
def step(inputs, w, b):
    with composite.options(backend="tvm"):
        return [dense(x, w, b, act=("", "RELU", "RELU6", "TANH")[i % 4])
                for i, x in enumerate(inputs)]

step([tf.ones([8 + i, 64]) for i in range(8)], tf.ones([32, 64]), tf.ones([32]))
assert composite.stats()["kernel_launches"] == 8, composite.stats()
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_more_nodes_wait_for_kernels_than_there_are_threads(threads, tmp_path, run_python):
    # Kernels are measured on the threads that the waiting nodes have; none is in the cache.
    env = {"COMPOSITE_CACHE_DIR": str(tmp_path / "cache")}
    run_python(_MANY_WAIT, inter=threads, intra=threads, env=env, timeout=200)
