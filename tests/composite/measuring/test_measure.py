"""Timing a kernel as a node of a graph."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import NameAttrList
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite import Composite
from composite.binding.records import PROGRAM, AttrValue
from composite.measuring import measure as measuring
from composite.measuring import repeated
from composite.measuring.measure import measure
from composite.measuring.rounds import Round
from composite.ops import function_op


def test_what_has_no_kernel_is_refused_and_not_waited_for():
    """The thread that measures is the one that makes kernels."""

    @Composite("MeasuredWithoutKernel", inputs=["x: float"], outputs=["y: float"])
    def of_nobody_else(x):
        return tf.tanh(x) + 1.0

    def arguments(inputs):
        return {"x": inputs[0]}

    with pytest.raises(tf.errors.FailedPreconditionError, match="does not cover"):
        measure(of_nobody_else.op_name, arguments, {}, [tf.TensorSpec((3, 5), tf.float32)])


def test_a_function_without_a_kernel_is_refused_as_an_op_is():
    """Else two runs of its expansion would be compared."""

    @tf.function(input_signature=[tf.TensorSpec((3,), tf.float32)], autograph=False)
    def double(x):
        return x + x

    library = FunctionDefLibrary(function=[double.get_concrete_function().function_def])
    defined = function_op.define(function_op.canonical(library, "measured"))
    name = defined.function[0].signature.name

    def arguments(inputs):
        return {
            "args": [*inputs],
            "constants": [],
            "f": NameAttrList(name=name),
            "Tout": [tf.float32],
        }

    stamps = {PROGRAM: AttrValue(s=name.encode())}
    with pytest.raises(tf.errors.FailedPreconditionError, match="does not cover"):
        measure(function_op.NAME, arguments, stamps, [tf.TensorSpec((3,), tf.float32)])


class _NoWays:
    """Notes how many copies are asked for, and makes no functions."""

    def __init__(self, asked):
        self._asked = asked

    def times(self, copies):
        self._asked.append(copies)
        return []


@pytest.mark.parametrize(
    ("far", "near", "ratio", "widths"),
    [(0.9, 2.0, 0.9, [16]), (1.02, 0.6, 0.6, [16, 4]), (0.98, 1.5, 1.5, [16, 4])],
)
def test_what_is_close_is_decided_in_the_caches(monkeypatch, far, near, ratio, widths):
    """Sixteen copies of a mebibyte do not stay there; four do."""
    taken = []

    def rounds(functions, inputs, budget, fewest=5):
        if fewest == 1:
            return [Round(40e-6, 41e-6, 0.0)]
        taken.append(len(inputs))
        us = (far if len(inputs) == 16 else near) * 40e-6 * len(inputs)
        return [Round(us, 40e-6 * len(inputs), 0.0)] * fewest

    monkeypatch.setattr(measuring._Ways, "of", lambda *_, **__: _NoWays([]))
    monkeypatch.setattr(measuring, "_taken", lambda functions, specs, copies, sizes: [0] * copies)
    monkeypatch.setattr("composite.measuring.rounds.taken", rounds)
    found = measure("Any", dict, {}, [tf.TensorSpec((1 << 18,), tf.float32)])
    assert found.ratio == pytest.approx(ratio, abs=0.01)
    assert list(dict.fromkeys(taken)) == widths


@pytest.mark.parametrize(("us", "copies"), [(1, 16), (100, 16), (500, 4), (30_000, 1)])
def test_what_takes_long_is_measured_in_few_copies(monkeypatch, us, copies):
    made: list[int] = []

    def rounds(functions, inputs, budget, fewest=5):
        return [Round(us * 1e-6 * len(inputs), 3 * us * 1e-6 * len(inputs), 0.0)] * fewest

    monkeypatch.setattr(measuring._Ways, "of", lambda *_, **__: _NoWays(made))
    monkeypatch.setattr(measuring, "_taken", lambda functions, specs, copies, sizes: [0] * copies)
    monkeypatch.setattr("composite.measuring.rounds.taken", rounds)
    assert measure("Any", dict, {}, [tf.TensorSpec((64,), tf.float32)]).kernel_us == us
    assert made == ([1] if copies == 1 else [1, copies])


@pytest.mark.parametrize(("rows", "is_held"), [(1023, False), (1024, True)])
def test_a_large_constant_is_an_input_of_the_graph_that_runs_the_kernel(rows, is_held):
    """A node takes it for a constant all the same; the expansion has it as one."""

    @Composite("MeasuredProduct", inputs=["x: float", "w: float"], outputs=["y: float"])
    def product(x, w):
        return tf.matmul(x, w)

    specs = [tf.TensorSpec((8, rows), tf.float32)]
    known = {1: np.ones((rows, 256), np.float32)}
    call = measuring._Call(lambda own: dict(zip("xw", own, strict=True)), {}, known)

    for way, held in ((call.by_kernel(), is_held), (call.by_expansion(), False)):
        definition = way.traced("MeasuredProduct", specs).times(2).definition
        nodes = {node.name: node for node in definition.node_def}
        products = [node for node in nodes.values() if node.op == "MeasuredProduct"]
        assert len(products) == 2
        assert len(definition.signature.input_arg) == (4 if held else 2)
        factors = [node.input[1].split(":")[0] for node in products]
        assert [name in nodes and nodes[name].op for name in factors] == [not held and "Const"] * 2
        assert factors[0] != factors[1]


def _convolution(x):
    """With a norm of constants, which is folded into its filter."""
    filters = tf.constant(np.ones((3, 3, 4, 8), np.float32))
    scale, mean = tf.constant(np.full(8, 0.5, np.float32)), tf.constant(np.ones(8, np.float32))
    y = tf.nn.conv2d(x, filters, 1, "SAME")
    y = tf.compat.v1.nn.fused_batch_norm(y, scale, mean, mean, scale, is_training=False)[0]
    return tf.nn.relu(y)


def _pooled(x):
    return tf.reduce_mean(tf.nn.max_pool2d(x, 2, 2, "SAME"), [1, 2])


def _sum(x):
    return tf.add_n([x, tf.nn.relu(x), tf.tanh(x), x * 2.0])


def _product(x):
    flat = tf.reshape(tf.transpose(x, [0, 3, 1, 2]), [-1, 64])
    return tf.nn.bias_add(tf.matmul(flat, tf.ones((64, 8))), tf.ones(8))


@pytest.mark.parametrize("body", [_convolution, _pooled, _sum, _product])
def test_the_rewrites_that_are_left_out_do_nothing_on_a_cpu(body):
    def rewritten(config):
        with tf.Graph().as_default() as graph:
            x = tf.compat.v1.placeholder(tf.float32, (2, 8, 8, 4), "x")
            y = tf.identity(body(x), "y")
        options = tf.compat.v1.RunOptions(output_partition_graphs=True)
        found = tf.compat.v1.RunMetadata()
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            given = {x: np.ones((2, 8, 8, 4), np.float32)}
            session.run(y, given, options=options, run_metadata=found)
        return [sorted(map(str, part.node)) for part in found.partition_graphs]

    found = rewritten(repeated.config(repeated.HOST))
    assert found == rewritten(tf.compat.v1.ConfigProto(allow_soft_placement=True))
    assert found[0]


def test_the_nodes_of_a_gpu_get_all_rewrites():
    options = repeated.config("GPU:0", optimized=False).graph_options.rewrite_options
    assert not options.ListFields()
