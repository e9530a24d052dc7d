"""Training through loops: what their trips leave behind is kept, and nothing runs again."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite, options
from composite.autodiff import backward
from composite.compiler import tvm

pytestmark = pytest.mark.many_cases

RANDOM = np.random.default_rng(8)
FLOATS = ["T: {float, double}"]


@Composite(
    "KeptScan",
    inputs=["x: T", "h: T", "w: T", "b: T"],
    derived_attrs=FLOATS,
    outputs=["y: T", "last: T"],
)
def scan(x, h, w, b):
    """A recurrent layer: what goes into its product, and its tanh, are needed again."""
    steps = tf.shape(x)[0]
    ys = tf.TensorArray(x.dtype, size=steps, element_shape=h.shape)
    for t in range(steps):
        h = tf.tanh(x[t] + h @ w + b)
        ys = ys.write(t, h)
    return ys.stack(), h


@Composite("KeptAround", inputs=["x: T", "h: T", "w: T"], derived_attrs=FLOATS, outputs=["y: T"])
def around(x, h, w):
    """Arithmetic before the loop and behind it, of which the backward needs more."""
    gates = tf.exp(x) * 0.1
    ys = tf.TensorArray(x.dtype, size=tf.shape(x)[0], element_shape=h.shape)
    for t in range(tf.shape(x)[0]):
        h = tf.sin((gates[t] * h) @ w)
        ys = ys.write(t, h)
    return tf.exp(tf.square(ys.stack()))


@Composite("KeptHighest", inputs=["x: T", "h: T"], derived_attrs=FLOATS, outputs=["y: T"])
def highest(x, h):
    """The gradient of a maximum looks for it among what the trip had."""
    for t in range(tf.shape(x)[0]):
        h = tf.tanh(h * x[t]) + tf.reduce_max(tf.exp(h), axis=-1, keepdims=True)
    return h


@Composite("KeptUntil", inputs=["x: T", "w: T"], derived_attrs=FLOATS, outputs=["y: T"])
def until(x, w):
    """As many trips as the values allow."""
    while tf.reduce_sum(x * x) < 100.0:
        x = x * w + tf.tanh(x)
    return x


@Composite("KeptNested", inputs=["x: T", "w: T"], derived_attrs=FLOATS, outputs=["y: T"])
def nested(x, w):
    """Lists of lists: they stay what they are."""
    for _ in range(tf.shape(x)[0]):
        for _ in range(tf.shape(x)[1]):
            x = tf.tanh(x @ w)
    return x


@Composite("KeptChosen", inputs=["x: T", "w: T"], derived_attrs=FLOATS, outputs=["y: T"])
def chosen(x, w):
    """A branch in each trip."""
    for t in range(tf.shape(x)[0]):
        grown = 1.0 + tf.cast(t, x.dtype)
        x = tf.sin(x @ w) * grown if tf.reduce_sum(x) > 0.0 else x * w - 0.1
    return x


@Composite("KeptBehind", inputs=["x: T", "w: T"], derived_attrs=FLOATS, outputs=["y: T"])
def behind(x, w):
    """A loop that is kept behind one whose lists of lists stay what they are."""
    x = nested(x, w)
    for _ in range(tf.shape(w)[0]):
        x = tf.sin(x) * w
    return x


@Composite("KeptPrevious", inputs=["x: T", "w: T"], derived_attrs=FLOATS, outputs=["y: T"])
def previous(x, w):
    """What a trip begins with goes on as another variable."""
    before, far = x, w
    for _ in range(tf.shape(w)[0]):
        before, far, x = x, before, tf.sin(x) * w
    return x * before + far


def normal(*shape: int) -> Any:
    return tf.constant(RANDOM.standard_normal(shape) * 0.5, tf.float32)


CASES = [
    (scan, [normal(5, 3, 4), normal(3, 4), normal(4, 4), normal(4)]),
    (around, [normal(4, 3, 4), normal(3, 4), normal(4, 4)]),
    (highest, [normal(4, 3, 4), normal(3, 4)]),
    (until, [normal(3, 4), 1.0 + tf.abs(normal(3, 4))]),
    (nested, [normal(3, 3), normal(3, 3)]),
    (chosen, [normal(3, 3), normal(3, 3)]),
    (behind, [normal(3, 3), normal(3, 3)]),
    (previous, [normal(3, 3), normal(3, 3)]),
]
EACH = pytest.mark.parametrize(("op", "inputs"), CASES, ids=lambda one: getattr(one, "op_name", ""))


def step(op: Any, *inputs: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = op(*inputs)
        loss = tf.add_n([tf.reduce_sum(one * one) for one in tf.nest.flatten(y)])
    return y, tape.gradient(loss, inputs, unconnected_gradients=tf.UnconnectedGradients.ZERO)


def assert_like_python(op: Any, inputs: list[Any], found: Any) -> None:
    expected = step(op.python_function, *inputs)
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def functions(traced: Any, stem: str) -> dict[str, Any]:
    """The functions of a traced step whose names have `stem` in them, with all that they name."""
    library = traced.graph.as_graph_def().library.function
    return {f.signature.name: f for f in library if stem in f.signature.name}


def count(found: dict[str, Any], op: str) -> int:
    return sum(node.op == op for f in found.values() for node in f.node_def)


@EACH
@pytest.mark.parametrize("backend", ["auto", "tf"])
def test_a_step_is_right(op: Any, inputs: list[Any], backend: str) -> None:
    with options(backend=backend):
        traced = tf.function(step)
        for _ in range(2):
            assert_like_python(op, inputs, traced(op, *inputs))
            composite.wait()


@EACH
def test_a_step_of_unknown_sizes_is_right(op: Any, inputs: list[Any]) -> None:
    @tf.function(input_signature=[tf.TensorSpec([None] * x.shape.rank) for x in inputs])
    def traced(*inputs: Any) -> Any:
        return step(op, *inputs)

    for _ in range(2):
        assert_like_python(op, inputs, traced(*inputs))
        composite.wait()


@pytest.mark.parametrize("op", [around, chosen, behind, previous])
@pytest.mark.usefixtures("expansions_only")
def test_a_second_derivative_is_right(op: Any) -> None:
    """Nothing is lost on the way through what the forward keeps."""

    def twice(op: Any, *inputs: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            first = tf.add_n([tf.reduce_sum(tf.sin(g)) for g in step(op, *inputs)[1]])
        return tape.gradient(first, inputs, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    doubles = [tf.cast(x, tf.float64) for x in dict(CASES)[op]]
    found = tf.function(twice)(op, *doubles)
    expected = tf.function(twice)(op.python_function, *doubles)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("unknown", [False, True])
def test_no_trip(unknown: bool) -> None:
    inputs = [tf.zeros([0, 3, 4]), *CASES[0][1][1:]]
    shapes = [[None] * x.shape.rank if unknown else x.shape for x in inputs]

    @tf.function(input_signature=[tf.TensorSpec(shape) for shape in shapes])
    def traced(*inputs: Any) -> Any:
        return step(scan, *inputs)

    for _ in range(2):
        assert_like_python(scan, inputs, traced(*inputs))
        composite.wait()


def test_the_loop_does_not_run_again() -> None:
    traced = tf.function(lambda *i: step(scan, *i)).get_concrete_function(*CASES[0][1])
    assert count(functions(traced, "forward_KeptScan"), "MatMul") == 1
    backward = functions(traced, "backward_KeptScan")
    assert count(backward, "MatMul") == 2  # for h and for w, in each trip
    assert count(backward, "Tanh") == 0
    assert count(backward, "StatelessWhile") == 2  # what counts the trips, and the gradient
    explanation = composite.explain(scan, *CASES[0][1])
    assert explanation.gradient == (
        "keeps Tanh of each trip, carried value of each trip; computes nothing again"
    )


def test_what_stands_around_a_loop_is_kept_with_it() -> None:
    traced = tf.function(lambda *i: step(around, *i)).get_concrete_function(*CASES[1][1])
    backward = functions(traced, "backward_KeptAround")
    assert count(backward, "Exp") == 0
    assert count(backward, "Sin") == 0


def test_a_loop_within_a_loop_runs_again() -> None:
    explanation = composite.explain(nested, *CASES[4][1])
    assert explanation.gradient == "keeps nothing; computes StatelessWhile again"


@pytest.mark.parametrize("unknown", [False, True])
def test_a_step_is_two_kernels(unknown: bool) -> None:
    op, inputs = CASES[0]
    shapes = tuple((None,) * x.shape.rank if unknown else tuple(x.shape) for x in inputs)
    way = backward.Way((True,) * 2, (True,) * 4, keeps=True, lasts=True)
    request = op.request(*inputs)
    call = replace(request, in_shapes=(), constants=None)
    found = backward.differentiate(call.serialize(), shapes, way)
    kept = [(5, 3, 4)] * len(found.saved)
    sizes = [tuple(x.shape) for x in (*inputs, *op(*inputs), *op(*inputs))] + kept
    for part in (found.saving_forward, found.function):
        assert part is not None
        written = tvm.write(part.function, [sizes[i] for i in part.takes])
        assert "recurrence" in written.generate("kernel").strategy


@pytest.mark.parametrize("batch", [3, 5, 6])
def test_xla_compiles_a_step(batch: int) -> None:
    inputs = [normal(5, batch, 4), normal(batch, 4), normal(4, 4), normal(4)]
    traced = tf.function(lambda *i: step(scan, *i), jit_compile=True)
    assert_like_python(scan, inputs, traced(*inputs))


def test_second_order() -> None:
    op, inputs = CASES[0]
    inputs = [tf.cast(x, tf.float64) for x in inputs]

    def second(op: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(inputs[2])
            slope = step(op, *inputs)[1][2]
            loss = tf.reduce_sum(slope * slope)
        return outer.gradient(loss, inputs[2])

    found = tf.function(lambda: second(op))()
    np.testing.assert_allclose(found, second(op.python_function), rtol=1e-6)
