"""Expansions that run often: TensorFlow's optimizers rewrite them, and nothing else changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from tests.conftest import RunPython

RUNS = 16  # HotExpansion::kRuns


def normal(*shape: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def optimized() -> int:
    return int(composite.stats()["optimized"])


def runs_until_optimized(call: Callable[[], Any], wait: float = 20.0) -> bool:
    """Calls until one more expansion was optimized; whether that happened."""
    before = optimized()
    for _ in range(RUNS + 1):
        call()
    end = time.monotonic() + wait
    while optimized() == before and time.monotonic() < end:
        time.sleep(0.02)
        call()
    return optimized() > before


def dense_op(name):
    @Composite(name, inputs=["x: float", "w: float", "b: float"], outputs=["y: float"])
    def dense(x, w, b):
        return tf.nn.relu(tf.matmul(x, w) + b)

    return dense


@Composite("OptimizedLoop", inputs=["x: float"], outputs=["y: float"])
def loop(x):
    while tf.reduce_max(x) > 0.1:
        x = x * 0.5 - tf.reduce_mean(x) * 0.1
    return x


@Composite("OptimizedPairs", inputs=["xs: N * float"], derived_attrs=["N: int"],
           outputs=["ys: N * float", "text: string"])  # fmt: skip
def pairs(xs):
    return [x * 2.0 + 1.0 for x in xs], tf.strings.as_string(tf.size(xs[0]))


@Composite("OptimizedCount", inputs=["v: resource", "x: float"], outputs=["y: float"])
def count(v, x):
    tf.raw_ops.AssignAddVariableOp(resource=v, value=x * 1.0)
    return tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32) + x * 0.0


@pytest.fixture(autouse=True)
def expansions():
    with composite.options(backend="tf"):
        yield


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        (dense_op("OptimizedDense"), (normal(5, 8), normal(8, 4), normal(4))),
        (loop, (normal(6),)),
        (pairs, ([normal(3), normal(2, 2)],)),
    ],
    ids=lambda one: getattr(one, "op_name", ""),
)
def test_an_expansion_that_runs_often_gives_what_it_gave(op, inputs):
    expected = tf.nest.flatten(op(*inputs))
    assert runs_until_optimized(lambda: op(*inputs))
    for one, wanted in zip(tf.nest.flatten(op(*inputs)), expected, strict=True):
        assert one.dtype == wanted.dtype
        if one.dtype == tf.string:
            assert one == wanted
        else:
            np.testing.assert_allclose(one, wanted, rtol=1e-6)


def test_other_shapes_are_served_too():
    dense = dense_op("OptimizedOther")
    assert runs_until_optimized(lambda: dense(normal(3, 2), normal(2, 7), normal(7)))
    for rows, columns in ((1, 7), (3, 1), (0, 7), (4, 5)):
        x, w, b = normal(rows, 2), normal(2, columns), normal(columns)
        np.testing.assert_allclose(dense(x, w, b), tf.nn.relu(x @ w + b), rtol=1e-5)


def test_shapes_that_vary_are_optimized_as_unknown():
    dense = dense_op("OptimizedVarying")
    rows = iter(range(2, 10_000))
    assert runs_until_optimized(lambda: dense(normal(next(rows), 3), normal(3, 9), normal(9)))
    x = normal(77, 3)
    np.testing.assert_allclose(
        dense(x, normal(3, 9), normal(9)), tf.nn.relu(x @ normal(3, 9) + normal(9)), rtol=1e-5
    )


def test_shapes_that_do_not_fit_are_refused_as_before():
    """TensorFlow's fused product reads as many biases as it has columns, without a look."""

    @Composite("OptimizedUnfit", inputs=["x: float", "w: float", "b: float"], outputs=["y: float"])
    def biased(x, w, b):
        return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))

    sizes = iter(range(2, 10_000))

    def call():
        n = next(sizes)
        return biased(normal(n, 3), normal(3, n + 1), normal(n + 1))

    assert runs_until_optimized(call)
    for _ in range(3):
        with pytest.raises(tf.errors.InvalidArgumentError, match="test_optimized_expansion.py"):
            biased(normal(4, 3), normal(3, 5), normal(1))
        np.testing.assert_allclose(
            biased(normal(4, 3), normal(3, 5), normal(5)),
            tf.nn.relu(normal(4, 3) @ normal(3, 5) + normal(5)),
            rtol=1e-5,
        )


def test_shapes_that_never_fit_are_not_optimized():
    @Composite("OptimizedNever", inputs=["x: float", "w: float", "b: float"], outputs=["y: float"])
    def biased(x, w, b):
        return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))

    def call():
        with pytest.raises(tf.errors.InvalidArgumentError, match="test_optimized_expansion.py"):
            biased(normal(4, 3), normal(3, 5), normal(1))

    assert not runs_until_optimized(call, wait=0.5)


def test_shapes_that_come_later_are_optimized_as_well():
    dense = dense_op("OptimizedLater")
    for columns in (3, 5, 6):
        x, w, b = normal(4, 2), normal(2, columns), normal(columns)
        before = optimized()
        found = runs_until_optimized(lambda: dense(x, w, b), wait=5.0)  # noqa: B023
        assert found == (columns != 6), (columns, optimized() - before)
        np.testing.assert_allclose(dense(x, w, b), tf.nn.relu(x @ w + b), rtol=1e-5)


