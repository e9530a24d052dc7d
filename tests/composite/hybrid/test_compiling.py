"""`composite.hybrid`: models as modules of TVM's VM, here and where the file is alone."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import hybrid
from composite.hybrid import runtime
from tests.conftest import RunPython


def numbers(*shape: int, seed: int = 0) -> Any:
    return tf.constant(np.random.default_rng(seed).standard_normal(shape), tf.float32)


def assert_same(found: Any, wanted: Any) -> None:
    tf.nest.assert_same_structure(found, wanted)
    for y, z in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
        assert y.dtype == z.dtype
        if z.dtype == tf.string:
            np.testing.assert_array_equal(y, z)
        else:
            np.testing.assert_allclose(y, z, rtol=1e-5, atol=1e-6)


class Mixed(tf.Module):
    """Layers around an op and strings that have no kernel; variables; outputs of all kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = tf.Variable(numbers(16, 8))

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 16], tf.float32, name="x"),
            tf.TensorSpec([None], tf.string, name="words"),
        ]
    )
    def __call__(self, x: Any, words: Any) -> Any:
        y = tf.nn.gelu(tf.matmul(x, self.weights) + 1.0)
        z = tf.math.lgamma(tf.abs(y) + 1.5)
        p = tf.nn.softmax(tf.tanh(z * 2.0) + y)
        text = tf.strings.as_string(p[:, 0], precision=2)
        joined = tf.strings.join([tf.strings.upper(words), text], name="joined")
        return {"p": p, "x": x, "words": words, "more": (z, [joined])}


@pytest.fixture(scope="module")
def model() -> Mixed:
    return Mixed()


@pytest.fixture(scope="module")
def module(model: Mixed) -> hybrid.HybridModule:
    return hybrid.compile(model.__call__, numbers(4, 16), tf.constant(["a", "b", "c", "d"]))


@pytest.mark.slow
def test_what_has_no_kernel_is_called_in_as_few_calls_as_there_are_ways_back(
    model: Mixed, module: hybrid.HybridModule
) -> None:
    report = module.report
    assert report is not None
    assert (report.kernels, report.calls, report.refused) == (2, 3, {})
    assert [(part.stage, part.where) for part in report.parts] == [
        (0, "TensorFlow"), (0, "kernel"), (1, "TensorFlow"), (1, "kernel"), (2, "TensorFlow"),
    ]  # fmt: skip
    assert report.parts[2].ops == Counter(Lgamma=1)
    assert report.deviation is not None
    assert report.deviation.is_small
    assert "2 kernels of TVM, 3 calls of TensorFlow" in str(report)
    words = tf.constant(["x", "y", "zz"])
    for rows in (3, 1):
        x = numbers(rows, 16, seed=rows)
        assert_same(module(x, words[:rows]), model(x, words[:rows]))


@pytest.mark.slow
def test_a_saved_module_runs_where_the_model_is_not(
    model: Mixed, module: hybrid.HybridModule, tmp_path: Path, run_python: RunPython
) -> None:
    x, words = numbers(3, 16, seed=5), tf.constant(["x", "y", "zz"])
    wanted = model(x, words)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "p.npy", wanted["p"])
    module.save(tmp_path / "model.so")
    code = """
import sys
import numpy as np
from composite import hybrid
folder = sys.argv[1]
module = hybrid.load(folder + "/model.so")
found = module(np.load(folder + "/x.npy"), ["x", "y", "zz"])
np.testing.assert_allclose(found["p"], np.load(folder + "/p.npy"), rtol=1e-5, atol=1e-6)
print(found["more"][1][0].numpy().tolist())
"""
    done = run_python(code, str(tmp_path))
    assert done.stdout.strip() == str(wanted["more"][1][0].numpy().tolist())
    assert [file.name for file in tmp_path.glob("*.so")] == ["model.so"]


@pytest.mark.slow
def test_arguments_are_checked(module: hybrid.HybridModule, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"input 0 of \w+ has shape \(2, 5\), the module takes"):
        module(numbers(2, 5), ["a", "b"])
    with pytest.raises(TypeError, match=r"takes float32\(None, 16\), string\(None,\)"):
        module(numbers(2, 16))
    with pytest.raises(ValueError, match=r'"model.so", not as .*model.tar'):
        module.save(tmp_path / "model.tar")
    with pytest.raises(FileNotFoundError, match="is not there"):
        hybrid.load(tmp_path / "model.so")
    (tmp_path / "other.so").write_bytes(b"no library")
    with pytest.raises(ValueError, match=r"no module that composite\.hybrid wrote"):
        hybrid.load(tmp_path / "other.so")


