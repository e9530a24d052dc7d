"""What the forward keeps for the backward: how often a product is computed in a training step."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite, options
from composite.autodiff import residuals
from composite.binding.records import PROGRAM
from composite.ops import function_op

pytestmark = pytest.mark.many_cases

RANDOM = np.random.default_rng(4)
FLOATS = ["T: {float, double}"]


@Composite("SavingDense", inputs=["x: T", "w: T"], derived_attrs=FLOATS, outputs=["y: T"])
def dense(x, w):
    """Softplus has a gradient that reads its input: the product."""
    return tf.math.softplus(tf.matmul(x, w))


@Composite("SavingNorm", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T", "m: T"])
def norm(x):
    """Two outputs, and sums that are kept."""
    mean = tf.reduce_mean(x, axis=-1, keepdims=True)
    moved = x - mean
    variance = tf.reduce_mean(moved * moved, axis=-1, keepdims=True)
    return moved * tf.math.rsqrt(variance + 1e-3), mean * mean


def tensors(*shapes: list[int]) -> list[Any]:
    return [tf.constant(RANDOM.standard_normal(shape), tf.float32) for shape in shapes]


def step(op: Any, *inputs: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = op(*inputs)
        loss = tf.add_n([tf.reduce_sum(one * one) for one in tf.nest.flatten(y)])
    return y, tape.gradient(loss, inputs)


def assert_like_python(op: Any, inputs: list[Any], found: Any) -> None:
    expected = step(op.python_function, *inputs)
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4)


def saving_forwards(traced: Any, *inputs: Any) -> list[Any]:
    operations = traced.get_concrete_function(*inputs).graph.get_operations()
    return [op for op in operations if function_op.SAVING_FORWARD in op.node_def.attr]


@pytest.mark.parametrize("backend", ["auto", "tf"])
@pytest.mark.parametrize(
    ("op", "shapes"), [(dense, [[5, 256], [256, 6]]), (norm, [[7, 300]])], ids=["dense", "norm"]
)
def test_a_step_is_right(op: Any, shapes: list[list[int]], backend: str) -> None:
    inputs = tensors(*shapes)
    with options(backend=backend):
        traced = tf.function(step)
        for _ in range(2):
            assert_like_python(op, inputs, traced(op, *inputs))
            composite.wait()


def test_a_step_has_three_products() -> None:
    @Composite("SavingThree", inputs=["x: T", "w: T"], derived_attrs=FLOATS, outputs=["y: T"])
    def dense(x, w):
        return tf.math.softplus(tf.matmul(x, w))

    inputs = tensors([5, 256], [256, 6])
    traced = tf.function(step)
    (saving_forward,) = saving_forwards(traced, dense, *inputs)
    library = {f.signature.name: f for f in saving_forward.graph.as_graph_def().library.function}
    products = {
        name: [node.op for node in function.node_def].count("MatMul")
        for name, function in library.items()
        if "SavingThree" in name
    }
    assert sorted(products.values()) == [1, 2]
    before = composite.stats()
    assert_like_python(dense, inputs, traced(dense, *inputs))
    seen = composite.stats() - before
    # The saving forward and the backward; the forward node is an identity of the former.
    assert seen["kernel_launches"] + seen["expansion_runs"] == 2


def test_gradients_of_one_node_share_its_twin() -> None:
    x, w = tensors([5, 256], [256, 6])

    def both(x: Any, w: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, w])
            y = dense(x, w)
        return tape.gradient(y, x), tape.gradient(y, w)

    traced = tf.function(both)
    assert len(saving_forwards(traced, x, w)) == 1
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = dense.python_function(x, w)
    for a, b in zip(traced(x, w), tape.gradient(y, [x, w]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_a_step_inside_a_loop_and_a_branch() -> None:
    inputs = tensors([5, 256], [256, 6])

    @tf.function
    def loop(x: Any, w: Any) -> Any:
        total = tf.zeros_like(w)
        for _ in tf.range(3):
            if tf.reduce_sum(total) < 1e9:
                total += step(dense, x, w)[1][1]
        return total

    expected = 3 * step(dense.python_function, *inputs)[1][1]
    np.testing.assert_allclose(loop(*inputs), expected, rtol=1e-3, atol=1e-3)


def test_what_is_cheap_is_computed_again() -> None:
    @Composite("SavingCheap", inputs=["x: T", "w: T"], derived_attrs=FLOATS, outputs=["y: T"])
    def cheap(x, w):
        return tf.math.sin(tf.matmul(x, w))

    assert not saving_forwards(tf.function(step), cheap, *tensors([5, 8], [8, 6]))


def test_a_node_that_must_have_a_kernel_stays() -> None:
    inputs = tensors([5, 256], [256, 6])
    with options(backend="tvm"):
        traced = tf.function(step)
        assert not saving_forwards(traced, dense, *inputs)
        assert_like_python(dense, inputs, traced(dense, *inputs))


def test_control_inputs_at_the_gradient_are_none_of_the_forward() -> None:
    inputs = tensors([5, 256], [256, 6])

    @tf.function
    def ordered(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = dense(x, w)
        with tf.control_dependencies([y]):
            return tape.gradient(y, w)

    with tf.GradientTape() as tape:
        tape.watch(inputs[1])
        y = dense.python_function(*inputs)
    expected = tape.gradient(y, inputs[1])
    np.testing.assert_allclose(ordered(*inputs), expected, rtol=1e-4, atol=1e-4)


def test_what_a_relu_behind_a_norm_needs() -> None:
    """The ReLU's result tells where its gradient is, beside a norm that is computed again."""

    @Composite("SavingRelu", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
    def relu(x):
        moved = x - tf.reduce_mean(x, axis=-1, keepdims=True)
        return tf.nn.relu(moved * tf.math.rsqrt(tf.reduce_mean(moved * moved, -1, True) + 1e-3))

    inputs = tensors([7, 300])
    found = composite.explain(relu, *inputs).gradient
    assert found == "keeps Mean (7, 1), Rsqrt (7, 1); computes Sub again"
    assert_like_python(relu, inputs, tf.function(step)(relu, *inputs))


def test_an_extreme_is_not_kept_beside_what_it_is_looked_for_in() -> None:
    @Composite("SavingExtreme", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
    def extreme(x):
        scaled = x * 0.1 + 0.3
        return scaled - tf.reduce_max(scaled, axis=-1, keepdims=True)

    inputs = tensors([7, 300])
    assert composite.explain(extreme, *inputs).gradient.startswith("keeps nothing")
    traced = tf.function(step)
    for _ in range(2):
        assert_like_python(extreme, inputs, traced(extreme, *inputs))
        composite.wait()


@pytest.mark.parametrize("backend", ["auto", "tf"])
def test_a_twin_stands_where_its_forward_stands(
    run_python: Callable[..., Any], backend: str
) -> None:
    run_python(PLACED, backend)


PLACED = """
import sys
import tensorflow as tf
from composite import Composite, options
from composite.ops import function_op

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)

@Composite("SavingPlaced", inputs=["x: float", "w: float"], outputs=["y: float"])
def dense(x, w):
    return tf.math.softplus(tf.matmul(x, w))

@tf.function
def slope(x, w):
    with tf.GradientTape() as tape:
        tape.watch(w)
        first = tf.print("first")
        with tf.device("CPU:1"), tf.name_scope("layer"), tf.control_dependencies([first]):
            y = dense(x, w)
    with tf.device("CPU:0"), tf.name_scope("later"):
        return tape.gradient(y, w)

with options(backend=sys.argv[1]):
    function = slope.get_concrete_function(*[tf.TensorSpec(s) for s in ([5, 256], [256, 6])])
(forward,) = [op for op in function.graph.get_operations() if op.type == "SavingPlaced"]
(twin,) = [op for op in function.graph.get_operations()
           if function_op.SAVING_FORWARD in op.node_def.attr]
assert twin.device == forward.device and "CPU:1" in twin.device.upper(), twin.device
assert twin.name.startswith("layer/"), twin.name
assert [op.name for op in twin.control_inputs] == [op.name for op in forward.control_inputs] != []
from tensorflow.python.eager import context
context.enable_run_metadata()
function(tf.ones([5, 256]), tf.ones([256, 6]))
graphs = [g for f in context.export_run_metadata().function_graphs for g in f.partition_graphs]
ran = [node for graph in graphs for node in graph.node if node.name.startswith("layer/")]
computing = {node.name: node.device for node in ran if node.op in ("MatMul", "CompositeCall")}
assert computing and all("CPU:1" in device for device in computing.values()), computing
"""


def test_a_node_that_only_has_the_name_of_a_twins_forward_stays() -> None:
    """As where a part of a graph was imported beside others, or edited: each computes its own."""

    @Composite("SavingOther", inputs=["x: T", "w: T"], derived_attrs=FLOATS, outputs=["y: T"])
    def other(x, w):
        return -tf.math.softplus(tf.matmul(x, w))

    x, w = tensors([5, 256], [256, 6])
    traced = tf.function(lambda x, w: step(dense, x, w)).get_concrete_function(x, w)
    graph_def = traced.graph.as_graph_def()
    (node,) = [node for node in graph_def.node if node.op == "SavingDense"]
    node.op = "SavingOther"
    node.attr[PROGRAM].s = other.digest.encode()
    fetches = [traced.outputs[0].name]

    def changed(x: Any, w: Any) -> Any:
        fed = {traced.inputs[0].name: x, traced.inputs[1].name: w}
        return tf.graph_util.import_graph_def(graph_def, fed, fetches, name="")

    (y,) = tf.function(changed, autograph=False)(x, w)
    np.testing.assert_allclose(y, other.python_function(x, w), rtol=1e-4, atol=1e-4)


def test_second_order() -> None:
    x, w = (tf.cast(t, tf.float64) for t in tensors([3, 256], [256, 2]))

    def second(op: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(w)
            slope = step(op, x, w)[1][1]
            loss = tf.reduce_sum(slope * slope)
        return outer.gradient(loss, w)

    found = tf.function(lambda: second(dense))()
    np.testing.assert_allclose(found, second(dense.python_function), rtol=1e-8)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("tf.matmul(x, x, transpose_b=True)", ["MatMul"]),
        ("tf.matmul(x, x, transpose_b=True) + x[:, 0]", ["AddV2"]),
        ("tf.matmul(x[:, :4], x[:, :4], transpose_b=True)", []),
        ("tf.exp(x) * x", []),
        # What is kept is behind what only moves data, and of several as little as will do.
        ("tf.transpose(tf.math.erfc(tf.math.erfc(tf.math.erfc(x))))", ["Erfc"]),
        ("tf.exp(tf.reduce_sum(x, axis=1))", ["Exp"]),
        ("tf.exp(tf.reduce_sum(x, axis=1, keepdims=True)) * x", ["Exp"]),
        ("x - tf.reduce_mean(x, axis=1, keepdims=True)", ["Mean"]),
        ("tf.nn.softmax(tf.matmul(x, x, transpose_b=True))", ["Softmax"]),
        ("tf.einsum('ij,kj->ik', x, x)", ["Einsum"]),
        ("tf.linalg.det(x)", ["MatrixDeterminant"]),
        ("tf.cast(tf.reduce_sum(tf.cast(x, tf.int32), axis=1), tf.float32)", ["Cast"]),
    ],
)
def test_what_is_kept(text: str, kept: list[str]) -> None:
    """The body's value is read by the backward, which is a Log here."""
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 64])
        y = eval(text, {"tf": tf, "x": x})
        names = {op.name for op in graph.get_operations()} - {x.op.name}
        read = tf.math.log(y)
        found = residuals.to_save(graph, {*names, read.op.name}, names)
    assert [graph.get_tensor_by_name(name).op.type for name in found] == kept