def test_an_error_still_has_the_author_s_line():
    @Composite("OptimizedGather", inputs=["x: float", "i: int32"], outputs=["y: float"])
    def gather(x, i):
        return tf.gather(x, i) * 2.0  # gathers

    assert runs_until_optimized(lambda: gather(normal(5), tf.constant([1, 2])))
    line = gather.python_function.__code__.co_firstlineno + 2
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=f"{os.path.basename(__file__)}:{line}"
    ):
        gather(normal(5), tf.constant([7]))


def test_strict_numbers_are_those_of_the_ops_one_by_one():
    dense = dense_op("OptimizedStrict")
    x, w, b = normal(40, 30), normal(30, 20), normal(20)
    with composite.options(numerics="strict"):
        assert not runs_until_optimized(lambda: dense(x, w, b), wait=0.5)
        np.testing.assert_array_equal(dense(x, w, b), tf.nn.relu(tf.matmul(x, w) + b))


def test_state_is_changed_once_a_call():
    variable = tf.Variable(0.0)
    calls = 0

    def call():
        nonlocal calls
        calls += 1
        return count(variable, 1.0)

    assert runs_until_optimized(call)
    call()
    assert float(variable) == calls


def root_op(name):
    """Grappler makes a square root of it, which gives NaN where the power is infinity."""

    @Composite(name, inputs=["x: float"], outputs=["y: float"])
    def root(x):
        return tf.pow(x, 0.5)

    return root


def rewritten(op):
    """Whether the optimized expansion of an op of `root_op` is a square root."""
    x = tf.constant([-np.inf])
    assert runs_until_optimized(lambda: op(x))
    return bool(np.isnan(op(x)[0]))


def test_the_process_s_options_for_grappler_hold():
    assert rewritten(root_op("OptimizedRoot"))
    for option in ({"disable_meta_optimizer": True}, {"arithmetic_optimization": False}):
        tf.config.optimizer.set_experimental_options(option)
        try:
            (name,) = option
            op = root_op(f"OptimizedRoot_{name}")
            tf.function(op).get_concrete_function(tf.ones([1]))  # the runtime is told at a trace
            assert not rewritten(op)
        finally:
            tf.config.optimizer.set_experimental_options({n: not on for n, on in option.items()})
    op = root_op("OptimizedRootAgain")
    tf.function(op).get_concrete_function(tf.ones([1]))
    assert rewritten(op)


STARTED = """
import tensorflow as tf

tf.config.optimizer.set_experimental_options({"arithmetic_optimization": False})
from tests.runtime.instantiate.test_optimized_expansion import composite, rewritten, root_op

with composite.options(backend="tf"):
    assert not rewritten(root_op("OptimizedRootStarted"))
"""


@pytest.mark.slow
def test_options_that_tensorflow_is_started_with_hold(run_python):
    run_python(STARTED)


NO_THREAD = """
import os, resource, sys
if len(sys.argv) == 1:  # a thread takes so much of the address space; read as the process starts
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 30, most))
    os.execv(sys.executable, [sys.executable, __file__, "limited"])

import time
import tensorflow as tf
from composite import Composite
import composite


@Composite("NoThread", inputs=["x: float"], attrs=["by: float"], outputs=["y: float"])
def no_thread(x, by):
    return x * by + x


def calls(by):
    for _ in range(24):
        y = no_thread(tf.constant([1.0, 2.0]), by=by)
    return y.numpy().tolist()


no_thread(tf.constant([1.0, 2.0]), by=1.0)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (1 << 28)
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
print(calls(1.0))
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
end = time.monotonic() + 60
while not composite.stats()["optimized"] and time.monotonic() < end:
    calls(2.0)
print(composite.stats()["optimized"] > 0)
"""


def test_without_a_thread_expansions_stay_as_they_are(run_python: RunPython) -> None:
    done = run_python(NO_THREAD, bare=True, env={"COMPOSITE_JIT": "0"})
    assert done.stdout == "[2.0, 4.0]\nTrue\n"


OF_NO_COLUMNS = """
import composite, tensorflow as tf
from tests.composite.checking import ops
from tests.runtime.instantiate import test_optimized_expansion as cases
x, w, b = tf.ones([2, 3]), tf.ones([3, 4]), tf.ones([4])
with composite.options(backend="tf"):
    assert not cases.runs_until_optimized(
        lambda: tf.debugging.assert_equal(
            ops.of_first_columns(x, w, b, n=0), tf.tile(tf.tanh(b)[None], [2, 1])
        ),
        wait=1.0,
    )
    assert cases.runs_until_optimized(lambda: ops.of_first_columns(x, w, b, n=2))
print("called")
"""


def test_an_empty_product_inside_of_a_body_is_not_fused(run_python: RunPython) -> None:
    """One that oneDNN computes would end the call, and that of another thread the process."""
    done = run_python(OF_NO_COLUMNS, env={"TF_ENABLE_ONEDNN_OPTS": "1", "COMPOSITE_JIT": "0"})
    assert done.stdout.splitlines()[-1] == "called"
