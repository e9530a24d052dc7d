"""Functions of libraries as ops: every way to call them, every way in which they fail."""

from __future__ import annotations

import gc
import resource
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tvm_ffi

import composite
from composite import Composite, tf_op
from composite.ops import call, direct
from composite.tf_op.function import OPS
from tests.composite.tf_op import libraries


@Composite("TfOpDoubled", inputs=["x: float"], outputs=["y: float"])
def doubled(x: Any) -> Any:
    return tf.raw_ops.Add(x=x, y=x)


def same(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_eager_graph_and_session_agree(kernels: tf_op.Module) -> None:
    addone = kernels["addone"]
    x = np.arange(5, dtype=np.float32)
    same(addone(x), x + 1)
    same(tf.function(addone)(x), x + 1)
    graph = tf.Graph()
    with graph.as_default():
        fed = tf.compat.v1.placeholder(tf.float32, [None])
        y = addone(fed, name="plus")
    assert y.op.name == "plus" and y.shape == [None]
    with tf.compat.v1.Session(graph=graph) as session:
        same(session.run(y, {fed: x}), x + 1)


def test_repeated_eager_calls_are_direct(kernels: tf_op.Module) -> None:
    addone = kernels["addone"]
    x = tf.constant([1.0, 2.0])
    addone.gradient(lambda op, dy: 5 * dy)
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = addone(x)
        same(y, x + 1)
        same(tape.gradient(y, x), [5.0, 5.0])
    with tf.autodiff.ForwardAccumulator(x, tf.ones([2])) as forward:
        y = addone(x)
    same(forward.jvp(y), [5.0, 5.0])
    same(addone(np.array([4], np.float32)), [5.0])
    same(addone(x, output_shape=tf.shape(x)), x + 1)
    same(addone(tf.Variable(x)), x + 1)
    same(tf.map_fn(addone, tf.ones([3, 2])), np.full([3, 2], 2.0))
    for wrong in (tf.constant([1, 2]), np.array([1, 2])):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Mismatched A\.dtype"):
            addone(wrong)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected 2 arguments"):
        addone(x, x)
    assert addone._direct is not None
    same(addone._direct.call(*call.eager_state(), x), x + 1)
    graph = tf.function(addone).get_concrete_function(x).graph.as_graph_def()
    assert {n.op for n in graph.node} & set(OPS) == {"CompositeTvmCall"}


def test_calls_go_on_where_none_can_be_direct(
    kernels: tf_op.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(op_name: str, *_: Any) -> Any:
        asked.append(op_name)
        raise direct.RefusedError("there are other devices than one CPU")

    monkeypatch.setattr(direct, "of_op", refuse)
    addone = kernels["addone"]
    for _ in range(3):
        same(addone(tf.constant([1.0])), [2.0])
    assert asked == ["CompositeTvmCall"]


def test_functions_without_a_signature_take_each_dtype_eagerly() -> None:
    import tvm_ffi

    def copy(x: Any, y: Any) -> None:
        np.from_dlpack(y)[:] = np.from_dlpack(x) + 1

    plus = tf_op.function(tvm_ffi.convert(copy))
    for _ in range(3):
        same(plus(tf.constant([1.0])), [2.0])
        same(plus(tf.constant([1])), [2.0])


def test_a_function_is_applied(kernels: tf_op.Module) -> None:
    addone, x = kernels["addone"], tf.constant([1.0, 2.0])
    same(addone.apply(x), [2.0, 3.0])
    same(tf.function(addone.apply)(x), [2.0, 3.0])


def test_a_name_is_of_the_node(kernels: tf_op.Module) -> None:
    concrete = tf.function(kernels["addone"]).get_concrete_function(tf.TensorSpec([3], tf.float32))
    (node,) = [n for n in concrete.graph.as_graph_def().node if n.op == "CompositeTvmCall"]
    assert node.attr["function"].s.decode() == f"{kernels.library}:addone"


@pytest.mark.parametrize("dtype", libraries.DTYPES)
def test_all_dtypes(kernels: tf_op.Module, dtype: str) -> None:
    x = tf.cast(tf.constant([0.0, 1.0, 2.0, 3.0, 1.0]), dtype)
    y = kernels.func(f"copy_{dtype}", output_dtype=dtype)(x)
    assert y.dtype == x.dtype
    same(tf.cast(y, tf.float32), tf.cast(x, tf.float32))


def test_many_inputs_and_outputs(kernels: tf_op.Module) -> None:
    many = kernels.func("many", output_dtype=["float32"] * 16)
    inputs = [tf.fill([3], float(i)) for i in range(64)]
    outputs = many(*inputs)
    assert len(outputs) == 16
    for i, y in enumerate(outputs):
        same(y, np.full(3, sum(range(i, 64, 16)), np.float32))


def test_ranks_zero_and_eight_and_nothing(kernels: tf_op.Module) -> None:
    same(kernels["scalar"](tf.constant(2.0)), np.float32(3))
    x = np.arange(2**8, dtype=np.float32).reshape([2] * 8)
    same(kernels["rank8"](x), x + 1)
    same(kernels["addone"](np.zeros([0], np.float32)), np.zeros([0], np.float32))
    same(kernels["rank8"](np.zeros([2, 0] * 4, np.float32)), np.zeros([2, 0] * 4, np.float32))


def lent(shape: Sequence[int], offset: int) -> Any:
    """A tensor on NumPy's memory, which begins so many bytes behind a multiple of 64."""
    size = 4 * int(np.prod(shape))
    raw = np.frombuffer(bytearray(size + 128), np.uint8)
    begin = -raw.ctypes.data % 64 + offset
    array = raw[begin : begin + size].view(np.float32).reshape(shape)
    array[...] = np.arange(array.size).reshape(shape)
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


@pytest.mark.parametrize("offset", [4, 16, 32])
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4)])
def test_what_is_not_aligned_is_copied_and_counted(shape: tuple[int, ...], offset: int) -> None:
    seen: list[int] = []

    def double(x: Any, y: Any) -> None:
        seen.append(np.from_dlpack(x).ctypes.data)
        np.from_dlpack(y)[...] = 2 * np.from_dlpack(x)

    function = tf_op.function(tvm_ffi.convert(double))
    x = lent(shape, offset)
    for way in (function, function, tf.function(function)):  # the second call is a direct one
        before = composite.stats()["copies"]
        same(way(x), 2 * np.arange(np.prod(shape)).reshape(shape))
        assert composite.stats()["copies"] == before + 1
        assert seen.pop() % 64 == 0


