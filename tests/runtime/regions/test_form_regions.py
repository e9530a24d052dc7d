"""Graphs with regions compute what they did, in functions, in what these call, and in loops."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding import settings as options
from tests.runtime import kernel_support as k
from tests.runtime.regions import test_partition as parts


def formed() -> int:
    return int(k.stats()["regions"])


def with_regions(body: Callable[..., Any], *inputs: Any) -> tuple[list[Any], int]:
    """The results of a new function of this body with regions, and how many it got."""
    function = tf.function(body, autograph=False)
    before = formed()
    with options.options(regions=True):
        results = tf.nest.flatten(function(*inputs))
    return results, formed() - before


def without(body: Callable[..., Any], *inputs: Any) -> list[Any]:
    return tf.nest.flatten(tf.function(body, autograph=False)(*inputs))


def assert_close(found: Any, wanted: Any) -> None:
    for value, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-5, atol=1e-6)


STEPS = {
    "e": lambda p, _: tf.tanh(p),
    "t": lambda p, _: tf.transpose(p),
    "l": lambda p, _: tf.math.lgamma(tf.abs(p) + 1.0),  # no kernel has it
    "a": lambda p, q: p + q,
    "p": lambda p, q: tf.matmul(p, q) * 0.25,
    "m": tf.maximum,
    "s": lambda p, q: tf.concat(tf.split(p, 2, axis=0)[::-1], 0) - q,
}


@st.composite
def bodies(draw: Any) -> Callable[..., Any]:
    """A function of two tensors: a random graph."""
    step = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 30), st.integers(0, 30))
    steps = draw(st.lists(step, min_size=3, max_size=25))
    outputs = draw(st.lists(st.integers(0, 30), min_size=1, max_size=3))

    def body(x: Any, y: Any) -> Any:
        values = [x, y]
        for kind, a, b in steps:
            values.append(STEPS[kind](values[a % len(values)], values[b % len(values)]))
        return [values[o % len(values)] for o in outputs]

    return body


def in_a_loop(body: Callable[..., Any]) -> Callable[..., Any]:
    """The body as that of a While of two trips, inside of a function that is called."""

    def looped(x: Any, y: Any) -> Any:
        def trip(i: Any, x: Any, y: Any) -> Any:
            results = body(x, y)
            return i + 1, results[0], results[-1]

        inner = tf.function(
            lambda x, y: tf.while_loop(lambda i, *_: i < 2, trip, (0, x, y))[1:], autograph=False
        )
        return inner(x, y)

    return looped


@settings(max_examples=20, deadline=None)
@given(bodies(), st.booleans())
def test_the_same_numbers(body: Callable[..., Any], loops: bool) -> None:
    inputs = [tf.constant(np.linspace(-1, s, 16, dtype=np.float32).reshape(4, 4)) for s in (1, 2)]
    whole = in_a_loop(body) if loops else body
    assert_close(with_regions(whole, *inputs)[0], without(whole, *inputs))


def chain(x: Any) -> Any:
    return tf.nn.relu(x + 1.0) * 2.0


def test_off_unless_asked_for() -> None:
    before = formed()
    without(chain, tf.ones([3]))
    assert formed() == before
    assert with_regions(chain, tf.ones([3]))[1] == 1


def test_a_loop_and_what_a_function_calls() -> None:
    found, count = with_regions(in_a_loop(lambda x, y: [chain(x), y]), tf.ones([3]), tf.ones([3]))
    assert count >= 1
    assert_close(found, [[10.0] * 3, [1.0] * 3])


def test_a_gradient_of_ones_own_parts_no_region() -> None:
    def body(x: Any) -> Any:
        return tf.nn.silu(tf.nn.silu(x * 2.0) + 1.0)  # each in an IdentityN that has its gradient

    def with_gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = body(x)
        return y, tape.gradient(y, x)

    x = tf.constant([-2.0, 0.5, 3.0])
    found, count = with_regions(body, x)
    assert count == 1
    assert_close(found, without(body, x))
    assert_close(with_regions(with_gradient, x)[0], without(with_gradient, x))


def test_a_function_is_known_by_its_name() -> None:
    def body(x: Any) -> Any:
        return chain(x)

    body.__name__ = "composite_accelerated_f"
    before = formed()
    function = tf.function(body)
    function(tf.ones([3]))
    assert formed() == before + 1
    with options.options(regions=False):
        tf.function(body)(tf.ones([3]))
    assert formed() == before + 1


def test_a_saved_model_keeps_the_name(tmp_path: Path) -> None:
    def inner(x: Any) -> Any:
        return chain(x)

    def body(x: Any) -> Any:
        return {"y": tf.function(inner)(x) - 1.0}

    body.__name__ = "composite_accelerated_f"
    module = tf.Module()
    module.f = tf.function(body, input_signature=[tf.TensorSpec([3], tf.float32)])
    with options.options(regions=False):
        tf.saved_model.save(module, str(tmp_path), signatures={"serving_default": module.f})
    before = formed()
    served = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    assert_close([served(x=tf.ones([3]))["y"]], [[3.0] * 3])
    assert formed() > before
    before = formed()
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        meta = v1.saved_model.load(session, ["serve"], str(tmp_path))
        signature = meta.signature_def["serving_default"]
        feeds = {signature.inputs["x"].name: [1.0] * 3}
        assert_close([session.run(signature.outputs["y"].name, feeds)], [[3.0] * 3])
    assert formed() > before


def test_eager_ops_are_left_alone() -> None:
    before = formed()
    with options.options(regions=True):
        tf.nn.softmax(tf.ones([3, 3]))
    assert formed() == before


def test_what_xla_compiles_is_left_alone() -> None:
    before = formed()
    with options.options(regions=True):
        result = tf.function(chain, jit_compile=True)(tf.ones([3]))
        nested = tf.function(tf.function(chain, jit_compile=True))(tf.ones([3]))
    assert formed() == before
    assert_close([result, nested], [[4.0] * 3] * 2)


def test_gradients_of_what_has_regions() -> None:
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.tanh(x) * chain(x))
        return tape.gradient(y, x)

    x = tf.constant([[0.5, -2.0], [1.0, 3.0]])
    found, count = with_regions(step, x)
    assert count >= 1
    assert_close(found, without(step, x))


def test_shapes_are_known_behind_a_region() -> None:
    def body(x: Any) -> Any:
        return tf.math.lgamma(tf.reshape(tf.exp(x) * 2.0, [-1, 2]))

    x = tf.ones([3, 4])
    assert_close(with_regions(body, x)[0], without(body, x))


def test_an_error_is_the_ops_own() -> None:
    def body(x: Any, y: Any) -> Any:
        return tf.exp(tf.reshape(x, [-1])) * tf.tanh(tf.reshape(y, [-1]))

    unknown = tf.TensorSpec(None, tf.float32)
    function = tf.function(body, input_signature=[unknown, unknown])
    with (
        options.options(regions=True),
        pytest.raises(tf.errors.InvalidArgumentError, match="ncompatible shapes"),
    ):
        function(tf.ones([3]), tf.ones([4]))


def test_a_function_that_is_prepared_anew_gets_what_it_had() -> None:
    """TensorFlow forgets what it prepared when a seed is set, as Keras does for each model."""
    x = tf.constant([0.5, 1.0, -2.0])
    ways = {"": tf.function(chain), "on": tf.function(chain), "off": tf.function(chain)}
    for chosen, regions in (("on", True), ("off", False)):
        with options.options(regions=regions):
            ways[chosen](x)
    ways[""](x)
    for chosen, is_formed in (("", False), ("off", False), ("on", True)):
        tf.random.set_seed(1)
        before = formed()
        assert_close([ways[chosen](x)], [chain(x)])
        assert (formed() > before) == is_formed
    with options.options(regions=False):  # says otherwise, and is the last to have said so
        tf.random.set_seed(1)
        ways["on"](x)
    tf.random.set_seed(1)
    before = formed()
    ways["on"](x)
    assert formed() == before


def test_another_value_is_an_error() -> None:
    with (
        pytest.raises(ValueError, match="regions='yes' is not True or False"),
        options.options(regions="yes"),  # type: ignore[arg-type]
    ):
        pass
    with pytest.raises(tf.errors.InvalidArgumentError, match='regions "yes" is unknown'):
        k.request("composite_set_options", k.node("", "", regions="yes", thread=True))


def counted() -> list[Any]:
    """The counts of regions."""
    reply = k.request("composite_region_counts", k.node("", ""))
    return list(GraphDef.FromString(reply).node)


@pytest.fixture
def covered() -> Iterator[None]:
    """Kernels may come for the ops of this test, so that nodes of its regions stay."""
    k.request("composite_set_kernel_ops", k.node("", "", ops=["Const", "Identity", "Mul", "Tanh"]))
    yield
    k.request("composite_set_kernel_ops", k.node("", "", ops=["NoOp"]))


@pytest.mark.usefixtures("covered")
def test_options_hold_for_the_regions_made_under_them() -> None:
    def body(x: Any) -> Any:
        return tf.tanh(x * 1.25) * 2.5

    x = tf.ones([3])
    k.request("composite_region_counts", k.node("", "", reset=True))
    with options.options(regions=True):
        assert_close([tf.function(body)(x)], [body(x)])
    (counts,) = counted()
    assert counts.name.startswith("__composite_region_")
    assert (counts.attr["kernel"].i, counts.attr["expansion"].i) == (0, 1)
    assert "no kernel covers this call" in counts.attr["why"].s.decode()
    with options.options(regions=True, backend="tf"):  # the expansion takes the node's place
        assert_close([tf.function(body)(x)], [body(x)])
    assert [one.attr["expansion"].i for one in counted()] == [1]
    function = tf.function(body)
    wanted = r"region [0-9a-f]{8} of Identity, Mul, Tanh\) was called with backend=\"tvm\": "
    with (
        options.options(regions=True, backend="tvm"),
        pytest.raises(tf.errors.FailedPreconditionError, match=wanted),
    ):
        function(x)
    k.request("composite_region_counts", k.node("", "", reset=True))
    assert not counted()


SCRIPT = """
import tensorflow as tf
from composite.binding import native
native.call("composite_version")
import composite
def regions(body):
    before = composite.stats()
    tf.function(body)(tf.ones([3]))
    return (composite.stats() - before)["regions"]
