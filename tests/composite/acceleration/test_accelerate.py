"""`composite.accelerate`: which function is called, and what the report says."""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef

import composite
from composite.acceleration import comparing, graph, recognized, tracing
from composite.acceleration.comparing import Accelerated
from composite.acceleration.graph import Partition, Region
from composite.acceleration.report import AccelerationReport
from composite.counters import RegionCounts
from composite.measuring import xla
from composite.measuring.decisions import Times
from composite.recognition.recognizing import recognize
from composite.trials.results import Deviation
from tests.composite.recognition import recognized_ops
from tests.conftest import RunPython


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the original and the function with regions are said to take."""
    told = [2e-3, 1e-3]

    def measured(functions: Any, inputs: Any, _: float) -> list[float]:
        for function in functions:
            function(*inputs)
        return told

    monkeypatch.setattr(comparing, "times", measured)
    return told


def layers(x: Any) -> Any:
    return tf.nn.softmax(tf.nn.gelu(x * 2.0) + 1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("times")
def test_a_function_gets_kernels_around_what_has_none() -> None:
    def body(x: Any) -> Any:
        whole = tf.cast(tf.abs(tf.tanh(x) * 9.0), tf.uint32)  # refused: out of range it differs
        return layers(tf.cast(whole, tf.float32))

    x = tf.constant(np.random.default_rng(0).standard_normal((256, 512)), tf.float32)
    before = composite.stats()
    fast = composite.accelerate(body, x)
    counted = composite.stats() - before
    assert counted["regions"] == 1 + 2, "those of the first trace and of the second, each made once"
    assert counted["answered"] >= 1
    assert fast.report.deviation.is_small
    assert fast.report.is_complete
    np.testing.assert_allclose(fast(x), body(x), rtol=1e-4, atol=1e-6)
    assert len(fast.report.partition.regions) == 2
    assert fast.report.partition.outside == {"Cast": 1}


@pytest.mark.usefixtures("times")
def test_ops_that_are_denied() -> None:
    fast = composite.accelerate(layers, tf.ones([4, 4]), deny=["Softmax", "Exp"], timeout=0.0)
    assert fast.report.partition.outside == {"Softmax": 1}
    assert fast.function.__name__ == "composite_accelerated_without.Exp.Softmax..layers"
    with pytest.raises(ValueError, match="Softmaxx is no op of TensorFlow"):
        composite.accelerate(layers, tf.ones([4, 4]), deny=["Softmaxx"])
    for entry in ("nodes:head/*", "region:"):
        with pytest.raises(ValueError, match=f"{entry[:5]}.* is neither an op"):
            composite.accelerate(layers, tf.ones([4, 4]), deny=[entry])


@pytest.mark.usefixtures("times")
def test_the_least_size_and_gain() -> None:
    x = tf.ones([4, 4])
    small = composite.accelerate(layers, x, deny=["name:none/*"], min_ops=90, timeout=0.0).report
    assert small.verdict == "runs the original: no part of it can be a region"
    slow = composite.accelerate(layers, x, min_gain=2.5, timeout=0.0).report
    assert slow.verdict == "runs the original: regions make 2.00 of its speed"


def test_what_regions_ran_is_in_the_report() -> None:
    ops = Counter(["Tanh", "Mul"])
    names = [f"__composite_region_0000000{i}" for i in range(3)]
    regions = tuple(Region(name, ops, 1, FunctionDef()) for name in names)
    calls = {
        names[0]: RegionCounts(kernel=4, expansion=0, saved_us=2.5, why=""),
        names[1]: RegionCounts(kernel=1, expansion=3, saved_us=1.0, why="it rains"),
    }
    still = Deviation(0, 0.0, 1e-3)
    partition = Partition(regions, Counter())
    report = AccelerationReport("f", partition, still, 2.0, 1.0, is_complete=True, calls=calls)
    text = str(report)
    assert "kernel, saves 2.5 us" in text
    assert "kernel in 1 of 4, TensorFlow's ops: it rains" in text


def test_the_faster_one_is_called(times: list[float]) -> None:
    x = tf.ones([4, 4])
    fast = composite.accelerate(layers, x)
    assert isinstance(fast, Accelerated)
    assert fast.report.verdict == "runs with regions, 2.00 times as fast"
    assert fast.function.__name__.startswith("composite_accelerated_")
    times[:] = [1e-3, 1e-3]
    slow = composite.accelerate(layers, x)
    assert slow.report.verdict == "runs the original: regions make 1.00 of its speed"
    assert slow.function.__name__.startswith("original_")
    np.testing.assert_allclose(slow(x), layers(x))


def test_xla_is_called_where_it_is_asked_for_and_the_fastest(times: list[float]) -> None:
    x = tf.ones([4, 4])
    times[:] = [3e-3, 2e-3, 1e-3]
    fast = composite.accelerate(layers, x, xla=True, timeout=0.0)
    assert fast.report.verdict == "runs what XLA compiled, 3.00 times as fast"
    assert "by XLA: 1000 us, results within" in str(fast.report)
    assert fast.function.__name__ == "compiled_layers"
    np.testing.assert_allclose(fast(x), layers(x), rtol=1e-5)
    times[:] = [3e-3, 1e-3, 1e-3]
    assert "with regions" in composite.accelerate(layers, x, xla=True, timeout=0.0).report.verdict
    times[:] = [1e-3, 2e-3, 1e-3]
    slow = composite.accelerate(layers, x, xla=True, timeout=0.0)
    assert slow.function.__name__ == "original_layers"
    with pytest.raises(TypeError, match="xla= is for a function of this process"):
        composite.accelerate("model", out="fast", xla=True)  # type: ignore[call-overload]


def test_xla_with_kernels_is_called_where_it_is_the_fastest(
    times: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    faster = Times(10.0, 20.0, 0.5, 0.4, 0.6)
    monkeypatch.setattr(xla, "measured", lambda *_: faster)
    w = tf.constant(np.random.default_rng(1).standard_normal((96, 80)), tf.float32)

    def classified(x: Any) -> Any:
        return tf.nn.softmax(tf.matmul(tf.nn.gelu(x), w) + 1.0)

    x = tf.ones([48, 96])
    for seconds, is_called in ((1.0e-3, True), (1.5e-3, False)):
        times[:] = [4e-3, 3e-3, 1.5e-3, seconds]
        fast = composite.accelerate(classified, x, xla=True)
        report = fast.report
        assert report.is_xla_best
        assert report.are_xla_kernels_best == is_called
        assert report.xla_kernels is not None and report.xla_kernels.kernels == 1
        assert ("with kernels in 1 places" in report.verdict) == is_called
        assert f"by XLA with kernels: {1e6 * seconds:.0f} us" in str(report)
        before = composite.stats()
        np.testing.assert_allclose(fast(x), classified(x), rtol=1e-4)
        assert (composite.stats() - before)["xla_kernel_launches"] == is_called


@pytest.mark.usefixtures("times")
def test_what_xla_does_not_compile_or_changes_is_not_called(
    times: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = composite.accelerate(tf.strings.length, tf.constant(["a"]), xla=True, timeout=0.0)
    assert "by XLA: not compiled: " in str(refused.report)
    times[:] = [3e-3, 2e-3, 1e-3]
    traced = tracing.traced

    def drifting(
        call: Any, name: str, *, jit_compile: bool | None = None, known: Any = None
    ) -> Any:
        """Has XLA compile another function."""
        if not jit_compile:
            return traced(call, name, known=known)
        return traced(lambda x: call(x) + 7.0, name, jit_compile=True)

    monkeypatch.setattr(comparing, "traced", drifting)
    moved = composite.accelerate(layers, tf.ones([4, 4]), xla=True, timeout=0.0).report
    assert not moved.is_xla_best
    assert "more than the 0.001 that is allowed" in str(moved)


@pytest.mark.usefixtures("times")
def test_other_numbers_are_not_taken() -> None:
    calls = iter(range(1000))

    def drifts(x: Any) -> Any:
        return layers(x) + tf.py_function(lambda: float(next(calls)), [], tf.float32)

    report = composite.accelerate(drifts, tf.ones([4, 4])).report
    assert not report.is_gain
    assert re.search(r"with regions output 0 is .* away, 0\.001 is allowed", report.verdict)


@pytest.mark.usefixtures("times")
def test_nothing_to_take() -> None:
    report = composite.accelerate(tf.math.lgamma, tf.ones([4])).report
    assert report.verdict == "runs the original: no part of it can be a region"


@pytest.mark.usefixtures("times")
def test_a_keras_model_tells_its_inputs() -> None:
    inputs = [tf.keras.Input((6,)), tf.keras.Input((3,), dtype="int32")]
    embedded = tf.keras.layers.Flatten()(tf.keras.layers.Embedding(2, 2)(inputs[1]))
    x = tf.keras.layers.Concatenate()([inputs[0], embedded])
    x = tf.keras.layers.Dropout(0.5)(tf.keras.layers.Dense(4, activation="gelu")(x))
    model = tf.keras.Model(inputs, x, name="small")
    fast = composite.accelerate(model)
    assert fast.report.name == "small"
    assert fast.report.deviation.is_small  # dropout is off
    given = [tf.ones([2, 6]), tf.ones([2, 3], tf.int32)]
    np.testing.assert_allclose(fast(given), model(given), rtol=1e-5, atol=1e-6)


def test_a_sequential_model_need_not_have_been_called() -> None:
    keras = tf.keras
    model = keras.Sequential([keras.Input((48,)), keras.layers.Dense(12, activation="gelu")])
    fast = composite.accelerate(model)
    assert fast.report.deviation.is_small
    np.testing.assert_allclose(fast(tf.ones([2, 48])), model(tf.ones([2, 48])), atol=1e-6)


@pytest.mark.usefixtures("times")
def test_the_report_is_a_table_and_a_page() -> None:
    report = composite.accelerate(layers, tf.ones([4, 4])).report
    text = str(report)
    assert "layers: runs with regions" in text
    assert "Softmax" in text
    assert "outside of regions: nothing" in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "<html>" in report.to_html()


def test_each_batch_is_called_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {8: [2e-3, 1e-3, 4e-3], 16: [2e-3, 3e-3, 1e-3], 3: [1e-3, 2e-3, 2e-3]}

    def measured(functions: Any, inputs: Any, _: float) -> list[float]:
        return told[int(inputs[0].shape[0])]

    monkeypatch.setattr(comparing, "times", measured)
    weights = tf.ones([4])
    fast = composite.accelerate(
        lambda x, w: layers(x * w), tf.ones([8, 4]), weights, xla=True, batches=[16, 3]
    )
    assert fast.report.is_gain
    assert fast.report.batches[16].is_xla_best
    assert not fast.report.batches[3].is_gain and not fast.report.batches[3].is_xla_best
    assert all(one.deviation.is_small for one in fast.report.batches.values())
    text = str(fast.report)
    assert "batch of 16: runs what XLA compiled, 2.00 times as fast" in text
    assert "batch of 3: runs the original: regions make 0.50 of its speed" in text
    assert "measured with float32[8, 4], float32[4]; batches= measures other sizes" in text
    ways = {}
    for batch in (8, 16, 3, 5):
        x = tf.reshape(tf.range(batch * 4.0), [batch, 4]) / 9.0
        before = composite.stats()
        np.testing.assert_allclose(fast(x, weights), layers(x * weights), rtol=1e-4, atol=1e-6)
        ways[batch] = sum(one.calls for one in (composite.stats() - before).by_region.values())
    assert ways == {8: 1, 16: 0, 3: 0, 5: 1}  # regions are called for those they are best at


def test_wrong_batches() -> None:
    with pytest.raises(ValueError, match="the first input has no such dim"):
        composite.accelerate(layers, tf.constant(1.0), batches=[2])
    with pytest.raises(ValueError, match="the size is not above 0"):
        composite.accelerate(layers, tf.ones([2]), batches=[0])
    with pytest.raises(TypeError, match="batches= is for a function"):
        composite.accelerate("folder", out="out", batches=[2])  # type: ignore[call-overload]


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="takes a function or a model, not 3"):
        composite.accelerate(3)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="needs the inputs of one call"):
        composite.accelerate(layers)
    told = r"of one call of open_ended, which does not say what it takes: give them"
    with pytest.raises(ValueError, match=told):
        composite.accelerate(tf.keras.Sequential([tf.keras.layers.Dense(2)], name="open_ended"))


def test_ops_are_recognized_first(times: list[float]) -> None:
    def spelled_out(x: Any) -> Any:
        y = tf.exp(x @ tf.transpose(x))
        return y * tf.tanh(tf.math.log(1 + tf.exp(y))) + 1.0

    x = tf.reshape(tf.range(12.0) / 40.0, [4, 3])
    fast = composite.accelerate(spelled_out, x, ops=[recognized_ops.mish, recognized_ops.gelu])
    assert fast.report.recognition is not None
    assert [one.op for one in fast.report.recognition.recognized] == ["FoundMish"]
    (region,) = fast.report.partition.regions
    assert (region.ops["FoundMish"], region.ops["MatMul"], region.ops["Log"]) == (1, 1, 0)
    assert "recognized 1 FoundMish" in str(fast.report)
    assert fast.report.is_gain
    np.testing.assert_allclose(fast(x), spelled_out(x), rtol=1e-4)
    wide = tf.ones([2, 5]) * 0.1  # has a graph of its own
    np.testing.assert_allclose(fast(wide), spelled_out(wide), rtol=1e-4)


def test_autograph_leaves_what_recognizes_as_it_is(
    times: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would convert all code that is called: of a large package that takes seconds."""
    callers = []

    def observed(*arguments: Any) -> Any:
        callers.append(sys._getframe(1).f_code.co_filename)
        return recognize(*arguments)

    monkeypatch.setattr(recognized, "recognize", observed)
    composite.accelerate(layers, tf.ones([3]), ops=[recognized_ops.mish], timeout=0.0)
    assert callers and {*callers} == {recognized.__file__}


