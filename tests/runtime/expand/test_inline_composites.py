"""Functions in which composites are expanded where they stand, for the kernel compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue, NameAttrList
from tensorflow.core.framework.function_pb2 import FunctionDef, FunctionDefLibrary

from tests.runtime import kernel_support as k
from tests.runtime.programs import Program, expand, ops_of, run_expansion
from tests.runtime.regions.test_partition import ops, regions

Unique = Callable[[str], str]
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def mean(op: str) -> Callable[[Any], Any]:
    """An op that divides tanh(x) by its last dim, which it has to know. What adds a node of it."""
    p = Program(op, ["x: float"], [], ["o: float"])
    p.returns(o=p.binary("truediv", p.call("Tanh", x="x"), p.dim("x", 1)))
    digest = p.register()
    return lambda x: k.call(op, {"x": x}, _composite_program=digest)


def region_of(body: Callable[[Any], Any]) -> FunctionDef:
    """The function of a body's one region, which CompositeCall knows from then on."""
    (function,) = regions(body, tf.TensorSpec([2, 3], tf.float32))[1].values()
    k.request("composite_register_function", FunctionDefLibrary(function=[function]))
    return function


def expanded(function: FunctionDef, shape: Any, **stamps: Any) -> FunctionDefLibrary:
    attrs = {"Tin": [tf.float32], "Tout": [tf.float32], "Tconstants": []}
    called = AttrValue(func=NameAttrList(name=function.signature.name))
    return expand("CompositeCall", [shape], f=called, **attrs, **stamps)


def test_nodes_of_composites_are_their_bodies(unique: Unique) -> None:
    op = unique("Mean")
    call = mean(op)
    function = region_of(lambda x: tf.exp(call(tf.sin(x))) + 1.0)
    assert ops(expanded(function, [2, 3]).function[0])[op] == 1  # where TensorFlow runs it
    library = expanded(function, [2, 3], _composite_inlined=True)
    assert {"Sin", "Tanh", "Exp"} < set(ops_of(library))
    assert op not in ops_of(library)
    np.testing.assert_allclose(
        run_expansion(library, X)[0], np.exp(np.tanh(np.sin(X)) / 3) + 1, rtol=1e-6
    )
    # A node of the body is known by the composite that it came with.
    (node,) = (one.name for one in function.node_def if one.op == op)
    (tanh,) = (one.name for one in library.function[0].node_def if one.op == "Tanh")
    assert tanh == f"{node}/Tanh"


def test_what_a_body_reads_is_its_key(unique: Unique) -> None:
    call = mean(unique("Mean"))
    function = region_of(lambda x: tf.exp(call(x)) * 2.0)
    names = [
        expanded(function, shape, _composite_inlined=True).function[0].signature.name
        for shape in ([2, 3], [5, 3], [2, 4])
    ]
    assert names[0] == names[1] != names[2]


def test_a_function_without_composites_is_itself() -> None:
    function = region_of(lambda x: tf.exp(x) * tf.sin(x))
    library = expanded(function, [2, 3], _composite_inlined=True)
    assert library.function[0].signature.name == function.signature.name


def test_a_body_that_has_no_expansion_there_is_refused(unique: Unique) -> None:
    op = unique("Leaks")
    p = Program(op, ["x: float", "alpha: float"], [], ["o: float"])
    p.returns(o=p.call("LeakyRelu", features="x", alpha="alpha"))
    digest = p.register()

    def body(x: Any) -> Any:
        inputs = {"x": tf.exp(x), "alpha": tf.reduce_max(x)}  # a value that no region knows
        return k.call(op, inputs, _composite_program=digest) * 2.0

    function = region_of(body)
    with pytest.raises(tf.errors.InvalidArgumentError, match="known only when the op runs"):
        expanded(function, [2, 3], _composite_inlined=True)
    assert ops(regions(body, tf.TensorSpec([2, 3], tf.float32))[0])[op] == 1