print(
    regions(lambda x: tf.nn.relu(x + 1.0) * 2.0),
    regions(lambda x: tf.exp(x) * 2.0),  # denied
    regions(lambda x: tf.sin(x) * 2.0),  # not allowed
    regions(lambda x: tf.tanh(x) * 3.0),
    regions(lambda x: tf.tanh(x) * 4.0),  # the third
    regions(lambda x: tf.tanh(x) * 3.0),  # the second again
)
"""


def test_the_environment_says_it_for_a_process() -> None:
    said = {
        "COMPOSITE_REGIONS": "1",
        "COMPOSITE_REGIONS_ALLOW": "Relu, AddV2,Mul,Tanh,Exp",
        "COMPOSITE_REGIONS_DENY": "Exp",
        "COMPOSITE_REGIONS_FUEL": "2",
        "TF_CPP_MIN_LOG_LEVEL": "0",
    }
    run = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        run, env={**os.environ, **said}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "0", "0", "1", "0", "1"]
    assert "region 2 of COMPOSITE_REGIONS_FUEL=2 is __composite_region_" in done.stderr


def test_a_name_says_which_ops_stay_outside() -> None:
    def body(x: Any) -> Any:
        return tf.function(chain)(x) + tf.exp(tf.tanh(x))

    counts = []
    for ops in ("", "without.Relu..", "without.Exp.Tanh..", "without.Relu.Exp.Tanh.."):
        body.__name__ = f"composite_accelerated_{ops}f"
        before = formed()
        assert_close([tf.function(body)(tf.ones([3]))], [body(tf.ones([3]))])
        counts.append(formed() - before)
    assert counts == [2, 1, 1, 0]


def test_a_view_of_what_is_outside_is_no_result() -> None:
    """As of what a dense layer flattens, which the gradient of its weights reads."""

    def body(x: Any, w: Any) -> Any:
        flat = tf.reshape(x, [6, 4])
        return tf.nn.relu(flat @ w) * 2.0, flat, tf.squeeze(flat)

    specs = [tf.TensorSpec([2, 3, 4]), tf.TensorSpec([4, 4])]
    function, found = parts.regions(body, *specs)
    (region,) = found.values()
    assert len(region.signature.output_arg) == 1
    assert parts.ops(region)["Reshape"] == parts.ops(function)["Reshape"] == 1
    x, w = tf.random.stateless_normal([2, 3, 4], [1, 2]), tf.eye(4)
    assert_close(with_regions(body, x, w)[0], body(x, w))


def test_a_result_and_a_view_of_it_are_one_result() -> None:
    def body(x: Any) -> Any:
        y = tf.exp(x) * 2.0
        view = tf.reshape(y, [8, 2])
        return y, view, tf.tanh(view) * 3.0

    function, found = parts.regions(body)
    (region,) = found.values()
    assert len(region.signature.output_arg) == 2
    assert parts.ops(region)["Reshape"] == parts.ops(function)["Reshape"] == 1
    x = tf.random.stateless_normal([4, 4], [1, 2])
    assert_close(with_regions(body, x)[0], body(x))
