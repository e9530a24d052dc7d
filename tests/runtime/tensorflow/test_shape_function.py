"""Shapes that are seen while a composite is traced, and its errors there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import tensorflow as tf

from tests.runtime import kernel_support as k
from tests.runtime.expand.test_expand import dense
from tests.runtime.programs import Program, sum_of_rows

Unique = Callable[[str], str]


def traced(op: str, inputs: dict[str, Any], **attrs: Any) -> Any:
    """The static shape of the op's output for placeholders of these shapes; tensors stay."""
    with tf.Graph().as_default():
        values = {
            key: value if callable(value) else tf.compat.v1.placeholder(tf.float32, value)
            for key, value in inputs.items()
        }
        values = {key: value() if callable(value) else value for key, value in values.items()}
        return k.call(op, values, **attrs).shape


def as_list(shape: tf.TensorShape) -> list[int | None] | None:
    return None if shape.rank is None else shape.as_list()


@pytest.mark.parametrize(
    ("x", "w", "want"),
    [
        ([32, 8], [5, 8], [32, 5]),
        ([None, 8], [5, 8], [None, 5]),
        ([None, None], [None, None], [None, None]),
        (None, [5, 8], [None, 5]),
        (None, None, [None, None]),
    ],
)
def test_dense(
    unique: Unique,
    x: Sequence[int | None] | None,
    w: Sequence[int | None] | None,
    want: list[int | None],
) -> None:
    op = unique("ShapeDense")
    dense(op).register()
    n = None if w is None else w[0]
    assert as_list(traced(op, {"x": x, "w": w, "b": [n]}, act="RELU")) == want


@pytest.mark.parametrize(
    ("x", "text"),
    [
        ([32, 7], "Dimensions must be equal, but are 7 and 8"),
        ([32], "must be rank 2 but is rank"),
    ],
)
def test_wrong_shapes_are_errors_while_tracing(unique: Unique, x: list[int], text: str) -> None:
    op = unique("ShapeWrong")
    dense(op).register()
    with pytest.raises(ValueError, match=text) as e:
        traced(op, {"x": x, "w": [5, 8], "b": [5]}, act="")
    assert "ops.py:3:5: " in str(e.value) and "MatMul" in str(e.value)


def test_wrong_inner_shapes_of_a_known_expansion(unique: Unique) -> None:
    """The expansion comes from the cache here: the place comes from its nodes."""
    op = unique("ShapeCached")
    dense(op).register()
    traced(op, {"x": [2, 8], "w": [5, 8], "b": [5]}, act="")
    with pytest.raises(ValueError, match="ops.py:3:5: .*Dimensions must be equal"):
        traced(op, {"x": [2, 7], "w": [5, 8], "b": [5]}, act="")


def test_not_yet_is_unknown(unique: Unique) -> None:
    op = unique("ShapeRows")
    sum_of_rows(op).register()
    assert as_list(traced(op, {"x": [None, 2]})) is None
    assert as_list(traced(op, {"x": [3, 2]})) == [1, 2]


def reshape(op: str) -> str:
    p = Program(op, ["x: float", "s: I"], ["I: {int32, int64}"], ["o: float"])
    p.returns(o=p.call("Reshape", tensor=p.unary("neg", "x"), shape="s"))
    p.register()
    return op


def test_constant_inputs_are_read(unique: Unique) -> None:
    op = reshape(unique("ShapeReshape"))
    assert as_list(traced(op, {"x": [6], "s": lambda: tf.constant([2, 3])})) == [2, 3]
    assert as_list(traced(op, {"x": [6], "s": lambda: tf.constant([2, -1], tf.int64)})) == [2, 3]
    unknown = traced(op, {"x": [6], "s": lambda: tf.compat.v1.placeholder(tf.int32, [2])})
    assert as_list(unknown) == [None, None]


def test_partly_known_shape_inputs(unique: Unique) -> None:
    op = reshape(unique("ShapePartly"))

    def shape() -> Any:
        batch = tf.compat.v1.placeholder(tf.int32, [])
        return tf.stack([batch, 3])

    assert as_list(traced(op, {"x": [None], "s": shape})) == [None, 3]


def test_constants_of_a_split(unique: Unique) -> None:
    op = unique("ShapeParts")
    p = Program(op, ["x: float", "n: int32"], [], ["o: float"])
    p.returns(o=p.call("AddN", inputs=p.call("Split", split_dim=0, value="x", num_split="n")))
    p.register()
    assert as_list(traced(op, {"x": [6, 2], "n": lambda: tf.constant(3)})) == [2, 2]
    later = traced(op, {"x": [6, 2], "n": lambda: tf.compat.v1.placeholder(tf.int32, [])})
    assert as_list(later) is None


def test_dims_that_are_computed(unique: Unique) -> None:
    op = unique("ShapeFlat")
    p = Program(op, ["x: float"], [], ["o: float"])
    size = p.binary("mul", p.dim("x", 1), p.dim("x", 2))
    p.returns(o=p.call("Reshape", tensor="x", shape=p.list(-1, size)))
    p.register()
    assert as_list(traced(op, {"x": [None, 3, 4]})) == [None, 12]
    assert as_list(traced(op, {"x": [5, 3, 4]})) == [5, 12]
    assert as_list(traced(op, {"x": [None, None, 4]})) == [None, None]


def test_unknown_body(unique: Unique) -> None:
    """A node that names a body which this process does not have is one sentence."""
    op = unique("ShapeStamped")
    dense(op).register()
    node = k.node("n", op, T=tf.float32, _composite_program="0123456789abcdef")
    node.input.extend(["x", "w", "b"])
    graph = tf.compat.v1.GraphDef()
    for name in "xwb":
        graph.node.add().CopyFrom(k.node(name, "Placeholder", dtype=tf.float32))
    graph.node.add().CopyFrom(node)
    with tf.Graph().as_default(), pytest.raises(Exception, match="made with another body") as e:
        tf.import_graph_def(graph)
    assert op in str(e.value) and "ops.py:1" in str(e.value) and "01234567" in str(e.value)
