"""From a first call to a kernel that was compiled behind it, in processes of their own."""

from importlib import util

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
print("compiles", composite.stats()["compiles"], composite.stats()["answered"])
assert "tvm" not in sys.modules and "libtvm" not in open("/proc/self/maps").read()
"""
)


def test_a_kernel_arrives_and_the_next_process_finds_it(run_python, tmp_path):
    env = {"COMPOSITE_CACHE_DIR": str(tmp_path / "cache"), "COMPOSITE_LOG": "info"}
    first = run_python(_COMPILES, env=env)
    assert "first compiling" in first.stdout
    assert "compiled in" in first.stderr and "compiles 1 1" in first.stdout
    second = run_python(_COMPILES + "assert 'tvm' not in sys.modules", env=env)
    assert "is in the cache" in second.stderr
    assert "compiled in" not in second.stderr and "compiles 0 1" in second.stdout
    for library in (tmp_path / "cache" / "v1" / "objects").iterdir():
        library.write_bytes(library.read_bytes()[:1000])
    third = run_python(_COMPILES, env=env)
    assert "is damaged" in third.stderr
    assert "compiled in" in third.stderr and "compiles 1 1" in third.stdout


def test_must_waits_for_the_compiler(run_python):
    run_python(
        _FIRST
        + """
with composite.options(backend="tvm"):
    found = dense(x, w, b, act="RELU")
np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
stats = composite.stats()
assert stats["kernel_launches"] == 1 and stats["expansion_runs"] == 0, stats"""
    )


@pytest.mark.parametrize("steps", [20_000, 0])
def test_must_waits_in_the_only_thread(run_python, steps):
    run_python(  # with no steps, the expansion runs as one graph from the second time on
        f"""
import tensorflow as tf
from composite.reference import source
source._MOST_STEPS = {steps}
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

def produce(*args, real=worker.produce.produce, left=[1], **options):
    if left:
        left.pop()
        raise OSError("no place for a cache")
    return real(*args, **options)

worker.produce.produce = produce
with composite.options(backend="tvm"):
    try:
        dense(x, w, b, act="RELU")
        sys.exit("no error")
    except tf.errors.FailedPreconditionError as error:
        assert "no place for a cache" in str(error), error
    found = dense(x[:5], w, b, act="RELU")
np.testing.assert_allclose(found, expected[:5], rtol=1e-4, atol=1e-4)
"""
    )


def test_a_request_that_is_none_fails_alone():
    message = record("Op", "7", _composite_program="abc", _in_shapes=[], _hints=[3])
    outcome = worker._outcome(message, lambda: pytest.fail("a cache is opened"), lambda: False)
    assert outcome.status == "failed"
    assert "request 7 of Op: unknown field _hints; did you mean _hint?" in outcome.reason


def test_packages_are_looked_through_once(monkeypatch):
    monkeypatch.setenv(worker.ENVIRONMENT, "1")
    found = worker.enabled()
    monkeypatch.setattr(util, "find_spec", lambda _: pytest.fail("again"))
    assert worker.enabled() == found


def test_nobody_waits_for_a_thread_that_has_ended(run_python):
    found = run_python(
        _FIRST
        + """
from composite.jit import worker

def outcome(*_, **__):
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


# No op has run when it forks, so TensorFlow has no threads that a child would lack.
_FORKED = (
    _FIRST.partition("expected =")[0]
    + """
import os
from composite.binding.kernel_request import KernelRequest
from composite.compiler_process import client
from composite.jit import worker
"""
)


def test_forked_children_share_the_compiler(run_python, tmp_path):
    run_python(
        _FORKED
        + """
client.begin()
number = client._client.number
children = []
for rows in (3, 4):
    children.append(os.fork())
    if children[-1] == 0:
        with composite.options(backend="tvm"):
            found = dense(x[:rows], w, b, act="RELU")
        expected = np.maximum(x[:rows] @ w.T + b, 0)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        assert composite.wait(timeout=60)
        assert composite.stats()["kernel_launches"] >= 1
        assert client._client.number == number
        sys.exit(0)
for child in children:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""",
        env={"COMPOSITE_CACHE_DIR": str(tmp_path / "cache")},
        timeout=120,
    )


