"""Which gradient an op has: its author's, or the derived one of the body that the call ran."""

import itertools
import linecache

import numpy as np
import pytest
import tensorflow as tf

from composite import Composite
from composite.ops.registry import OPS

pytestmark = [pytest.mark.many_cases, pytest.mark.usefixtures("expansions_only")]

X = tf.constant(3.0)
_cells = itertools.count()


def define(name, body):
    """An op as a cell of a notebook defines it, and defines it again."""
    text = (
        f'@Composite("{name}", inputs=["x: float"], outputs=["y: float"])\n'
        f"def op(x):\n    return {body}\n"
    )
    file = f"<ipython-input-{next(_cells)}-gradient>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {"Composite": Composite, "tf": tf, "__name__": "test_gradient_versions_cell"}
    exec(compile(text, file, "exec"), scope)
    return scope["op"]


def slope(op, order=1):
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = op(X) if order == 1 else slope(op, order - 1)
    return tape.gradient(y, X)


def forward(op):
    with tf.autodiff.ForwardAccumulator(X, tf.constant(1.0)) as accumulator:
        y = op(X)
    return accumulator.jvp(y)


def recorded(op):
    tape = tf.GradientTape(persistent=True)
    with tape:
        tape.watch(X)
        y = op(X)
    return tape, y


def test_a_tape_keeps_to_the_body_that_ran():
    old = define("VersionsTape", "x * x")
    tape, y = recorded(old)
    assert float(tape.gradient(y, X)) == 6
    new = define("VersionsTape", "x * x * 10.0")
    later, z = recorded(new)
    newest = define("VersionsTape", "x * 100.0")
    assert float(tape.gradient(y, X)) == 6
    assert float(later.gradient(z, X)) == 60
    assert [float(slope(op)) for op in (old, new, newest)] == [6, 60, 100]


def test_accumulators_see_the_body_that_ran():
    old = define("VersionsForward", "x * x")
    assert float(forward(old)) == 6
    new = define("VersionsForward", "x * x * 10.0")
    assert [float(forward(op)) for op in (new, old, new)] == [60, 6, 60]


def test_a_function_keeps_to_the_body_it_was_traced_with():
    old = define("VersionsFunction", "x * x")
    traced = tf.function(lambda: (slope(old), slope(old, order=2), forward(old)), autograph=False)
    assert [float(y) for y in traced()] == [6, 2, 6]
    define("VersionsFunction", "x * 10.0")
    assert [float(y) for y in traced()] == [6, 2, 6]


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: tf.function(f, autograph=False)])
def test_a_gradient_of_the_author_is_differentiated_itself(wrap):
    op = define(f"VersionsOwn{'Traced' if wrap(len) is not len else ''}", "x * x")
    assert float(wrap(lambda: forward(op))()) == 6

    @op.gradient
    def own(op, upstream):
        return upstream * op.inputs[0] ** 3 + 0.0 * op.outputs[0]

    results = wrap(lambda: (slope(op), forward(op), slope(op, order=2), slope(op, order=3)))()
    assert [float(y) for y in results] == [27, 27, 27, 18]


def test_a_gradient_of_the_author_stays_with_its_version():
    old = define("VersionsStay", "x * x")
    old.gradient(lambda op, upstream: upstream * 7.0)
    tape, y = recorded(old)
    new = define("VersionsStay", "x * x * 10.0")
    assert [float(slope(op)) for op in (old, new)] == [7, 60]
    assert float(tape.gradient(y, X)) == 7


def test_both_kinds_of_gradient_in_one_function():
    derived, own = define("VersionsDerived", "x * x"), define("VersionsBeside", "x + 1.0")
    own.gradient(lambda op, upstream: upstream * derived(op.inputs[0]))

    def both(op, given):
        return lambda x: op(given(x))

    # d/dx (x + 1)^2 with 1 replaced by x^2, and its derivative: 2 (x + 1) x^2.
    assert float(slope(both(derived, own))) == 2 * 4 * 9
    # d/dx x^2 + 1 with 1 replaced by (x^2)^2.
    assert float(slope(both(own, derived))) == 81 * 6
    # x^4 2 x once more: 10 x^4.
    assert float(slope(both(own, derived), order=2)) == 10 * 81


def test_a_graph_of_tensorflow_1_may_map_another():
    op = define("VersionsMapped", "x * x")
    tf.RegisterGradient("VersionsMappedGradient")(lambda op, upstream: upstream * 5.0)
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        x = tf.constant(3.0)
        with graph.gradient_override_map({"VersionsMapped": "VersionsMappedGradient"}):
            mapped = op(x)
        slopes = [tf.gradients(y, x)[0] for y in (mapped, op(x))]
        np.testing.assert_array_equal(session.run(slopes), [5, 6])


@Composite(
    "VersionsInner",
    inputs=["xs: N * T"],
    derived_attrs=["N: int", "T: {float, double}"],
    outputs=["ys: N * T"],
)
def inner(xs):
    """Squares, with a gradient of the author's below."""
    return [x * x for x in xs]


@inner.gradient
def hundredfold(op, *upstream):
    return [u * x * 100.0 for u, x in zip(upstream, op.inputs, strict=True)]


@Composite("VersionsOuter", inputs=["x: T"], derived_attrs=["T: {float, double}"], outputs=["y: T"])
def outer(x):
    """Calls an op that has a gradient of its author, in a branch as well."""
    y, z = inner([x, tf.sin(x)])
    if tf.reduce_sum(x) > 0.0:
        y = inner([y])[0]
    return y * z


@Composite(
    "VersionsOutermost", inputs=["x: T"], derived_attrs=["T: {float, double}"], outputs=["y: T"]
)
def outermost(x):
    """Calls it through another op."""
    return outer(x) + x


@pytest.mark.parametrize("x", [X, -X])
@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: tf.function(f, autograph=False)])
def test_the_gradient_of_a_called_op_is_its_authors(wrap, x):
    def both(op):
        with tf.GradientTape() as twice:
            twice.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = op(x)
            first = tape.gradient(y, x)
        return first, twice.gradient(first, x)

    for op in (outer, outermost):
        found = wrap(lambda op=op: both(op))()
        np.testing.assert_allclose(found, both(op.python_function), rtol=1e-4)


def test_a_gradient_given_later_is_used_by_callers():
    called = define("VersionsCalled", "x * x")

    @Composite("VersionsCaller", inputs=["x: float"], outputs=["y: float"])
    def caller(x):
        return called(x) * 2.0

    assert float(slope(caller)) == 12
    called.gradient(lambda op, upstream: upstream * 5.0)
    assert float(slope(caller)) == 10


def test_a_gradient_that_tensorflow_knew_before_stays():
    tf.RegisterGradient("VersionsBefore")(lambda op, upstream: upstream * 9.0)
    first = define("VersionsBefore", "x * x")
    assert [float(slope(first)), float(forward(first))] == [9, 9]

    @Composite("VersionsCallsBefore", inputs=["x: float"], outputs=["y: float"])
    def caller(x):
        return first(x) * 2.0

    assert float(slope(caller)) == 18
    assert OPS.overrides_gradient(first)  # a library says that it lacks it
    assert not OPS.overrides_gradient(caller)
    with pytest.raises(KeyError, match="two gradient with name 'VersionsCallsBefore'"):
        tf.RegisterGradient("VersionsCallsBefore")(lambda op, upstream: upstream)
