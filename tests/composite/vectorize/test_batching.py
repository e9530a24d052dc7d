"""tf.vectorized_map and jacobians over composites, beside a loop over their Python functions."""

import logging
import re
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops.parallel_for import pfor

from composite import Composite
from composite.binding import tensorflow_version
from composite.vectorize import batching
from tests.composite.vectorize import mapped_ops as ops

pytestmark = [pytest.mark.many_cases, pytest.mark.usefixtures("expansions_only")]

RANDOM = np.random.default_rng(3)


def normal(*shape):
    return tf.constant(RANDOM.standard_normal(shape).astype(np.float32))


# Ops of bodies for which TensorFlow 2.21 has no rule.
NO_RULE = ["StatelessRandomGetKeyCounter", "StatelessRandomUniformV2"]


class Records(logging.Handler):
    def __init__(self, level):
        super().__init__(level)
        self.records = []

    def emit(self, record):
        self.records.append(record)


@pytest.fixture(autouse=True)
def told():
    """What pfor says of ops that it runs in a loop. At the end: no warning, nothing of a composite.

    TensorFlow's own rule for an op of a body, random numbers, may be such a loop; it says so at
    the level of debugging.
    """
    handler = Records(logging.DEBUG)
    logger = tf.get_logger()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler.records
    logger.removeHandler(handler)
    logger.setLevel(level)
    for record in handler.records:
        text = record.getMessage()
        if record.filename == "pfor.py" and not any(each in text for each in NO_RULE):
            assert record.levelno < logging.WARNING and "Mapped" not in text, text


def looped(function, *elements):
    """The function of each element in turn, stacked."""
    rows = [function(*(x[i] for x in elements)) for i in range(len(elements[0]))]
    flat = [tf.nest.flatten(row) for row in rows]
    stacked = [tf.stack(values) for values in zip(*flat, strict=True)]
    return tf.nest.pack_sequence_as(rows[0], stacked)


def mapped(function, *elements):
    return tf.vectorized_map(lambda one: function(*one), elements)


def assert_close(found, expected, **bounds):
    tf.nest.assert_same_structure(found, expected)
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, **{"rtol": 1e-5, "atol": 1e-5} | bounds)


def nodes(function, *inputs):
    """The types of the nodes that the result of a traced function needs."""
    graph = tf.function(function).get_concrete_function(*inputs).graph
    seen, waiting = {}, [y.op for y in graph.outputs]
    while waiting:
        op = waiting.pop()
        if op.name not in seen:
            seen[op.name] = op.type
            waiting += [x.op for x in op.inputs]
    return list(seen.values())


X, Y = normal(3, 4), normal(3, 4)
W, WS = normal(5, 2), normal(3, 5, 2)
XS = normal(3, 4, 5)
SEEDS = tf.constant([[1, 2], [3, 4], [5, 6]])
INTS = tf.constant([[1, 2], [3, 4], [5, 6]])

CALLS: dict[str, Any] = {
    "elements": (ops.elements, lambda op, x, y: op(x, y), [X, Y]),
    "elements, an attribute": (ops.elements, lambda op, x: op(x, 0.5, twice=True), [X]),
    "elements, broadcast": (ops.elements, lambda op, x, y: op(x, y[0]), [X, Y]),
    "elements, of two ranks": (ops.elements, lambda op, x: op(x, Y), [X]),
    "elements, constant first": (ops.elements, lambda op, y: op(X[0], y), [Y]),
    "ranks": (ops.ranks, lambda op, x: op(x), [X]),
    "matmul": (ops.matmul, lambda op, x, w: op(x, w), [XS, WS]),
    "matmul, one matrix": (ops.matmul, lambda op, x: op(x, W), [XS]),
    "matmul, one left": (ops.matmul, lambda op, w: op(XS[0], w), [WS]),
    "composition": (ops.outer, lambda op, x, w: op(x, w), [XS, WS]),
    "outputs": (ops.outputs, lambda op, x: op(x, Y[0]), [X]),
    "outputs, both": (ops.outputs, lambda op, x, w: op(x, w), [X, Y]),
    "lists": (ops.lists, lambda op, x, y, i: op([x, y, x], [i, y]), [X, Y, INTS]),
    "lists, one mapped": (ops.lists, lambda op, x: op([x, Y[0]], [INTS]), [X]),
    "if": (ops.chooses, lambda op, x, y: op(x, y), [X, Y]),
    "if, one condition": (ops.chooses, lambda op, y: op(X[0], y), [Y]),
    "while": (ops.loops, lambda op, x, y: op(x, tf.abs(y) + 0.1), [X, Y]),
    "while, one trip count": (ops.loops, lambda op, x: op(x, tf.ones([4])), [X]),
    "while, other sizes": (ops.grows, lambda op, x: op(x), [X]),
    "random": (ops.random, lambda op, x, s: op(x, s), [X, SEEDS]),
    "random, one seed": (ops.random, lambda op, x: op(x, SEEDS[0]), [X]),
    "assert": (ops.asserts, lambda op, x: op(tf.abs(x)), [X]),
    "assert, nothing mapped": (ops.asserts, lambda op, x: op(tf.abs(Y[0])) + x, [X]),
    "if, assert": (ops.guarded, lambda op, x: op(x), [X]),
    "dims": (ops.dims, lambda op, x: op(x), [X]),
}  # fmt: skip


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("name", CALLS)
def test_against_a_loop(name, traced):
    op, call, elements = CALLS[name]
    map_all = lambda *elements: mapped(lambda *one: call(op, *one), *elements)  # noqa: E731
    found = (tf.function(map_all) if traced else map_all)(*elements)
    assert_close(found, looped(lambda *one: call(python(op), *one), *elements))


