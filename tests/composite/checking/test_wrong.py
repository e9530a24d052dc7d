"""Every comparison of composite.check is able to fail: ops that are wrong in one way are caught."""

import functools
import re

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.binding import settings
from composite.jit import worker
from composite.kernels import verify
from tests.composite.checking import ops

pytestmark = pytest.mark.many_cases

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def wrong_call(monkeypatch):
    """`wrong_call(change)` has calls of `bend` give change(y)."""
    right = type(ops.bend).__call__

    def install(change):
        def call(self, *args, **attrs):
            return change(right(self, *args, **attrs))

        monkeypatch.setattr(type(ops.bend), "__call__", call)

    return install


def failure(tmp_path, way, op=ops.bend, inputs=(X,), **attrs):
    """The difference that one way finds."""
    report = composite.check(
        op, *inputs, ways=[way], report_dir=tmp_path, raise_on_failure=False, **attrs
    )
    assert not report.ok and report.difference is not None
    assert report.difference.way == way and report.row(way).differs
    assert "a way differs" in str(report) and "DIFFERS" in str(report)
    return str(report.difference)


def test_another_body(tmp_path, monkeypatch):
    monkeypatch.setattr(ops.bend, "python_function", lambda x, by: tf.tanh(x * by) * 1.0001 + x)
    with pytest.raises(composite.CheckError) as raised:
        composite.check(ops.bend, X, by=0.5, report_dir=tmp_path)
    text = str(raised.value)
    assert "CheckedBend (tests/composite/checking/ops.py:15) differs" in text
    assert "way 'eager'" in text
    assert "in the call CheckedBend(float32[4, 3], by=0.5 (as given))" in text
    assert "output 0 is off by 2e-05 of |y|, 6.6e-06 is allowed; at [0, 2] it is -1.8351" in text
    assert ", and -1.8352" in text
    assert f"python {tmp_path / 'CheckedBend-eager' / 'reproduce.py'}" in text
    assert (tmp_path / "CheckedBend-eager" / "reproduce.py").is_file()
    assert raised.value.report.row("eager").differs


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x, by: tf.cast(tf.tanh(x * by) + x, tf.float64), "is float32, and float64 is"),
        (lambda x, by: (tf.tanh(x * by) + x)[None], "has shape [4, 3], and [1, 4, 3] is expected"),
        (lambda x, by: tf.where(x > 1.5, np.nan, tf.tanh(x * by) + x), "a NaN in 2 other places"),
        (lambda x, by: tf.where(x > 1.5, np.inf, tf.tanh(x * by) + x), "infinity in 2 other place"),
        (lambda x, by: [x, x], "the Python function raises ValueError: 2 results for 1 outputs"),
        (lambda x, by: 1 // 0, "gives a result, and the Python function raises ZeroDivisionError"),
    ],
)
def test_what_differs(tmp_path, monkeypatch, body, message):
    monkeypatch.setattr(ops.bend, "python_function", body)
    assert message in failure(tmp_path, "eager")


def test_an_op_that_raises(tmp_path, monkeypatch):
    monkeypatch.setattr(ops.square_only, "python_function", lambda x: x)
    text = failure(tmp_path, "eager", ops.square_only)
    assert "it raises InvalidArgumentError: " in text and "ops.py:" in text


def test_a_batch(tmp_path, wrong_call):
    wrong_call(lambda y: y if tf.executing_eagerly() else y * 1.0001)
    assert "output 0 is off by" in failure(tmp_path, "vectorized_map")


def test_a_batch_that_raises(tmp_path, wrong_call):
    wrong_call(lambda y: y if tf.executing_eagerly() else tf.ensure_shape(y, [9, 9]))
    text = failure(tmp_path, "vectorized_map")
    assert "it raises ValueError: " in text and "[9,9]" in text and "in user code" not in text


@pytest.mark.parametrize("way", ["tf.function", "unknown dims", "unknown ranks", "XLA"])
def test_graphs(tmp_path, wrong_call, way):
    wrong_call(lambda y: y if tf.executing_eagerly() else y + 1)
    assert "off by" in failure(tmp_path, way)
    composite.check(ops.bend, X, ways=["eager"])