@pytest.mark.slow
def test_keras_models_of_any_batch() -> None:
    tf.keras.utils.set_random_seed(3)
    first, second = tf.keras.Input((12,)), tf.keras.Input((12,))
    h = tf.keras.layers.Dense(12, "relu")(first) + second
    model = tf.keras.Model([first, second], [tf.keras.layers.Softmax()(h), h])
    module = hybrid.compile(model)
    assert module.report is not None
    assert (module.report.kernels, module.report.calls) == (1, 0)
    given = [numbers(7, 12), numbers(7, 12, seed=1)]
    assert_same(module(given), model(given))
    with pytest.raises(RuntimeError, match="s0"):
        module([given[0], given[1][:3]])  # TVM's own check


@pytest.mark.slow
def test_effects_and_loops_are_tensorflows(capfd: pytest.CaptureFixture[str]) -> None:
    scale = tf.Variable(2.0)

    def looping(x: Any) -> Any:
        tf.print("seen", output_stream="file:///dev/stderr")
        y = tf.nn.gelu(x * 3.0 - 1.0)

        def again(i: Any, y: Any) -> Any:
            return tf.logical_or(i < 3, tf.reduce_max(y) > 1e9)  # how often, nobody can count

        _, y = tf.while_loop(again, lambda i, y: (i + 1, y * scale), (0, y))
        return tf.nn.softmax(y + 1.0)

    x = numbers(4, 6)
    module = hybrid.compile(looping, x)
    assert module.report is not None
    assert module.report.kernels == 2
    capfd.readouterr()
    assert_same(module(x), looping(x))
    assert capfd.readouterr().err.count("seen") == 2
    scale.assign(5.0)  # a module has the value of its time
    assert_same(module(x), tf.nn.softmax(tf.nn.gelu(x * 3.0 - 1.0) * 8.0 + 1.0))


@pytest.mark.slow
def test_a_loop_is_in_a_kernel() -> None:
    def looping(x: Any) -> Any:
        _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.tanh(y) * 2.0), (0, x))
        return tf.nn.softmax(y + 1.0)

    x = numbers(4, 6)
    module = hybrid.compile(looping, x)
    assert module.report is not None
    assert (module.report.kernels, module.report.calls) == (1, 0)
    assert_same(module(x), looping(x))


@pytest.mark.slow
def test_a_node_without_a_kernel_stays_outside_of_regions() -> None:
    def cast(x: Any) -> Any:
        y = tf.abs(tf.tanh(x) * 9.0)
        whole = tf.cast(y, tf.uint32)  # refused: out of range it differs
        rows = tf.boolean_mask(tf.cast(whole, tf.float32), y[:, 0] > 5.0)  # so many: who knows
        return tf.tanh(rows) * 2.0

    spec = tf.TensorSpec([None, 5], tf.float32)
    module = hybrid.compile(cast, spec, deny=["GatherV2"])  # whose kernel leaves wrong indices
    report = module.report
    assert report is not None
    assert [part.where for part in report.parts] == ["kernel", "TensorFlow", "kernel"]
    assert {"Cast", "Where", "GatherV2"} <= set(report.parts[1].ops)
    assert any("Cast" in why for why in report.refused.values())
    assert "has no kernel" in str(report)
    assert_same(module(numbers(3, 5)), cast(numbers(3, 5)))


def test_ranks_that_are_not_known_are_tensorflows() -> None:
    def shapeless(x: Any, y: Any) -> Any:
        return tf.nn.softmax(tf.tanh(x) * 2.0), tf.math.lgamma(y)

    specs = [tf.TensorSpec(None, tf.float32), tf.TensorSpec([None], tf.float32)]
    module = hybrid.compile(shapeless, *specs)
    assert module.report is not None
    assert (module.report.kernels, module.report.calls) == (0, 1)
    assert list(module.report.refused.values()) == ["the rank of an input is not known"]
    assert "the rank" in module.report.uncompared or "no rank" in module.report.uncompared
    given = numbers(2, 3, 4), numbers(6)
    assert_same(module(*given), shapeless(*given))


