"""What errors say of the author's source: of a gradient that is missing, of calls as they run."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from composite import Composite
from composite.autodiff import places

X = tf.constant(0.5)


def line(text):
    """The place of the one line of this file that has the text, without its column."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (number,) = (i for i, one in enumerate(lines, 1) if one.endswith(text))
    return rf"tests/composite/autodiff/test_places\.py:{number}:\d+"


def slope(op, *inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = op(*inputs)
    return tape.gradient(y, inputs[0])


@Composite("PlacesStraight", inputs=["x: float"], outputs=["y: float"])
def straight(x):
    y = x * 2.0
    return tf.raw_ops.IgammaGradA(a=y, x=y) + 1.0  # straight


@Composite("PlacesBranch", inputs=["x: float"], outputs=["y: float"])
def branch(x):
    y = x * 2.0
    if x > 0.0:
        y = tf.raw_ops.IgammaGradA(a=x, x=y) + 1.0  # branch
    return y


@Composite("PlacesLoop", inputs=["x: float"], outputs=["y: float"])
def loop(x):
    y = x
    while y < 3.0:
        y = tf.raw_ops.IgammaGradA(a=y, x=y) + 4.0  # loop
    return y


@Composite("PlacesCaller", inputs=["x: float"], outputs=["y: float"])
def caller(x):
    return straight(x) * 2.0


@pytest.mark.parametrize(
    ("op", "comment"),
    [(straight, "# straight"), (branch, "# branch"), (loop, "# loop"), (caller, "# straight")],
)
@pytest.mark.parametrize("traced", [False, True])
def test_an_op_without_a_gradient_is_named_with_its_line(op, comment, traced):
    call = tf.function(slope, autograph=False) if traced else slope
    with pytest.raises(
        LookupError,
        match=rf"{op.op_name} has no gradient, since IgammaGradA at {line(comment)} has none in "
        rf"TensorFlow: give {op.op_name} one with @op.gradient, or put tf.stop_gradient around",
    ):
        call(op, X)
    assert float(slope(lambda x: tf.stop_gradient(op(x)) * x, X)) == float(op(X))


@Composite("PlacesSecond", inputs=["x: float"], outputs=["y: float"])
def second(x):
    return tf.math.igamma(x, x)  # second


@pytest.mark.parametrize("traced", [False, True])
def test_a_gradient_without_a_gradient_is_named_with_its_line(traced):
    twice = lambda: slope(lambda x: slope(second, x), X)  # noqa: E731
    call = tf.function(twice, autograph=False) if traced else twice
    with pytest.raises(
        LookupError,
        match=rf"the derived gradient of PlacesSecond has no gradient, since IgammaGradA at "
        rf"{line('# second')} has none in TensorFlow: give PlacesSecond one with @op.gradient",
    ):
        call()
    np.testing.assert_allclose(slope(second, X), slope(second.python_function, X), rtol=1e-5)


def test_what_does_not_reach_the_op_has_its_gradient():
    @Composite("PlacesBeside", inputs=["x: float"], outputs=["y: float", "z: float"])
    def beside(x):
        return x * x, tf.stop_gradient(tf.raw_ops.IgammaGradA(a=x, x=x)) * x

    assert float(slope(lambda x: beside(x)[0], X)) == 1.0


@Composite("PlacesChecked", inputs=["x: float"], outputs=["y: float"])
def checked(x):
    return tf.sqrt(tf.debugging.check_numerics(x, "an infinity"))  # checked


@Composite("PlacesCheckedBranch", inputs=["x: float"], outputs=["y: float"])
def checked_branch(x):
    if x < 1.0:
        x = tf.sqrt(tf.debugging.check_numerics(x, "an infinity"))  # in a branch
    return x


@pytest.mark.parametrize(
    ("op", "comment"), [(checked, "# checked"), (checked_branch, "# in a branch")]
)
def test_a_gradient_that_fails_as_it_runs_names_the_line(op, comment):
    # The root of 0 is a number, its slope is none. TensorFlow's error has the node of a branch only
    # where the If was lowered: in a graph.
    call = slope if op is checked else tf.function(slope)
    with pytest.raises(tf.errors.InvalidArgumentError, match=line(comment)):
        call(op, tf.constant(0.0))


def test_the_nodes_of_a_gradient_have_the_place_of_what_they_are_of():
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [], name="x")
        y = tf.tanh(x * 2.0, name="gradients/odd_grad/name")
        tf.gradients(y, x)
    definition = graph.as_graph_def()
    for node in definition.node:
        if node.name == "gradients/odd_grad/name":
            node.experimental_debug_info.original_node_names.append(f"{node.name} (here.py:1:2)")
    places.spread(definition)
    told = {n.op: list(n.experimental_debug_info.original_node_names) for n in definition.node}
    assert [text.rpartition(" ")[2] for text in told["TanhGrad"]] == ["(here.py:1:2)"]
    assert told["Placeholder"] == []


def test_an_error_that_says_it_otherwise_is_passed_on():
    told = places.no_gradient("SomeOp", tf.Graph().as_graph_def(), LookupError("no entry for: X"))
    assert "SomeOp has no gradient, since an op of its body has none: no entry for: X" in str(told)


@Composite("PlacesReshape", inputs=["x: float", "n: int32"], outputs=["y: float"])
def reshaped(x, n):
    y = x
    if tf.reduce_sum(x) > 0.0:
        y = tf.reshape(x, [n])  # reshaped
    return y


def test_a_call_that_fails_inside_a_branch_names_the_line():
    with pytest.raises(tf.errors.InvalidArgumentError, match=line("# reshaped")):
        reshaped(tf.ones([3]), 2)
    assert reshaped(tf.ones([3]), 3).shape == [3]