def pretended(y, shape):
    if tf.executing_eagerly():
        return y
    pretended = tf.raw_ops.PlaceholderWithDefault(input=y, shape=None)
    pretended.set_shape(shape)
    return pretended


def test_a_shape_that_is_wrong(tmp_path, wrong_call):
    wrong_call(functools.partial(pretended, shape=[None, 7]))
    text = failure(tmp_path, "shape function")
    assert "with known shapes, output 0 is inferred as (None, 7); it has (4, 3)" in text


def test_a_shape_that_could_be_known(tmp_path, wrong_call):
    wrong_call(functools.partial(pretended, shape=[None, 3]))
    text = failure(tmp_path, "shape function")
    assert "output 0 is inferred as (None, 3), and its body's as (4, 3)" in text


def test_a_shape_function_that_raises(tmp_path, wrong_call):
    wrong_call(lambda y: y if tf.executing_eagerly() else tf.reshape(y, [7, 7]))
    assert "with known shapes, tracing raises ValueError" in failure(tmp_path, "shape function")


def test_other_bits_each_time(tmp_path, wrong_call):
    random = np.random.default_rng(0)
    wrong_call(lambda y: y + random.standard_normal())
    assert "(two runs of one call)" in failure(tmp_path, "deterministic")


@pytest.mark.parametrize("way", ["gradient", "numeric gradient"])
def test_gradients(tmp_path, way):
    @composite.Composite(
        "CheckedGradient" + way[0].upper(),
        inputs=["x: T"],
        derived_attrs=["T: {float, double}"],
        outputs=["y: T"],
    )
    def op(x):
        return x * x

    assert composite.check(op, X, ways=[way]).row(way).samples > 0

    @op.gradient
    def _(call, upstream):
        return upstream * call.inputs[0] * 2.01

    text = failure(tmp_path, way, op)
    assert ("numeric differences give" if way[0] == "n" else "off by") in text


@pytest.mark.parametrize("factor", [2.0, 2.02])
def test_second_gradients(tmp_path, factor):
    """Of x * x: where the first gradient is right, and where it is not."""

    @composite.Composite(
        f"CheckedSecond{factor}".replace(".", ""),
        inputs=["x: T"],
        derived_attrs=["T: {float, double}"],
        outputs=["y: T"],
    )
    def op(x):
        return x * x

    row = composite.check(op, X, ways=["second gradient"], samples=1).row("second gradient")
    assert row.samples == 1 and not row.note

    @op.gradient
    def _(call, upstream):
        return upstream * tf.stop_gradient(call.inputs[0]) * factor

    text = failure(tmp_path, "second gradient", op)
    assert "the gradient of input tensor 0 at [" in text
    assert "is 0.0, and the Python function's is" in text


def saturated_off_by(name, ulps):
    """Tanh with a gradient of a tanh that is as far off, where results are float32."""

    @composite.Composite(
        name, inputs=["x: T"], derived_attrs=["T: {float, double}"], outputs=["y: T"]
    )
    def op(x):
        return tf.tanh(x)

    @op.gradient
    def _(call, upstream):
        y = call.outputs[0]
        y *= 1 - (ulps * np.finfo(np.float32).epsneg if y.dtype == tf.float32 else 0)
        return upstream * (1 - y * y)

    return op


def saturating(seed):
    return np.random.default_rng(seed).uniform(5, 9, [3]).astype(np.float32)


def test_an_ulp_of_what_saturates_is_no_difference():
    op = saturated_off_by("CheckedOneUlp", 1)
    for seed in range(30):
        assert composite.check(op, saturating(seed), ways=["gradient"], samples=1).ok


@pytest.mark.parametrize("seed", [0, 28])
def test_more_ulps_of_it_than_are_stated_are_one(tmp_path, seed):
    op = saturated_off_by(f"CheckedUlps{seed}", 64)
    inputs = [saturating(seed)]
    assert "off by" in failure(tmp_path, "gradient", op, inputs)


def test_where_it_does_not_saturate_a_small_error_is_one(tmp_path):
    assert "off by" in failure(tmp_path, "gradient", saturated_off_by("CheckedFew", 128), [X])


