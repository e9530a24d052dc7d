"""Composites that XLA compiles, as kernels and as expansions, against their Python functions."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.binding import native
from composite.binding.records import record
from tests.composite import xla_ops as ops

pytestmark = pytest.mark.many_cases

RANDOM = np.random.default_rng(3)


@pytest.fixture(autouse=True, params=["expansions", "kernels"])
def form(request: Any) -> Iterator[str]:
    """What XLA is given: expansions alone, or a kernel wherever there can be one."""
    with composite.options(xla="never" if request.param == "expansions" else None):
        native.call("composite_test_force_xla_kernels", record(on=request.param == "kernels"))
        yield request.param
        native.call("composite_test_force_xla_kernels", record(on=False))


def normal(*shape: int, dtype: Any = tf.float32) -> Any:
    return tf.cast(RANDOM.standard_normal(shape), dtype)


def jit(function: Callable[..., Any], **kwargs: Any) -> Any:
    return tf.function(function, jit_compile=True, autograph=False, **kwargs)


def assert_close(found: Any, expected: Any, *, rounding: float = 1e-5) -> None:
    tf.nest.assert_same_structure(found, expected)
    for a, value in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        b = tf.convert_to_tensor(value)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        wide, expected_wide = tf.cast(a, tf.float64), tf.cast(b, tf.float64)
        np.testing.assert_allclose(wide, expected_wide, rtol=rounding, atol=rounding)


X, Y = normal(4, 3), normal(4, 3)
CALLS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "attributes": (ops.activated, (X, 0.5), {"act": "tanh", "times": 3}),
    "defaults": (ops.activated, (X, 0.5), {}),
    "lists": (ops.lists, ([X, Y], 1), {"weights": [0.5, 2.0]}),
    "weak ints": (ops.weak, (X,), {}),
    "shape": (ops.reshaped, (X, [2, 6]), {}),
    "shape, int64": (ops.reshaped, (tf.cast(X, tf.int64), [-1]), {}),
    "constant through calls": (ops.tiled, (X, 3, Y), {}),
    "constant in branches and a loop": (ops.shaped_inside, (X, 2), {}),
    "if": (ops.decided, (X,), {}),
    "if, other branch": (ops.decided, (-tf.abs(X),), {}),
    "while": (ops.halved, (X,), {}),
    "while, no trip": (ops.halved, (X / 100,), {}),
    "assert": (ops.asserted, (tf.abs(X) + 1,), {}),
    "seed": (ops.drawn, (X, [1, 2]), {}),
    "composite in a composite": (ops.cubed, (X,), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_same_as_the_python_function(name: str) -> None:
    op, args, attrs = CALLS[name]
    before = composite.stats()
    found = jit(lambda: op(*args, **attrs))()
    assert (composite.stats() - before)["xla_nodes"] == 1
    schema = {spec.name: spec.default for spec in op.schema.attrs if spec.has_default} | attrs
    args = tf.nest.map_structure(tf.convert_to_tensor, args)
    expected = lambda: op.python_function(*args, **schema)  # noqa: E731
    if name == "seed":
        expected = jit(expected)  # XLA draws other random numbers than TensorFlow does
    assert_close(found, expected())


@pytest.mark.parametrize("name", CALLS)
def test_inputs_are_arguments_of_unknown_shape(name: str) -> None:
    """Shapes are known when XLA compiles, values only where a constant is asked for."""
    op, args, attrs = CALLS[name]
    args = tf.nest.map_structure(tf.convert_to_tensor, args)
    unknown = tf.nest.map_structure(lambda x: tf.TensorSpec(None, x.dtype), args)
    found = jit(lambda *args: op(*args, **attrs), input_signature=unknown)(*args)
    assert_close(found, jit(lambda: op(*args, **attrs))())


@pytest.mark.parametrize("dtype", [tf.float64, tf.float16, tf.bfloat16])
@pytest.mark.parametrize("op", [ops.weak, ops.decided, ops.cubed], ids=lambda op: op.op_name)
def test_dtypes(op: Any, dtype: Any) -> None:
    x = normal(5, 2, dtype=dtype)
    rounding = {tf.float64: 1e-12, tf.float16: 4e-3, tf.bfloat16: 4e-2}[dtype]
    assert_close(jit(op)(x), op.python_function(x), rounding=rounding)


def test_a_shape_is_computed_from_a_shape() -> None:
    halves = jit(lambda x: ops.reshaped(x, tf.stack([tf.shape(x)[0] // 2, -1])))
    assert halves(X).shape == (2, 6)
    assert halves(normal(6, 5)).shape == (3, 10)


def test_one_compilation_serves_other_values() -> None:
    """An input is a constant only if something asks for its value."""
    runs = jit(ops.tiled)
    runs(X, tf.constant(2), Y)
    before = composite.stats()
    runs(Y, tf.constant(2), X)
    assert (composite.stats() - before)["xla_nodes"] == 0
    runs(Y, tf.constant(3), X)
    assert (composite.stats() - before)["xla_nodes"] == 1


def gradient(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    return run


DIFFERENTIABLE: dict[str, Callable[[Any], Any]] = {
    "attributes": lambda x: ops.activated(x, x, act="tanh", times=2),
    "if": ops.decided,
    "weak ints": ops.weak,
    "shape": lambda x: ops.reshaped(x, [2, -1]) * 2,
    "lists": lambda x: ops.lists([x, x * x], 0, weights=[1.0, 3.0])[1],
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_inside_and_around(name: str) -> None:
    call = DIFFERENTIABLE[name]
    with composite.options(backend="tf"):
        expected = gradient(call)(X)
    assert_close(jit(gradient(call))(X), expected)
    assert_close(gradient(jit(call))(X), expected)
    assert_close(jit(gradient(jit(call)))(X), expected)


def test_second_order() -> None:
    expected = 12 * X * X + 6 * X * 0
    third = lambda x: ops.cubed(x) * x  # noqa: E731 - x to the fourth
    assert_close(jit(gradient(gradient(third)))(X), expected, rounding=1e-4)
    assert_close(gradient(gradient(jit(third)))(X), expected, rounding=1e-4)


def test_the_gradient_of_a_loop_wants_a_bound_on_its_trips() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="maximum_iteration"):
        jit(gradient(lambda x: ops.halved(x)[0]))(X)


@pytest.mark.parametrize("wrap", [lambda f: f, gradient], ids=["forward", "gradient"])
def test_xla_is_given_what_one_would_write_by_hand(wrap: Any) -> None:
    """Neither a call more nor an op: so nothing is slower than by hand."""

    def stack(layer: Callable[..., Any]) -> collections.Counter[str]:
        run = wrap(lambda x: layer(layer(layer(x, 2.0), 3.0), 4.0))
        text = jit(run).experimental_get_compiler_ir(X)(stage="hlo")
        return collections.Counter(re.findall(r"= \S+ ([\w-]+)\(", text))

    ours = stack(lambda x, by: ops.activated(x, by, act="tanh"))
    assert ours == stack(lambda x, by: ops.activated.python_function(x, by, "tanh", 1))
    assert ours["tanh"] == 3 and not ours["call"]


def test_nested_functions() -> None:
    inner = jit(lambda x: ops.activated(x, x, act="tanh"))
    for outer in (tf.function, jit):
        found = outer(lambda x: inner(x) + ops.weak(x))(X)
        assert_close(found, tf.tanh(X * X) + ops.weak.python_function(X))


def test_in_a_while_loop_and_a_cond() -> None:
    def run(x: Any) -> Any:
        step = lambda i, x: (i + 1, ops.decided(ops.reshaped(x, [4, 3])))  # noqa: E731
        x = tf.while_loop(lambda i, _: i < 3, step, [0, x])[1]
        return tf.cond(x[0, 0] > 0, lambda: ops.weak(x), lambda: ops.cubed(x))

    expected = X
    for _ in range(3):
        expected = ops.decided.python_function(expected)
    branch = ops.weak if expected[0, 0] > 0 else ops.cubed
    assert_close(jit(run)(X), branch.python_function(expected))


def test_an_assert_is_absent() -> None:
    assert_close(jit(ops.asserted)(-X), tf.sqrt(tf.abs(X)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="x must be positive"):
        ops.asserted(-X)


def test_variables_and_keras_under_jit() -> None:
    kernel = tf.Variable(normal(3, 3))

    @jit
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(ops.activated(x @ kernel, 0.5, act="relu"))
        kernel.assign_sub(0.1 * tape.gradient(loss, kernel))
        return loss

    before = kernel.numpy()
    losses = [float(step(X)) for _ in range(3)]
    assert losses[2] < losses[1] < losses[0]
    expected = float(tf.reduce_sum(tf.nn.relu(X @ before * 0.5)))
    assert losses[0] == pytest.approx(expected, rel=1e-5)


def test_a_function_as_an_attribute() -> None:
    double = tf.function(lambda x: x + x).get_concrete_function(tf.TensorSpec([None, 3]))
    assert_close(jit(lambda x: ops.calling(x, f=double))(X), ops.calling(X, f=double))


def test_a_variable_as_an_input() -> None:
    variable = tf.Variable(X)
    found = jit(lambda y: ops.adding(variable.handle, y))(Y)
    assert_close(found, X * Y)
    assert_close(variable.read_value(), X + Y)


HAVE_KERNELS = ["attributes", "defaults", "weak ints", "composite in a composite"]


@pytest.mark.parametrize("name", HAVE_KERNELS)
def test_which_calls_the_two_forms_are_of(name: str, form: str) -> None:
    op, args, attrs = CALLS[name]
    before = composite.stats()
    jit(lambda: op(*args, **attrs))()
    counted = composite.stats() - before
    calls = 1 if form == "kernels" else 0
    assert (counted["xla_kernel_nodes"], counted["xla_kernel_launches"]) == (calls, calls)


def test_errors_name_the_authors_line() -> None:
    unknown = jit(ops.square, input_signature=[tf.TensorSpec(None)])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"xla_ops.py:\d+:9: ValueError: x has shape \(3,\)"
    ):
        unknown(tf.zeros([3]))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"xla_ops.py:\d+:12: Dimensions must be equal"
    ):
        unknown(tf.zeros([2, 3]))
    assert_close(unknown(tf.eye(2)), tf.eye(2))


def test_an_op_without_a_kernel_for_xla() -> None:
    with pytest.raises(
        tf.errors.UnimplementedError,
        match=r"xla_ops.py:\d+:\d+: AsString is not supported by XLA, and XlaSpelled .* comes to",
    ):
        jit(lambda x: ops.spelled(x, spell=True))(X)
    assert_close(jit(lambda x: ops.spelled(x, spell=False))(X), X + 1)


@pytest.mark.parametrize(("times", "loops"), [(4, 0), (40, 1)])
def test_many_known_trips_are_a_loop(times: int, loops: int) -> None:
    repeated = jit(lambda x: ops.repeating(x, times=times))
    hlo = repeated.experimental_get_compiler_ir(X)(stage="hlo")
    assert len(re.findall(r"= .* while\(", hlo)) == loops
    assert_close(repeated(X), ops.repeating.python_function(X, times))


def test_trips_that_differ_are_unrolled() -> None:
    x = normal(20, 3)
    assert_close(jit(ops.peeling)(x), ops.peeling.python_function(x), rounding=1e-4)


@pytest.mark.parametrize("size", [0, 2])
def test_an_array_that_may_grow(size: int) -> None:
    """XLA would write into the last place of the array, or nowhere."""
    with pytest.raises(
        tf.errors.UnimplementedError,
        match=r"xla_ops.py:\d+:\d+: dynamic_size is not supported by XLA, whose arrays never grow",
    ):
        jit(lambda x: ops.growing(x, size=size, grows=True))(X)


def test_an_array_of_its_size() -> None:
    wanted = ops.growing.python_function(X, 0, True)
    assert_close(jit(lambda x: ops.growing(x, size=6, grows=False))(X), wanted)
    assert_close(ops.growing(X, size=0, grows=True), wanted)


def test_a_value_that_xla_does_not_know() -> None:
    x = X[:, None]
    assert jit(ops.squeezed)(x, tf.constant(1)).shape == (4, 3)

    def loop(x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return 2 - i, tf.ensure_shape(ops.squeezed(x, i), [4, 3])[:, None]

        return tf.while_loop(lambda *_: True, step, [1, x], maximum_iterations=2)[1]

    with pytest.raises(
        tf.errors.UnimplementedError,
        match=r"xla_ops.py:\d+:\d+: .*not yet: the value of input 'axis' is not known when XLA",
    ):
        jit(loop)(x)
