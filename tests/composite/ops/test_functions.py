"""FunctionDefs as graphs."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.ops import functions
from composite.reference import evaluate


def library_of(function, *specs):
    """What the runtime's expansion looks like: a function and what it calls."""
    concrete = tf.function(function, input_signature=specs, autograph=False)
    graph = concrete.get_concrete_function().graph.as_graph_def()
    definition = concrete.get_concrete_function().function_def
    return FunctionDefLibrary(function=[definition, *graph.library.function])


def test_a_body_is_inlined():
    library = library_of(
        lambda x, y: (x @ y, x + 1.0), tf.TensorSpec([2, 3]), tf.TensorSpec([3, 2])
    )
    source = functions.body(library)
    assert source.input_dtypes == [tf.float32, tf.float32]
    x, y = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    product, more = evaluate.evaluate(source, [x, y])
    np.testing.assert_array_equal(product, x @ y)
    np.testing.assert_array_equal(more, x + 1)


def test_outputs_of_ops_with_several_are_found():
    def two(x):
        values, places = tf.math.top_k(x, 2)
        parts = tf.split(values, 2)
        return parts[1], places

    source = functions.body(library_of(two, tf.TensorSpec([4])))
    part, places = evaluate.evaluate(source, [np.array([3, 1, 9, 5], np.float32)])
    assert part.numpy() == [5]
    assert places.numpy().tolist() == [2, 3]


def test_called_functions_travel():
    def loop(x):
        return tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 2), [0, x])[1]

    source = functions.body(library_of(loop, tf.TensorSpec([2])))
    assert len(source.graph_def.library.function) >= 2
    (result,) = evaluate.evaluate(source, [np.ones(2, np.float32)])
    assert result.numpy().tolist() == [8, 8]


def test_an_unknown_op_is_named():
    library = library_of(lambda x: x + 1.0, tf.TensorSpec([2]))
    library.function[0].node_def[-1].op = "NoSuchOp"
    with pytest.raises(tf.errors.NotFoundError, match="NoSuchOp"):
        functions.body(library)


def test_in_single_computes_in_single():
    def thirds(x):
        return tf.concat([x, x * tf.constant(1 / 3, tf.float64)], 0)

    source = functions.in_single(functions.body(library_of(thirds, tf.TensorSpec([1], tf.float64))))
    assert (source.input_dtypes, source.output_dtypes) == ([tf.float32], [tf.float32])
    (result,) = evaluate.evaluate(source, [np.ones(1)])
    assert result.numpy().tolist() == [1, np.float32(1 / 3)]


def test_in_double_computes_in_double():
    def loop(x):
        third = tf.constant(1 / 3, tf.float32)
        return tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v + third), [0, x])[1]

    source = functions.in_double(functions.body(library_of(loop, tf.TensorSpec([1]))))
    assert source.input_dtypes == [tf.float64]
    (result,) = evaluate.evaluate(source, [np.zeros(1)])
    assert result.dtype == tf.float64
    # The constant is what the op computes with: a third rounded to float32.
    assert result.numpy()[0] == pytest.approx(3 * np.float64(np.float32(1 / 3)), abs=1e-15)


def test_in_double_draws_the_same_numbers() -> None:
    """Within a function as well."""

    def draw(seed: Any) -> Any:
        key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)
        return tf.raw_ops.StatelessRandomUniformV2(
            shape=[5], key=key, counter=counter, dtype=tf.float32, alg=3
        )

    def loop(seed: Any) -> Any:
        first = [0, draw(seed)]
        return tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, v + draw(seed)), first)[1]

    seed = np.array([3, 4], np.int32)
    source = functions.in_double(functions.body(library_of(loop, tf.TensorSpec([2], tf.int32))))
    (result,) = evaluate.evaluate(source, [seed])
    assert result.dtype == tf.float64
    np.testing.assert_array_equal(result, 3 * np.asarray(draw(seed), np.float64))


def test_unshared_functions_have_one_place_each() -> None:
    """Also those that a shared function names; the graph computes what it did."""

    def once(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: x - 1.0)

    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
        inner = tf.function(once).get_concrete_function(tf.TensorSpec([2]))
        y = tf.identity(inner(x) + inner(x + 1.0), name="y")
    shared = graph.as_graph_def()
    unshared = graph.as_graph_def()
    functions.unshare_functions(unshared, "_own")

    def places(graph_def: Any) -> list[str]:
        nodes = [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]
        found = [functions.named_by(value) for node in nodes for value in node.attr.values()]
        return [function.name for named in found for function in named]

    assert (
        len(places(shared)) == 4 and len(set(places(shared))) == 3
    )  # one call twice, two branches
    names = [f.signature.name for f in unshared.library.function]
    assert sorted(places(unshared)) == sorted(names) and len(set(names)) == 6
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.graph_util.import_graph_def(unshared, name="")
        np.testing.assert_allclose(session.run(y.name, {x.name: [1.0, -2.0]}), [4.0, -5.0])


@pytest.mark.parametrize(("rows", "columns", "is_empty"), [(2, 3, False), (2, 0, True)])
def test_empty_products_are_found_by_shapes(rows, columns, is_empty):
    def product(x):
        return tf.transpose(x[:, :3]) @ x

    source = functions.body(library_of(product, tf.TensorSpec([None, None])))
    assert functions.has_empty_product(source, [(rows, columns)]) == is_empty