def test_errors_of_tensorflow_come_through() -> None:
    def parsed(text: Any) -> Any:
        return tf.strings.to_number(text)

    module = hybrid.compile(parsed, tf.constant(["1.5"]))
    assert_same(module(["2"]), tf.constant([2.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="StringToNumberOp"):
        module(["two"])
    assert_same(module(["3"]), tf.constant([3.0]))
    with pytest.raises(RuntimeError, match="while a graph is traced"):
        tf.function(module)(tf.constant(["1"]))


def test_sizes_that_a_kernel_does_not_take_are_an_error() -> None:
    import tvm

    runtime.register()
    require = tvm.get_global_func(runtime.REQUIRE)
    require(1, 1, "abcd1234")
    with pytest.raises(ValueError, match=r'a dim of the call is 0.*deny=\["region:abcd1234"\]'):
        require(0, 1, "abcd1234")


def test_results_that_differ_are_an_error() -> None:
    counted = itertools.count()

    def noise(x: Any) -> Any:
        return x + tf.numpy_function(lambda: np.float32(next(counted)), [], tf.float32)

    with pytest.raises(ValueError, match=r"output 0 of the module is .* away from the model's"):
        hybrid.compile(noise, tf.zeros([3]))


def test_how_far_results_may_be_is_stated() -> None:
    def layers(x: Any) -> Any:
        return tf.nn.softmax(tf.nn.gelu(tf.matmul(x, x) * 3.0))

    hybrid.compile(layers, numbers(24, 24))
    with pytest.raises(ValueError, match=r"1e-12 is allowed: state rtol=, or find the region"):
        hybrid.compile(layers, numbers(24, 24), rtol=1e-12)


def test_what_the_model_asserts_is_an_error() -> None:
    def positive(x: Any) -> Any:
        tf.debugging.assert_positive(x, message="must be positive")
        return tf.tanh(x) * 2.0

    module = hybrid.compile(positive, tf.TensorSpec([None], tf.float32))
    x = tf.ones([3])
    assert_same(module(x), positive(x))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive"):
        module(-x)
    assert_same(module(x), positive(x))


def test_values_without_a_dtype_of_tvms() -> None:
    def several(z: Any, text: Any, items: Any) -> Any:
        summed = tf.data.experimental.from_variant(items, tf.TensorSpec([], tf.int64))
        total = summed.reduce(tf.constant(0, tf.int64), lambda a, b: a + b)
        return z * 2j, tf.strings.upper(text), total, items

    items = tf.data.experimental.to_variant(tf.data.Dataset.range(5))
    module = hybrid.compile(several, tf.constant([1 + 1j]), tf.constant("a"), items)
    turned, upper, total, same = module(tf.constant([1j]), tf.constant("b"), items)
    assert turned.numpy().tolist() == [-2]
    assert (upper.numpy(), int(total), same.dtype) == (b"B", 10, tf.variant)


def test_values_that_pass_through() -> None:
    x = tf.constant([1.0, -2.0])

    def through(x: Any) -> Any:
        return x, tf.constant("a"), tf.identity(x), tf.constant([1, 2])

    module = hybrid.compile(through, tf.TensorSpec([None], tf.float32))
    assert_same(module(x), through(x))

    def own(x: Any) -> Any:
        y = x + 1.0  # TensorFlow may not write it into the memory of x, which TVM still has
        return tf.math.lgamma(y), x

    module = hybrid.compile(own, x, deny=["AddV2"])
    assert_same(module(x), own(x))
    assert x.numpy().tolist() == [1.0, -2.0]


def test_what_cannot_be_a_module() -> None:
    count = tf.Variable(0.0)

    def counted(x: Any) -> Any:
        count.assign_add(1.0)
        return x * count

    with pytest.raises(ValueError, match=r"counted writes into a variable \(AssignAddVariableOp"):
        hybrid.compile(counted, tf.ones([2]))
    with pytest.raises(ValueError, match="takes or returns what is neither a tensor, nor ragged"):
        hybrid.compile(lambda x: tf.IndexedSlices(x, tf.constant([1, 0])), tf.ones([2]))
    handle = tf.TensorSpec([], tf.resource)
    with pytest.raises(ValueError, match="takes a resource, input 1: have it capture that"):
        hybrid.compile(
            lambda x, h: x * tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32),
            tf.TensorSpec([2], tf.float32),
            handle,
        )
    with pytest.raises(TypeError, match="needs the inputs of one call of counted"):
        hybrid.compile(counted)
    with pytest.raises(TypeError, match="takes a model or a function, not 3"):
        hybrid.compile(3)


@pytest.mark.slow
def test_memory_that_tensorflow_returns_again_is_given_to_no_other_kernel() -> None:
    def reshaped(x: Any) -> Any:
        y = tf.reshape(tf.tanh(x) * 2.0, [4, 16])  # TensorFlow's, in the memory of a kernel's
        z = tf.math.lgamma(tf.nn.softmax(tf.tanh(tf.math.lgamma(y + 3.5))) + 3.5)
        return tf.tanh(z) + y

    x = numbers(8, 8)
    module = hybrid.compile(reshaped, x, deny=["Reshape"])
    assert module.report is not None
    assert (module.report.kernels, module.report.calls) == (3, 2)
    assert_same(module(x), reshaped(x))


@pytest.mark.slow
def test_the_folder_of_a_saved_model(tmp_path: Path) -> None:
    model = tf.Module()
    model.weights = tf.Variable(numbers(6, 4))

    def served(x: Any) -> Any:
        y = tf.matmul(x, model.weights) + 1.0
        return {"big": tf.nn.relu(y) * 2.0, "whole": tf.bitwise.invert(tf.cast(y, tf.int32))}

    function = tf.function(served, input_signature=[tf.TensorSpec([None, 6], tf.float32, name="x")])
    tf.saved_model.save(model, str(tmp_path / "m"), signatures={"serving_default": function})
    module = hybrid.compile(tmp_path / "m", {"x": numbers(3, 6)})
    x = numbers(5, 6, seed=2)
    assert_same(module(x=x), served(x))
    with pytest.raises(ValueError, match="no signature other; it has serving_default"):
        hybrid.compile(tmp_path / "m", signature="other")
