"""CompositeCall: functions named by what they compute, called as one node."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

import composite
from composite import Composite, options
from composite.autodiff import backward
from composite.binding import native
from composite.binding.records import PROGRAM
from composite.ops import call, function_op
from composite.ops.registry import OPS
from tests.composite.dense_ops import dense

RANDOM = np.random.default_rng(3)
X, W, B = (
    tf.constant(RANDOM.standard_normal(shape), tf.float32) for shape in ([5, 8], [4, 8], [4])
)

DOUBLE = """
function {
  signature {
    name: "NAME"
    input_arg { name: "x" type: DT_FLOAT }
    output_arg { name: "y" type: DT_FLOAT }
  }
  node_def {
    name: "twice" op: "OP" input: "x" input: "x"
    attr { key: "T" value { type: DT_FLOAT } }
  }
  ret { key: "y" value: "twice:z:0" }
}
"""


def double(name: str = "anything", op: str = "AddV2") -> FunctionDefLibrary:
    text = DOUBLE.replace("NAME", name).replace("OP", op)
    return text_format.Parse(text, FunctionDefLibrary())


def gradients(x: Any, act: str = "RELU", **keywords: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = dense(x, W, B, act=act, **keywords)
    return tape.gradient(y, x)


def nodes(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    graph = tf.function(function).get_concrete_function(*arguments).graph
    return [op.node_def for op in graph.get_operations() if op.type == function_op.NAME]


def test_a_name_follows_from_what_is_computed() -> None:
    name = function_op.canonical(double(), "test").function[0].signature.name
    assert name.startswith("__composite_test_") and len(name) == len("__composite_test_") + 32
    assert function_op.canonical(double("other"), "test").function[0].signature.name == name
    assert function_op.canonical(double(op="Mul"), "test").function[0].signature.name != name


def test_a_place_is_kept_and_is_no_part_of_a_name() -> None:
    placed = double()
    info = placed.function[0].node_def[0].experimental_debug_info
    info.original_node_names.append("twice (ops.py:1:1)")
    found = function_op.canonical(placed, "test")
    plain = function_op.canonical(double(), "test")
    assert found.function[0].signature.name == plain.function[0].signature.name
    assert found.function[0].node_def[0].experimental_debug_info == info


def test_a_call_is_what_the_function_gives() -> None:
    library = function_op.define(function_op.canonical(double(), "test"))
    (y,) = function_op.invoke(library, [X], 0, {})
    np.testing.assert_array_equal(y, 2 * X)
    traced = tf.function(lambda x: function_op.invoke(library, [x], 0, {})[0])
    np.testing.assert_array_equal(traced(X), 2 * X)
    assert traced.get_concrete_function(tf.TensorSpec([None, 3])).output_shapes.as_list() == [
        None,
        3,
    ]


@pytest.mark.parametrize(
    ("library", "message"),
    [
        (FunctionDefLibrary(), "there is no function"),
        (double("unknown", "NoSuchOp"), "twice is of NoSuchOp, which is no op here"),
        (double("stateful", "Assert"), "twice is of Assert, which keeps state"),
    ],
)
def test_what_is_no_such_function_is_an_error(library: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        native.call("composite_register_function", library)


def test_a_gradient_is_one_node_with_the_options_of_its_op() -> None:
    with options(backend="tf"):
        (node,) = nodes(gradients, X)
    assert node.attr["_composite_backend"].s == b"tf"
    assert node.attr["f"].func.name.startswith("__composite_backward_")
    assert node.attr[PROGRAM].s.decode() == node.attr["f"].func.name
    with options(backend="tvm"):  # a must of the op is none of its gradient
        (node,) = nodes(gradients, X)
    assert "_composite_backend" not in node.attr


def test_a_gradient_that_nobody_asks_for_is_not_computed() -> None:
    def slope(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = dense(x, w, B, act="RELU")
        return tape.gradient(y, w)

    (node,) = nodes(slope, X, W)
    assert len(node.attr["Tout"].list.type) == 1
    graph = tf.function(slope).get_concrete_function(X, W).graph.as_graph_def()
    library = {f.signature.name: f for f in graph.library.function}
    ops = [n.op for n in library[node.attr["f"].func.name].node_def]
    assert ops.count("MatMul") == 1


def by_tensorflow(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ops that TensorFlow's eager runtime is called for, from now on."""
    made: list[str] = []
    found = call.fast_call

    def fast_call(op_name: str, *others: Any) -> list[Any]:
        made.append(op_name)
        return found(op_name, *others)

    monkeypatch.setattr(call, "fast_call", fast_call)
    return made


def test_eager_calls_are_direct_from_the_fifth_on(monkeypatch: pytest.MonkeyPatch) -> None:
    library = function_op.define(function_op.canonical(double(), "direct"))
    made = by_tensorflow(monkeypatch)
    for _ in range(7):
        (y,) = function_op.invoke(library, [X], 0, {})
        np.testing.assert_array_equal(y, 2 * X)
    assert made == [function_op.NAME] * 4