def test_what_is_aligned_is_read_in_place(kernels: tf_op.Module) -> None:
    """TensorFlow itself aligns slices of its tensors, and NumPy's arrays, which it copies."""
    addone = kernels["addone"]
    x = tf.range(100, dtype=tf.float32)

    @tf.function
    def parts(x: Any) -> Any:
        return [addone(part) for part in [x[1:], *tf.split(x, [3, 7, 90]), *tf.unstack(x[None])]]

    before = composite.stats()["copies"]
    for way in (parts, parts.python_function):
        same(tf.concat(way(x), 0), np.concatenate([x[1:], x, x]) + 1)
    same(addone(np.arange(9, dtype=np.float32)[1:]), np.arange(2, 10))
    assert composite.stats()["copies"] == before


def test_parallel_loops_run_on_the_pool_of_tensorflow(kernels: tf_op.Module) -> None:
    before = composite.stats()["parallel_launches"]
    x = np.random.default_rng(0).normal(size=[500, 64]).astype(np.float32)
    same(kernels["parallel"](x), 2 * x[:, ::-1] + 1)
    assert composite.stats()["parallel_launches"] == before + 1


def test_errors_of_functions_are_statuses(kernels: tf_op.Module, foreign: tf_op.Module) -> None:
    x = tf.constant([1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"addone .*Mismatched A\.dtype"):
        kernels["addone"](tf.constant([1, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="addone .*Expected 2 arguments"):
        kernels["addone"](x, x)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Mismatched B\.shape\[0\]"):
        kernels.func("addone", output_shape=[3])(x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="input 0 is string"):
        kernels["addone"](tf.constant("a"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="nothing says what shape output 0"):
        kernels["addone"]()
    with pytest.raises(tf.errors.InternalError, match="it threw: thrown"):
        foreign["throws"](x)
    with pytest.raises(tf.errors.InternalError, match="it threw what is no std::exception"):
        foreign["throws_int"](x)
    with pytest.raises(tf.errors.InternalError, match="silent .*gave no reason"):
        foreign["silent"](x)
    with pytest.raises(tf.errors.OutOfRangeError, match="IndexError: index 7"):
        foreign["out_of_range"](x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="returns none"):
        kernels.func("addone", returns=True)(x)
    same(kernels["addone"](x), x + 1)


def test_errors_are_those_of_the_step_in_graphs(foreign: tf_op.Module) -> None:
    with pytest.raises(tf.errors.InternalError, match="it threw: thrown"):
        tf.function(foreign["throws"])(tf.constant([1.0]))


def test_a_program_of_relax(program: tf_op.Module) -> None:
    x, w = tf.random.normal([3, 4]), tf.random.normal([4, 5])
    layer = program.func("main")
    np.testing.assert_allclose(layer(x, w), tf.nn.relu(x @ w), rtol=1e-5, atol=1e-6)
    traced = tf.function(program.func("main", output_shape=[None, 5]))
    np.testing.assert_allclose(traced(x, w), tf.nn.relu(x @ w), rtol=1e-5, atol=1e-6)
    assert traced.get_concrete_function(x, w).structured_outputs.shape == [None, 5]
    y, z = program.func("pair", output_dtype=["float32", "float32"])(x)
    same(y, 2 * x)
    np.testing.assert_allclose(z, tf.reduce_sum(x, 1), rtol=1e-5, atol=1e-6)


def test_errors_of_programs_are_statuses(program: tf_op.Module) -> None:
    x, w = tf.zeros([3, 4]), tf.zeros([4, 5])
    with pytest.raises(tf.errors.InternalError, match="main expects 2 arguments"):
        program["main"](x)
    with pytest.raises(tf.errors.InternalError, match="mismatch"):
        program["main"](x, x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="returned 1 tensors, not 2"):
        program.func("main", output_dtype=["float32"] * 2)(x, w)
    with pytest.raises(tf.errors.InvalidArgumentError, match="result 0 .* not int32"):
        program.func("main", output_dtype="int32")(x, w)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \[3,5\], not \[7,\?\]"):
        program.func("main", output_shape=[7, None])(x, w)


def test_one_machine_serves_many_threads(program: tf_op.Module) -> None:
    layer = program["main"]
    xs, w = tf.random.normal([16, 64, 4]), tf.random.normal([4, 5])

    @tf.function
    def several(xs: Any) -> Any:
        return tf.stack([layer(x, w) for x in tf.unstack(xs)])

    for _ in range(5):
        np.testing.assert_allclose(several(xs), tf.nn.relu(xs @ w), rtol=1e-4, atol=1e-5)


def test_gradients_of_any_kind(kernels: tf_op.Module) -> None:
    add = kernels.func("vector_add")
    x = tf.constant([1.0, 2.0])

    def by_function(op: Any, dy: Any) -> Any:
        return [kernels["addone"](dy), doubled(dy)]

    assert add.gradient(by_function) is by_function

    def gradients(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = add(x, 3 * x, output_shape=tf.shape(x))
        return tape.gradient(y, x)

    same(gradients(x), [8.0, 8.0])  # addone(1) + 3 * doubled(1)
    same(tf.function(gradients)(x), [8.0, 8.0])


def test_a_missing_gradient_is_named(kernels: tf_op.Module) -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = kernels.func("scalar", output_shape=[])(x[0])
    with pytest.raises(LookupError, match=r"scalar .*has no gradient.*\.gradient"):
        tape.gradient(y, x)


def test_vectorized_map_runs_a_loop(kernels: tf_op.Module) -> None:
    x = tf.reshape(tf.range(12, dtype=tf.float32), [4, 3])
    same(tf.vectorized_map(kernels["addone"], x), x + 1)


def test_stateful_calls_are_neither_merged_nor_folded(kernels: tf_op.Module) -> None:
    once, again = kernels["addone"], kernels.func("addone", stateful=True)

    @tf.function
    def calls() -> Any:
        x = tf.constant([1.0])
        return once(x), again(x), again(x)

    ops = [op.type for op in calls.get_concrete_function().graph.get_operations()]
    assert ops.count("CompositeStatefulTvmCall") == 2 and ops.count("CompositeTvmCall") == 1
    for y in calls():
        same(y, [2.0])


def test_calls_leak_nothing(kernels: tf_op.Module) -> None:
    addone = kernels["addone"]
    sums = kernels.func("row_sums", output_shape=lambda s: [s[0]])
    row, rows = tf.ones([8]), [tf.ones([i, 4]) for i in range(1, 50)]

    def calls(count: int) -> None:
        for i in range(count):
            addone(row)
            if i % 10 == 0:
                sums(rows[i // 10 % len(rows)])

    calls(2000)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls(20_000)
    gc.collect()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1500  # KiB
