"""Calls of a module: several at once, those that a kernel leaves to TensorFlow, packed weights."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import hybrid
from composite.hybrid import regions
from composite.hybrid.freezing import freeze

TABLE = np.random.default_rng(0).standard_normal((50, 32)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).standard_normal((32, 64)).astype(np.float32)


def embedded(ids: Any) -> Any:
    """A lookup that is fused with what follows it."""
    return tf.nn.softmax(tf.nn.gelu(tf.matmul(tf.gather(TABLE, ids), WEIGHTS) + 1.0))


def hashed(words: Any) -> Any:
    return embedded(tf.strings.to_hash_bucket_fast(words, 50))


def resident() -> int:
    """Bytes of memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.fixture(scope="module")
def module() -> hybrid.HybridModule:
    return hybrid.compile(embedded, tf.TensorSpec([None], tf.int32))


@pytest.mark.slow
def test_a_lookup_is_in_the_kernel_and_a_wrong_index_is_tensorflows(
    module: hybrid.HybridModule,
) -> None:
    report = module.report
    assert report is not None
    assert (report.kernels, report.calls, report.refused) == (1, 0, {})
    assert report.parts[0].ops["GatherV2"] == 1
    ids = tf.constant([3, 49, 0])
    np.testing.assert_allclose(module(ids), embedded(ids), rtol=1e-5, atol=1e-7)
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 50 is not in"):
            module(tf.constant([3, 50]))
    np.testing.assert_allclose(module(ids), embedded(ids), rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_what_a_kernel_leaves_to_tensorflow_is_computed_by_it() -> None:
    def best(x: Any) -> Any:
        values, places = tf.math.top_k(tf.tanh(x) * 2.0, 2)  # a NaN has no place in the kernel
        return values + 1.0, places

    x = np.random.default_rng(2).standard_normal((3, 8)).astype(np.float32)
    module = hybrid.compile(best, tf.TensorSpec([None, 8], tf.float32))
    assert module.report is not None
    assert module.report.kernels == 1
    with_nan = x.copy()
    with_nan[1, 4] = np.nan
    for given in (x, with_nan, x):
        for found, wanted in zip(module(given), best(given), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.slow
def test_weights_are_packed_when_the_model_is_compiled() -> None:
    traced = tf.function(embedded).get_concrete_function(tf.TensorSpec([None], tf.int32))
    (region,) = regions.partition(freeze(traced, "embedded"), ()).kernels.values()
    assert region.kernel.packed
    assert [array.size for array in region.packed] == [p.elements for p in region.kernel.packed]


@pytest.mark.slow
def test_several_threads_call_one_module_at_once() -> None:
    module = hybrid.compile(hashed, tf.TensorSpec([None], tf.string))
    given = [tf.constant([f"w{k}" for k in range(1 + t)]) for t in range(8)]
    wanted = [hashed(one) for one in given]
    wrong: list[Any] = []
    start = threading.Barrier(8)

    def calls(t: int) -> None:
        start.wait()
        first = module(given[t]).numpy()
        np.testing.assert_allclose(first, wanted[t], rtol=1e-5, atol=1e-7)
        for _ in range(200):
            if module(given[t]).numpy().tobytes() != first.tobytes():
                wrong.append(t)

    threads = [threading.Thread(target=calls, args=(t,)) for t in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.slow
def test_threads_share_the_weights() -> None:
    weights = tf.random.stateless_normal([2048, 2048], [1, 2])

    def dense(x: Any) -> Any:
        return tf.nn.relu(tf.matmul(x, weights)) + 1.0

    module, x = hybrid.compile(dense, tf.TensorSpec([8, 2048], tf.float32)), tf.ones([8, 2048])
    module(x)
    start = threading.Barrier(8)

    def call() -> None:
        start.wait()
        for _ in range(5):
            module(x)

    before = resident()
    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert resident() - before < weights.numpy().nbytes


@pytest.mark.slow
def test_threads_that_come_and_go_leave_nothing(module: hybrid.HybridModule) -> None:
    ids = tf.constant([1, 2])
    wanted = module(ids).numpy().tobytes()
    wrong: list[int] = []

    def call(t: int) -> None:
        if module(ids).numpy().tobytes() != wanted:
            wrong.append(t)

    def run(count: int) -> None:
        for t in range(count):
            thread = threading.Thread(target=call, args=(t,))
            thread.start()
            thread.join()

    run(200)
    before = resident()
    run(1000)
    assert wrong == []
    assert resident() - before < 4 << 20  # bytes: a VM for each thread takes more


@pytest.mark.slow
def test_a_call_that_fails_leaves_those_of_other_threads_alone() -> None:
    module = hybrid.compile(lambda text: tf.strings.to_number(text) + 1.0, tf.constant(["1.5"]))
    told: list[str] = []

    def calls(text: str) -> None:
        for _ in range(200):
            try:
                assert module([text]).numpy().tolist() == [float(text) + 1.0]
            except (tf.errors.InvalidArgumentError, ValueError) as error:
                if text not in str(error):
                    told.append(str(error))

    threads = [threading.Thread(target=calls, args=(one,)) for one in ("1", "two", "3", "four")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == []


@pytest.mark.slow
def test_a_call_inside_of_a_call(module: hybrid.HybridModule) -> None:
    def around(ids: Any) -> Any:
        inner = tf.numpy_function(lambda i: module(i).numpy(), [ids], tf.float32)
        return tf.ensure_shape(inner, [None, 64])

    ids = tf.constant([1, 2])
    outer = hybrid.compile(around, ids)
    np.testing.assert_array_equal(outer(ids), module(ids))
    with pytest.raises(tf.errors.OpError, match="is not in"):
        outer(tf.constant([1, 99]))
    np.testing.assert_array_equal(outer(ids), module(ids))


@pytest.mark.slow
def test_what_was_compiled_is_shown_as_text(tmp_path: Path, module: hybrid.HybridModule) -> None:
    assert "def main(input_0: R.Tensor((s0,)" in module.ir
    module.save(tmp_path / "module.so")
    assert hybrid.load(tmp_path / "module.so").ir == module.ir
    calls = hybrid.compile(tf.strings.upper, tf.constant(["a"]))
    assert 'R.call_packed("composite.hybrid.call_tf"' in calls.ir


@pytest.mark.slow
def test_by_tvms_own_means(module: hybrid.HybridModule, tmp_path: Path) -> None:
    import tvm

    module.save(tmp_path / "module.so")
    hybrid.register()
    vm = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(tmp_path / "module.so")), tvm.cpu())
    ids = np.array([3, 7], np.int32)
    (found,) = vm["main"](tvm.runtime.tensor(ids))
    np.testing.assert_allclose(found.numpy(), embedded(ids), rtol=1e-5, atol=1e-7)
    with pytest.raises(RuntimeError, match=r"indices\[0\] = 77 is not in"):
        vm["main"](tvm.runtime.tensor(np.array([77], np.int32)))