def test_direct_calls_are_on_tapes_as_others_are() -> None:
    library = function_op.define(function_op.canonical(double(op="Mul"), "direct"))
    for _ in range(6):
        with tf.GradientTape() as outer:
            outer.watch(X)
            with tf.GradientTape() as tape:
                tape.watch(X)
                (y,) = function_op.invoke(library, [X], 0, {})
            dy = tape.gradient(y, X)
        np.testing.assert_allclose(dy, 2 * X)
        np.testing.assert_allclose(outer.gradient(dy, X), np.full(X.shape, 2.0))


def test_backwards_are_direct_from_the_fifth_call_on(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.constant(RANDOM.standard_normal([3, 8]), tf.float32)
    first = gradients(x, act="TANH")
    for _ in range(12):  # in some of them, a forward that saves is made
        np.testing.assert_allclose(gradients(x, act="TANH"), first, rtol=1e-5)
    made = by_tensorflow(monkeypatch)
    np.testing.assert_allclose(gradients(x, act="TANH"), first, rtol=1e-5)
    assert not made


def test_arguments_that_xla_must_know_are_the_last() -> None:
    @Composite("FunctionOpSum", inputs=["axis: int32", "x: float"], outputs=["y: float"])
    def total(axis, x):
        return tf.reduce_sum(x * x, axis=axis)

    def slope(axis: Any, x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = total(axis, x)
        return tape.gradient(y, x)

    (node,) = nodes(slope, tf.TensorSpec([1], tf.int32), X)
    assert list(node.attr["Tconstants"].list.type) == [tf.int32.as_datatype_enum]
    np.testing.assert_allclose(slope([1], X), 2 * X, rtol=1e-6)
    jitted = tf.function(lambda x: slope([1], x), jit_compile=True)
    np.testing.assert_allclose(jitted(X), 2 * X, rtol=1e-6)


@pytest.mark.slow
def test_a_gradient_is_dispatched_as_an_op_is() -> None:
    x = tf.constant(RANDOM.standard_normal([64, 8]), tf.float32)
    expected = gradients(x)
    composite.wait()
    before = composite.stats()
    found = gradients(x)
    seen = composite.stats() - before
    # Forward and backward, each as it was measured to be faster.
    assert seen["kernel_launches"] + seen["expansion_runs"] == 2
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_gradient_that_keeps_state_is_called_as_a_function() -> None:
    @Composite("FunctionOpAsserts", inputs=["x: float"], outputs=["y: float"])
    def asserts(x):
        assert tf.reduce_all(x > -100.0)
        while tf.reduce_sum(x) > 1.0:
            x = x / 2.0
            assert tf.reduce_all(x > -100.0)
        return x

    with tf.GradientTape() as tape:
        x = tf.constant([2.0, 1.0])
        tape.watch(x)
        y = asserts(x)
    np.testing.assert_allclose(tape.gradient(y, x), [0.25, 0.25])


def test_sizes_that_need_their_own_backward_leave_no_function_behind() -> None:
    @Composite("FunctionOpSplits", inputs=["x: float"], outputs=["y: float"])
    def splits(x):
        total = x[0]
        for i in range(1, x.shape[0]):
            total = total * x[i]
        return total

    backward.differentiate.cache_clear()
    defined = len(OPS._functions)
    for size in range(2, 8):
        x = tf.ones([size])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = splits(x)
        np.testing.assert_array_equal(tape.gradient(y, x), x)
    assert len(OPS._functions) <= defined + 1


MODEL = """
import sys
import tensorflow as tf
from tests.composite.dense_ops import dense

w, b = tf.ones([4, 8]), tf.ones([4])

@tf.function(input_signature=[tf.TensorSpec([None, 8])])
def slope(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = dense(x, w, b, act="TANH")
    return tape.gradient(y, x)

model = tf.Module()
model.slope = slope
tf.saved_model.save(model, sys.argv[1])
"""

LOADED = """
import sys
import numpy as np
import tensorflow as tf
import tests.composite.dense_ops

w = tf.ones([4, 8])
model = tf.saved_model.load(sys.argv[1])
x = tf.random.normal([5, 8])
with tf.GradientTape() as tape:
    tape.watch(x)
    slope = model.slope(x)
second = tape.gradient(slope, x)
with tf.GradientTape() as outer:
    outer.watch(x)
    with tf.GradientTape() as inner:
        inner.watch(x)
        y = tf.tanh(tf.matmul(x, w, transpose_b=True) + 1.0)
    expected = inner.gradient(y, x)
np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-5)
np.testing.assert_allclose(second, outer.gradient(expected, x), rtol=1e-4, atol=1e-5)
"""


def test_a_saved_gradient_is_differentiated_in_a_fresh_process(
    run_python: Callable[..., Any], tmp_path: Path
) -> None:
    run_python(MODEL, str(tmp_path / "model"))
    run_python(LOADED, str(tmp_path / "model"))


def test_names_for_people() -> None:
    names = ("__composite_region_0123456789abcdef", "__composite_Dense_backward_f00123456789", "f")
    found = [function_op.in_short(name) for name in names]
    assert found == ["region 89abcdef", "Dense backward 23456789", "f"]