def test_composites_in_the_python_function_run_on_tensorflows_ops(monkeypatch):
    chosen = []
    right = ops.bend.python_function

    def body(x, by):
        chosen.append(settings._local.backend)
        return right(x, by)

    monkeypatch.setattr(ops.bend, "python_function", body)
    composite.check(ops.bend, X, ways=["eager", "gradient"], samples=1)
    assert set(chosen) == {"tf"}


def test_a_second_gradient_that_raises(tmp_path):
    @composite.Composite("CheckedSecondRaises", inputs=["x: double"], outputs=["y: double"])
    def op(x):
        return x * x

    @op.gradient
    def _(call, upstream):
        return tf.raw_ops.IgammaGradA(a=call.inputs[0], x=call.inputs[0]) * upstream

    text = failure(tmp_path, "second gradient", op, [X.astype(np.float64)])
    assert "it raises LookupError: gradient registry has no entry for: IgammaGradA" in text


def test_no_second_gradient_in_tensorflow_is_no_failure():
    @composite.Composite("CheckedSoftsign", inputs=["x: double"], outputs=["y: double"])
    def op(x):
        return tf.raw_ops.Softsign(features=x)

    report = composite.check(op, X.astype(np.float64), ways=["gradient", "second gradient"])
    assert report.ok and report.row("gradient").samples > 0
    assert "no second gradient: LookupError" in report.row("second gradient").note


def test_a_gradient_that_raises(tmp_path):
    @composite.Composite("CheckedGradientRaises", inputs=["x: float"], outputs=["y: float"])
    def op(x):
        return x * x

    @op.gradient
    def _(call, upstream):
        raise LookupError("none here")

    assert "it raises LookupError: none here" in failure(tmp_path, "gradient", op)


def test_a_gradient_that_is_not_the_slope_is_noted():
    @composite.Composite("CheckedStop", inputs=["x: double"], outputs=["y: double"])
    def op(x):
        return x * tf.stop_gradient(x)

    report = composite.check(op, X.astype(np.float64), ways=["gradient", "numeric gradient"])
    assert report.row("gradient").samples > 0 and report.ok
    assert "not the numeric one (tf.stop_gradient?)" in report.row("numeric gradient").note


def test_a_kernel(tmp_path, wrong_call):
    wrong_call(lambda y: y * 1.001 if settings._local.backend == "tvm" else y)
    assert "off by" in failure(tmp_path, "kernel")


def test_a_kernel_by_itself(tmp_path, monkeypatch):
    right = verify.run_kernel

    def wrong(library, name, inputs, like, threads):
        found = right(library, name, inputs, like, threads)
        return [y + (threads == 2) for y in found]

    monkeypatch.setattr(verify, "run_kernel", wrong)
    text = failure(tmp_path, "kernel, unaligned")
    assert "output 0 is" in text

    def outside(*_):
        raise verify.Mismatch("the kernel wrote outside its output")

    monkeypatch.setattr(verify, "run_kernel", outside)
    text = failure(tmp_path, "kernel, unaligned")
    assert "with 1 threads, the kernel wrote outside its output" in text


def test_the_kernel_gets_buffers_without_alignment(monkeypatch):
    addresses: list[tuple[int, int]] = []
    right = verify.run_kernel

    def recording(library, name, inputs, like, threads):
        addresses.extend((x.ctypes.data % 64, threads) for x in inputs)
        return right(library, name, inputs, like, threads)

    monkeypatch.setattr(verify, "run_kernel", recording)
    composite.check(ops.bend, X, ways=["kernel, unaligned"], samples=1)
    assert [threads for _, threads in addresses] == [1, 2]
    assert all(offset % 16 == 4 for offset, _ in addresses)


@pytest.mark.slow
def test_no_kernel_is_no_failure():
    report = composite.check(ops.no_kernel, X)
    assert report.ok and not report.row("kernel").samples
    told = r"no kernel: \S*\w+\.py:\d+:\d+: op Lgamma is not in the kernel table"
    assert re.search(told, report.row("kernel").note)
    assert re.search(told, str(report))


def test_no_compiler_is_no_failure(monkeypatch):
    monkeypatch.setattr(worker, "running", lambda: False)
    report = composite.check(ops.bend, X, ways=["kernel"], samples=2)
    assert report.ok and "COMPOSITE_JIT=0" in report.row("kernel").note
