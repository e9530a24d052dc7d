"""An expansion is inlined under its call's name, where nodes of such names may be already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import op_def_library

from tests.runtime import kernel_support as k
from tests.runtime.programs import Program

v1 = tf.compat.v1
Unique = Callable[[str], str]
X = np.array([1.0, 2.0], np.float32)


class Op:
    """Two outputs, the exponential and its double, of nodes that are called as given."""

    def __init__(self, name: str, exp: str = "Exp", add: str = "AddV2") -> None:
        self.name = name
        p = Program(name, ["x: float"], [], ["y: float", "z: float"])
        y = p.call("Exp", x="x", node_name=exp)
        p.returns(y=y, z=p.call("AddV2", x=y, y=y, node_name=add))
        self.digest = p.register()

    def __call__(self, x: Any, name: str | None = None) -> Any:
        return stamped(op_def_library.apply_op(self.name, x=x, name=name), self.digest)


def stamped(result: Any, digest: str) -> Any:
    """The outputs of a node, or the node, whose expansion takes its place."""
    op = result if isinstance(result, tf.Operation) else result[0].op
    op._set_attr("_composite_program", k.attr(digest))
    op._set_attr("_composite_backend", k.attr("tf"))
    return result


def beside(op: Op, x: Any, name: str, taken: str) -> Any:
    """A call of that name, and another op's node whose name is the call's and `taken`."""
    scoped = tf.negative(x, name=f"{name}/{taken}")
    y, z = op(x, name)
    return y + z + scoped


WANT = 3 * np.exp(X) - X


def function(f: Any) -> Any:
    return tf.function(f)(tf.constant(X))


def xla(f: Any) -> Any:
    return tf.function(f, jit_compile=True)(tf.constant(X))


def loop(f: Any) -> Any:
    step = lambda i, x, y: (i + 1, x, f(x))  # noqa: E731
    run = tf.function(lambda x: tf.while_loop(lambda i, x, y: i < 2, step, [0, x, x])[2])
    return run(tf.constant(X))


def branch(f: Any) -> Any:
    run = tf.function(lambda p, x: tf.cond(p, lambda: f(x), lambda: x))
    return run(tf.constant(True), tf.constant(X))


def nested(f: Any) -> Any:
    inner = tf.function(f)
    return tf.function(lambda x: inner(x) + 0.0)(tf.constant(X))


def session(f: Any) -> Any:
    with tf.Graph().as_default(), v1.Session() as s:
        return s.run(f(tf.constant(X)))


def dataset(f: Any) -> Any:
    return next(iter(tf.data.Dataset.from_tensors(X).map(f)))


HOW = pytest.mark.parametrize("how", [function, xla, loop, branch, nested, session, dataset])


@HOW
def test_a_node_is_named_as_if_it_were_inlined(how: Any, unique: Unique) -> None:
    op = Op(unique("Inlined"))
    found = how(lambda x: beside(op, x, "layer", "Exp"))
    np.testing.assert_allclose(found, WANT, rtol=1e-6)


@pytest.mark.parametrize("name", ["a.b", "a-b", "A/b/c", "x>y", ".a", "layer_call_0"])
def test_names_of_any_characters(name: str, unique: Unique) -> None:
    op = Op(unique("Odd"))
    found = function(lambda x: beside(op, x, name, "Exp"))
    np.testing.assert_allclose(found, WANT, rtol=1e-6)


@HOW
def test_two_expansions(how: Any, unique: Unique) -> None:
    """One has a node in a scope that is the name of the other, below its own."""
    outer, inner = Op(unique("Outer"), exp="in/AddV2"), Op(unique("Inner"))

    def both(x: Any) -> Any:
        return outer(x, "layer")[0] + inner(x, "layer/in")[0] + outer(x, "layer/in/x")[1]

    np.testing.assert_allclose(how(both), 4 * np.exp(X), rtol=1e-6)


def test_the_other_name_is_taken_too(unique: Unique) -> None:
    op = Op(unique("Taken"))

    def crowded(x: Any) -> Any:
        y = beside(op, x, "layer", "Exp") + tf.identity(x, name="layer_call_0")
        return y - tf.identity(x, name="layer_call_1/AddV2")

    np.testing.assert_allclose(function(crowded), WANT, rtol=1e-6)


def test_fetched_and_fed_by_name(unique: Unique) -> None:
    op = Op(unique("Fetched"))
    with tf.Graph().as_default(), v1.Session() as s:
        x = v1.placeholder(tf.float32, [2])
        total = beside(op, x, "layer", "Exp")
        np.testing.assert_allclose(s.run("layer:1", {x: X}), 2 * np.exp(X), rtol=1e-6)
        fed = s.run(total, {x: X, "layer:0": X, "layer:1": X})
        np.testing.assert_array_equal(fed, X)


def test_an_op_without_outputs(unique: Unique) -> None:
    """What follows it by control edges, follows its state."""
    name = unique("Silent")
    p = Program(name, ["v: resource", "x: float"], [], [], stateful=True)
    p.call("AssignAddVariableOp", resource="v", value="x", node_name="add")
    p.returns()
    digest = p.register()
    v = tf.Variable(0.0)

    @tf.function
    def twice(x: Any) -> Any:
        tf.negative(x, name="silent/add")
        for call in ("silent", "silent_1"):
            stamped(op_def_library.apply_op(name, v=v.handle, x=x, name=call), digest)
        return v.read_value()

    assert twice(tf.constant(2.0)) == 4.0