_LATE_CHILD = (
    _FORKED
    + """
with composite.options(backend="tvm"):
    dense(x, w, b, act="RELU")
assert composite.wait(timeout=60)
child = os.fork()
if child == 0:
    assert worker.running()
    for rows, known in ((32, True), (31, False)):
        dims = ((rows, 256), (256, 256), (256,))
        call = dense.request(*map(tf.TensorSpec, dims), act="RELU")
        message = KernelRequest.of_call(call).to_node_def()
        outcome = worker._outcome(message, worker.open_default, bool, must_be_known=True)
        assert (outcome.status in ("kernel", "expansion")) == known, outcome
        assert known or "the cache has no kernel that was measured" in outcome.reason, outcome
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
)


def test_a_child_without_tensorflows_threads_looks_into_the_cache(run_python, tmp_path):
    run_python(_LATE_CHILD, env={"COMPOSITE_CACHE_DIR": str(tmp_path / "cache")}, timeout=120)


def test_no_tvm_in_this_process(run_python, tmp_path):
    run_python(
        _FIRST
        + """
assert "tvm" not in sys.modules
with composite.options(backend="tvm"):
    dense(x, w, b, act="RELU")
assert composite.wait(timeout=60)
from tests.composite.dense_ops import scale
print(composite.check(scale, x[0], 3))
assert [name for name in sys.modules if name.partition(".")[0] in ("tvm", "tvm_ffi")] == []
with open("/proc/self/maps") as maps:
    assert "libtvm" not in maps.read()
""",
        env={"COMPOSITE_CACHE_DIR": str(tmp_path / "cache")},
    )


def test_whatever_the_compiler_raises_is_one_line(run_python, tmp_path):
    done = run_python(
        _FIRST
        + """
from composite.compiler_process import client
from composite.compiler_process.tasks import CompilerError

def perform(task, stopping=client.never):
    raise CompilerError("ValueError: zip() argument 2 is shorter", "a\\nlong\\ntrace")

client.perform = perform
dense(x, w, b, act="RELU")
assert composite.wait(timeout=60)
told = composite.explain(dense, x, w, b, act="RELU")
assert "compiling failed: ValueError: zip() argument 2 is shorter" in told.reason, told
from tests.composite.dense_ops import scale
print(composite.check(scale, x[0], 3))
""",
        env={"COMPOSITE_LOG": "warning", "COMPOSITE_CACHE_DIR": str(tmp_path / "cache")},
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("composite ")]
    assert len(lines) >= 1
    assert "TestDense (tests/composite/dense_ops.py:" in lines[0], lines
    assert all("/dense_ops.py:" in line for line in lines), lines
    assert all(line.endswith("ValueError: zip() argument 2 is shorter") for line in lines), lines
    assert "Traceback" not in done.stderr
    assert "no kernel: ValueError: zip() argument 2 is shorter" in done.stdout


@pytest.mark.timed
def test_no_thread_stands_still(run_python, tmp_path):
    """While a kernel is made: what other threads lose to the GIL is time that this process used."""
    done = run_python(
        _FIRST
        + """
np.asarray(tf.function(lambda a: tf.nn.relu(a @ a))(tf.ones((8, 8))))
losses, working = [], True

def tick():
    while working:
        wall, used = time.perf_counter(), time.process_time()
        time.sleep(0.005)
        wall, used = time.perf_counter() - wall - 0.005, time.process_time() - used
        losses.append(min(wall, used))

thread = threading.Thread(target=tick)
thread.start()
dense(x, w, b, act="RELU")
assert composite.wait(timeout=120)
working = False
thread.join()
assert len(losses) > 50, len(losses)
print(f"{max(losses) * 1000:.1f} ms of {len(losses)}")
assert max(losses) < 0.02, sorted(losses)[-5:]
""",
        env={"COMPOSITE_CACHE_DIR": str(tmp_path / "cache")},
    )
    print(done.stdout)


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
print("grown", grown // 1024, "MB; kernels", composite.stats()["answered"])
assert grown < 100 * 1024
assert composite.stats()["answered"] <= 8
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