def test_one_op_is_something_to_run(times: list[float]) -> None:
    fast = composite.accelerate(
        lambda x: x * tf.tanh(tf.math.softplus(x)), tf.ones([3]), ops=[recognized_ops.mish]
    )
    assert fast.report.partition.regions == ()
    assert fast.report.is_gain


def test_gradients_of_composites_are_in_regions() -> None:
    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(recognized_ops.hard_swish(x * 0.5) ** 2)
        return tape.gradient(y, x) - x

    x = tf.linspace(-4.0, 4.0, 6)
    wanted = step(x)
    found = graph.partition(step.get_concrete_function(x))
    assert sum(region.ops["CompositeCall"] for region in found.regions) == 1
    assert "CompositeCall" not in found.outside
    with composite.options(regions=True):
        again = tf.function(step.python_function)(x)
    np.testing.assert_allclose(again, wanted, rtol=1e-5)


def test_ops_are_for_functions() -> None:
    with pytest.raises(TypeError, match=r"give the folder to composite\.recognize first"):
        composite.accelerate("folder", out="out", ops=[recognized_ops.mish])  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="looks for composite ops"):
        composite.accelerate(layers, tf.ones([2, 4]), ops=[tf.tanh])


_NESTED = """
import tensorflow as tf
import composite
from composite.jit import worker
worker.announce_compiler()  # which nobody runs: kernels may come, and the regions stay

@tf.function
def inner(x):
    y = tf.tanh(x) * 2.0
    return tf.reshape(y, [tf.shape(y)[0], 2, -1]) + (y * 1.0)[:, :, None]

@tf.function
def composite_accelerated_outer(x):
    return inner(x)

composite_accelerated_outer(tf.ones([4, 2]))
print(composite.stats()["regions"])
"""


def test_the_first_regions_of_a_process_keep_their_names(run_python: RunPython) -> None:
    done = run_python(_NESTED, env={"TF_CPP_MIN_LOG_LEVEL": "1"})
    assert done.stdout.strip() == "1"
    assert "altered" not in done.stderr
