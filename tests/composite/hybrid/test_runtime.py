"""The function of TVM by which modules call TensorFlow, called as a module does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

from composite.hybrid import runtime
from composite.hybrid.transfer import to_tensorflow, to_tvm
from composite.ops import functions


def graph(factor: float, function: str = "scaled") -> MetaGraphDef:
    """A call of a function that multiplies; all have one name, whatever the factor."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def scaled(x: Any) -> Any:
        return x * factor

    with tf.Graph().as_default() as made:
        x = tf.compat.v1.placeholder(tf.float32, [None], "x")
        y = scaled(x)
    found = MetaGraphDef(graph_def=made.as_graph_def())
    (called,) = found.graph_def.library.function
    functions.rename_in_graph(found.graph_def, {called.signature.name: function})
    signature = found.signature_def[runtime.SIGNATURE]
    signature.inputs["0"].name, signature.inputs["0"].dtype = "x:0", 1
    signature.inputs["0"].tensor_shape.CopyFrom(tf.TensorShape([None]).as_proto())
    signature.outputs["0"].name, signature.outputs["0"].dtype = y.name, 1
    return found


def run(digest: str, content: bytes, *inputs: Any, function: str = runtime.CALL) -> list[Any]:
    import tvm

    runtime.register()
    bytes_ = to_tvm(tf.constant(np.frombuffer(content, np.uint8)))
    call = tvm.get_global_func(function)
    return [to_tensorflow(y) for y in call(digest, bytes_, *map(to_tvm, inputs))]


def test_graphs_whose_functions_have_one_name() -> None:
    x = tf.constant([1.0, 2.0])
    for factor in (3.0, 5.0, 3.0):
        (y,) = run(f"runtime{factor}", graph(factor).SerializeToString(), x)
        assert y.numpy().tolist() == [factor, 2 * factor]


def test_ops_that_nobody_has_defined_are_named() -> None:
    unknown = graph(2.0)
    unknown.graph_def.node.add(name="n", op="HybridOpOfNobody")
    with pytest.raises(ValueError, match="runs HybridOpOfNobody in TensorFlow, and this process"):
        run("unknown", unknown.SerializeToString(), tf.constant([1.0]))
    with pytest.raises(ValueError, match="no graph of TensorFlow"):
        run("damaged", b"damaged", tf.constant([1.0]))


def test_what_is_called_once_is_called_once_for_each_graph() -> None:
    with tf.Graph().as_default() as made:
        y = tf.random.uniform([4])
    drawn = MetaGraphDef(graph_def=made.as_graph_def())
    signature = drawn.signature_def[runtime.SIGNATURE]
    signature.outputs["0"].name, signature.outputs["0"].dtype = y.name, 1

    def once(digest: str) -> list[float]:
        (found,) = run(digest, drawn.SerializeToString(), function=runtime.CALL_ONCE)
        return list(found.numpy())

    first, second = once("first"), once("second")
    assert first != second
    assert once("first") == first