def python(op):
    """The Python function, called as the op is."""
    defaults = {spec.name: spec.default for spec in op.schema.attrs if spec.has_default}
    return lambda *inputs, **attrs: op.python_function(*inputs, **{**defaults, **attrs})


def test_an_assertion_holds_for_each_element():
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative"):
        mapped(ops.asserts, tf.constant([[1.0, 2.0], [3.0, -4.0]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative"):
        mapped(lambda x: ops.asserts(tf.constant([-1.0])) + x, X)


def test_an_assertion_holds_in_a_branch():
    x = tf.constant([[4.0, 4.0], [-1.0, 9.0]])
    safe = lambda x: tf.cond(x[0] > 0, lambda: ops.asserts(x), lambda: x)  # noqa: E731
    assert_close(mapped(safe, x), tf.constant([[2.0, 2.0], [-1.0, 9.0]]))


def test_no_outputs():
    def run(x):
        ops.tells(x)
        return x

    assert_close(mapped(run, tf.abs(X)), tf.abs(X))
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative"):
        mapped(run, -tf.abs(X))


def test_one_node_where_the_batch_is_a_call():
    assert nodes(lambda x: mapped(ops.elements, x, x), X).count("MappedElements") == 1
    assert nodes(lambda x: mapped(lambda x: ops.elements(x, 0.5), x), X).count("Tanh") == 0


@pytest.mark.parametrize(
    "call",
    [
        ops.ranks,  # the body asks for the rank
        lambda x: ops.elements(x, x[0]),  # elements of two ranks: their first dims would meet
        lambda x: ops.elements(x, tf.ones([2, 4])),
        lambda x: ops.loops(x, x * x + 1.0),
    ],
    ids=["rank", "lower rank", "higher rank", "no elements"],
)
def test_no_node_where_it_is_not(call):
    assert not [op for op in nodes(lambda x: mapped(call, x), X) if op.startswith("Mapped")]
    assert_close(mapped(call, X), looped(call, X))


def test_one_node_where_nothing_is_mapped_over():
    found = nodes(lambda x: mapped(lambda x: ops.matmul(XS[0], W) + x[0], x), X)
    assert found.count("MappedMatmul") == 1 and "Softmax" not in found
    found = nodes(lambda x: mapped(lambda x: ops.asserts(Y[0]) + x[0], x), X)
    assert found.count("MappedAssert") == 1


def test_unknown_sizes():
    specs = [tf.TensorSpec([None, None, 5]), tf.TensorSpec([None, 5, None])]
    call = tf.function(lambda x, w: mapped(ops.matmul, x, w), input_signature=specs)
    assert_close(call(XS, WS), looped(ops.matmul.python_function, XS, WS))
    assert_close(call(XS[:2], WS[:2]), looped(ops.matmul.python_function, XS[:2], WS[:2]))
    call = tf.function(lambda x: mapped(ops.elements, x, x), input_signature=[tf.TensorSpec(None)])
    found = call(tf.ensure_shape(X, [3, 4]))
    assert_close(found, looped(lambda x: ops.elements(x, x), X))


def test_unknown_sizes_of_what_a_loop_carries():
    specs = [tf.TensorSpec([None, None])] * 2
    for op in (ops.loops, ops.chooses):
        positive = lambda x, y, op=op: mapped(op, x, tf.abs(y) + 0.1)  # noqa: E731
        call = tf.function(positive, input_signature=specs)
        expected = looped(lambda x, y, op=op: op.python_function(x, tf.abs(y) + 0.1), X, Y)
        assert_close(call(X, Y), expected)


def test_a_fact_that_is_missing(caplog, told):
    specs = [tf.TensorSpec([3, None])]
    message = r"MappedDims cannot be vectorized.*not yet.*ensure_shape"
    call = tf.function(lambda x: mapped(ops.dims, x), input_signature=specs)
    assert_close(call(X), looped(ops.dims, X))
    assert re.search(message, caplog.text, re.DOTALL)  # it ran in a loop, and was said to
    strict = lambda x: tf.vectorized_map(ops.dims, x, fallback_to_while_loop=False)  # noqa: E731
    with pytest.raises(ValueError, match=message):
        tf.function(strict, input_signature=specs)(X)
    told.clear()


def test_variables(told):
    factor, counter = tf.Variable(2.0), tf.Variable(0.0)
    assert_close(mapped(lambda x: ops.gets(factor.handle, x), X), X * 2.0)
    assert_close(mapped(lambda x: ops.gets(factor.handle, Y[0]) + x, X), X + Y[0] * 2.0)
    # TensorFlow cannot map over what adds to a variable; once for all elements would be wrong.
    with pytest.raises(ValueError, match="AssignAddVariableOp"):
        mapped(lambda x: ops.counts(counter.handle, Y[0]) + x, X)
    told.clear()


def test_nested():
    for op in (ops.elements, lambda x, y: ops.outputs(x, y)[0]):
        found = tf.vectorized_map(lambda x, op=op: tf.vectorized_map(lambda y: op(x, y), Y), X)
        expected = looped(lambda x, op=op: looped(lambda y: op(x, y), Y), X)
        assert_close(found, expected)


def test_in_a_while_loop():
    @tf.function
    def repeated(x):
        for _ in tf.range(3):
            x = mapped(ops.chooses, x, Y)
        return x

    expected = X
    for _ in range(3):
        expected = looped(ops.chooses.python_function, expected, Y)
    assert_close(repeated(X), expected)


def test_a_loop_in_the_map():
    def repeated(x, call):
        again = lambda i, x: (i + 1, call(x, x + 1.0))  # noqa: E731
        return tf.while_loop(lambda i, _: i < 3, again, [0, x])[1]

    expected = looped(lambda x: repeated(x, ops.chooses.python_function), X)
    assert_close(mapped(lambda x: repeated(x, ops.chooses), X), expected)


def test_other_versions():
    first = _version(2.0)
    traced = tf.function(lambda x: mapped(first, x))
    assert_close(traced(X), tf.reduce_sum(X, axis=1) * 2.0)
    second = _version(3.0)
    for call in (lambda x: mapped(first, x), traced, tf.function(lambda x: mapped(first, x))):
        assert_close(call(X), tf.reduce_sum(X, axis=1) * 2.0)
    assert_close(mapped(second, X), tf.reduce_sum(X, axis=1) * 3.0)


def _version(factor):
    @Composite("MappedVersion", inputs=["x: float"], outputs=["y: float"])
    def version(x):
        return tf.reduce_sum(x) * factor

    return version


def test_functions_go_with_their_graphs(tmp_path):
    module = tf.Module()
    module.f = tf.function(
        lambda x, y: mapped(lambda x: ops.chooses(Y[0], Y[1]) + ops.chooses(x, Y[0]), x) + y,
        input_signature=[tf.TensorSpec([3, 4])] * 2,
    )
    tf.saved_model.save(module, str(tmp_path))
    batching._expansion.cache_clear()
    found = tf.saved_model.load(str(tmp_path)).f(X, Y)
    assert_close(found, module.f(X, Y))


def test_the_private_apis():
    """TF 2.21: what batching.py takes of pfor."""
    assert tf.__version__.startswith(tensorflow_version.MINORS)
    assert "MappedElements" in pfor._pfor_converter_registry
    for name in ("_create_op", "wrap", "ConversionNotImplementedError", "WrappedTensor"):
        assert hasattr(pfor, name)
    for name in ("_convert_helper", "_add_conversion", "loop_len_vector", "pfor_config"):
        assert hasattr(pfor.PFor, name)