def test_what_is_given_is_not_kept() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 64])
        total = tf.reduce_sum(x, axis=1)
        read = tf.math.log(tf.exp(total))
        names = {op.name for op in graph.get_operations()} - {x.op.name}
        forward = names - {read.op.name}
        assert residuals.to_save(graph, names, forward, [total.name]) == []


def test_explain_says_what_is_kept() -> None:
    @Composite("SavingExplained", inputs=["x: T", "w: T"], derived_attrs=FLOATS, outputs=["y: T"])
    def explained(x, w):
        return tf.math.sin(tf.math.exp(tf.matmul(x, w)))

    explanation = composite.explain(explained, *tensors([5, 256], [256, 6]))
    assert explanation.gradient == "keeps a gradient's factor (5, 6); computes nothing again"
    explanation = composite.explain(explained, *tensors([5, 8], [8, 6]))
    assert explanation.gradient == "keeps nothing; computes Exp, MatMul again"


def test_explain_says_why_there_is_no_gradient() -> None:
    @Composite("SavingNone", inputs=["x: float"], outputs=["y: int32"])
    def none(x):
        return tf.cast(x, tf.int32)

    assert composite.explain(none, tf.ones([2])).gradient == "none: no output is floating"


def test_explain_leaves_to_a_called_op_the_gradient_of_its_author() -> None:
    @Composite("SavingCalled", inputs=["x: float", "w: float"], outputs=["y: float"])
    def called(x, w):
        return tf.math.softplus(tf.matmul(x, w))

    @Composite("SavingCalling", inputs=["x: float", "w: float"], outputs=["y: float"])
    def calling(x, w):
        return called(x, w) + 1.0

    arguments = tensors([5, 256], [256, 6])
    assert (
        composite.explain(calling, *arguments).gradient
        == "keeps a gradient's factor (5, 6); computes nothing again"
    )

    @called.gradient
    def _of_author(op, upstream):
        return [tf.zeros_like(x) for x in op.inputs]

    assert (
        composite.explain(calling, *arguments).gradient == "keeps nothing; computes nothing again"
    )
