"""The private TensorFlow APIs that calls use, each on an op of TensorFlow's own."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from composite.binding.records import AttrValue
from composite.ops import call, compiled_call
from composite.ops.dispatch import Dispatchable


class _Op(Dispatchable):
    def __call__(self, *args, **kwargs):
        raise NotImplementedError  # each subclass gets its own

    def __init_subclass__(cls, op_name, inputs, attrs=(), defaults=None):
        definition = call.op_def(op_name)
        compiled = compiled_call.compile_call(definition, list(inputs), list(attrs), defaults or {})
        cls.__call__ = compiled  # type: ignore[method-assign]
        compiled_call.do_not_convert(cls)

    def stamps(self):
        return {"_composite_program": AttrValue(s=b"abc")}


class MatMul(
    _Op,
    op_name="MatMul",
    inputs=("a", "b"),
    attrs=("transpose_a", "transpose_b"),
    defaults={"transpose_a": False, "transpose_b": False},
):
    pass


class Unique(_Op, op_name="Unique", inputs="x", attrs=["out_idx"], defaults={"out_idx": tf.int32}):
    pass


class AddN(_Op, op_name="AddN", inputs=["inputs"]):
    pass


class Split(_Op, op_name="Split", inputs=["split_dim", "value"], attrs=["num_split"]):
    pass


class TopK(
    _Op,
    op_name="SparseSplit",
    inputs=["split_dim", "indices", "values", "shape"],
    attrs=["num_split"],
):
    pass


matmul = MatMul()
A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.ones((3, 2), np.float32)


@pytest.mark.parametrize(
    "a",
    [A, tf.constant(A), A.tolist(), tf.Variable(A)],
    ids=["numpy", "tensor", "list", "variable"],
)
def test_eager_calls_take_what_converts(a):
    np.testing.assert_array_equal(matmul(a, B), A @ B)


def test_positions_names_and_defaults():
    np.testing.assert_array_equal(matmul(b=B, a=A, name="x"), A @ B)
    np.testing.assert_array_equal(matmul(A, A, transpose_b=True), A @ A.T)
    with pytest.raises(TypeError, match="positional"):
        matmul(A, A, False, True)
    with pytest.raises(TypeError, match="missing"):
        matmul(A)
    with pytest.raises(TypeError, match="unexpected keyword"):
        matmul(A, B, transpose=True)


def test_graph_nodes_are_named_and_stamped_before_shapes_are_inferred():
    @tf.function
    def traced(a):
        return matmul(a, B, name="product")

    graph = traced.get_concrete_function(tf.TensorSpec([None, 3])).graph
    node = graph.get_operation_by_name("product").node_def
    assert node.op == "MatMul"
    assert node.attr["_composite_program"].s == b"abc"
    np.testing.assert_array_equal(traced(A), A @ B)
    with pytest.raises(ValueError, match='_composite_program="abc"'):
        traced(A.T)


def test_name_scopes_are_respected():
    with tf.Graph().as_default(), tf.name_scope("outer"):
        assert matmul(A, B).op.name == "outer/MatMul"
        assert matmul(A, B).op.name == "outer/MatMul_1"


@pytest.mark.parametrize("value", [A, tf.constant(A)], ids=["converted", "fast"])
def test_eager_tapes_record(value):
    variable = tf.Variable(B)
    with tf.GradientTape() as tape:
        product = matmul(value, variable)
    np.testing.assert_array_equal(tape.gradient(product, variable), A.T @ np.ones((2, 2)))


def test_tapes_record_while_tracing():
    @tf.function
    def gradient(a):
        with tf.GradientTape() as tape:
            tape.watch(a)
            product = matmul(a, B)
        return tape.gradient(product, a)

    np.testing.assert_array_equal(gradient(tf.constant(A)), np.full((2, 3), 2.0))


def test_eager_failures_are_tf_errors():
    with pytest.raises(tf.errors.InvalidArgumentError, match="size-incompatible"):
        matmul(tf.constant(A), tf.constant(A))
    with pytest.raises(tf.errors.InvalidArgumentError, match="size-incompatible"):
        matmul(A, A.tolist())


def test_dtypes_that_do_not_agree():
    with pytest.raises((TypeError, tf.errors.InvalidArgumentError)):
        matmul(tf.constant(A), tf.constant(A.astype(np.float64)))


@pytest.mark.parametrize("x", [tf.constant([1, 1, 2]), [1, 1, 2]], ids=["fast", "converted"])
def test_several_outputs_are_a_tuple(x):
    values, places = Unique()(x, out_idx=tf.int64)
    assert values.numpy().tolist() == [1, 2]
    assert places.dtype == tf.int64


def test_lists():
    total = AddN()([tf.constant(1.0), tf.constant(2.0), 3.0])
    assert total.numpy() == 6
    parts = Split()(0, tf.constant([1.0, 2.0]), num_split=2)
    assert isinstance(parts, list)
    assert [p.numpy().tolist() for p in parts] == [[1.0], [2.0]]
    with tf.Graph().as_default():
        assert len(Split()(0, [1.0, 2.0], num_split=2)) == 2


def test_several_list_outputs_are_lists():
    result = TopK()(0, [[0, 0], [1, 0]], [5, 6], [2, 1], num_split=2)
    assert [type(part) for part in result] == [list, list, list]
    assert [v.numpy().tolist() for v in result[1]] == [[5], [6]]


def test_autograph_leaves_calls_alone():
    @tf.function  # autograph is on
    def traced(a):
        return matmul(a, B)

    np.testing.assert_array_equal(traced(A), A @ B)


def test_a_fast_call_of_lists():
    a, b = tf.constant([1.0, 2.0]), tf.constant(3)
    dtypes = [x.dtype.as_datatype_enum for x in (a, b)]
    with tf.GradientTape() as tape:
        tape.watch(a)
        first, second = call.fast_call("IdentityN", [[a, b]], [])
    assert first.dtype == tf.float32 and second.dtype == tf.int32
    np.testing.assert_array_equal(tape.gradient(first, a), [1, 1])
    called = tf.function(lambda a, b: (a * 2.0, b)).get_concrete_function(a, b)
    attrs = ["f", called.name.decode(), "Tout", dtypes]
    doubled, same = call.fast_call("PartitionedCall", [[a, b]], attrs)
    np.testing.assert_array_equal(doubled, [2, 4])
    assert int(same) == 3
    of_seven = tf.function(lambda x: x + tf.reshape(x, [7])).get_concrete_function(
        tf.TensorSpec([None])
    )
    attrs = ["f", of_seven.name.decode(), "Tout", dtypes[:1]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 values"):
        call.fast_call("PartitionedCall", [[a]], attrs)


def test_numbers_that_were_converted_are_forgotten():
    one = tf.constant(1.0)
    call.forget_scalars()
    assert float(one / -0.0) == float(one / 0.0) == -np.inf  # TensorFlow's own, in 2.21
    call.forget_scalars()
    assert float(one / 0.0) == np.inf


def test_the_options_of_grappler_that_were_chosen_since():
    from_before = dict(call._told_options)
    tf.config.optimizer.set_experimental_options({"remapping": False})
    try:
        with tf.Graph().as_default():
            call.graph_call("AddN", {"inputs": [tf.ones([2])]}, {}, None)
        assert call._told_options == {**from_before, "remapping": False}
        options = context.context().config.graph_options.rewrite_options
        assert options.remapping == options.OFF
    finally:
        tf.config.optimizer.set_experimental_options({"remapping": True})


def test_what_tapes_may_ask_for():
    x, y = tf.constant(1.0), tf.constant(2.0)
    assert not call.is_recorded() and not call.has_first_gradients([x, y])
    with tf.GradientTape() as tape:
        assert call.is_recorded() and not call.has_first_gradients([x, y])
        tape.watch(x)
        assert call.has_first_gradients([x, y]) and not call.has_first_gradients([y])
        with tf.GradientTape() as second:
            assert call.has_first_gradients([x])
            second.watch(x)
            assert not call.has_first_gradients([x])
        with tf.autodiff.ForwardAccumulator(x, x):
            assert not call.has_first_gradients([x])
        with tf.GradientTape(persistent=True) as persistent:
            persistent.watch(y)
            assert not call.has_first_gradients([y])
        with tape.stop_recording():
            assert not call.is_recorded()
    with tf.autodiff.ForwardAccumulator(x, x):
        assert not call.has_first_gradients([x])


def test_a_call_that_is_recorded_as_another():
    def thrice(x):
        return call.fast_call("IdentityN", [[x * 3.0]], [])

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(RuntimeError, match="for a test"):
            call.unrecorded(lambda _: _raise(), x)
        (y,) = call.unrecorded(thrice, x)
        attrs = ("T", x.dtype.as_datatype_enum)
        call.record_call("Neg", [x], attrs, [y])
    assert float(y) == 6 and float(tape.gradient(y, x)) == -1


def _raise():
    raise RuntimeError("for a test")


def test_the_graphs_of_functions_that_a_graph_knows() -> None:
    inner = tf.function(tf.tanh, input_signature=[tf.TensorSpec([None, 3])])
    outer = tf.function(lambda x: inner(x) + 1.0).get_concrete_function(tf.TensorSpec([2, 3]))
    (called,) = (op for op in outer.graph.get_operations() if op.type == "PartitionedCall")
    graph = call.graphs_of(outer.graph)[called.node_def.attr["f"].func.name]
    (tanh,) = (op for op in graph.get_operations() if op.type == "Tanh")
    assert tanh.outputs[0].shape.as_list() == [None, 3]
