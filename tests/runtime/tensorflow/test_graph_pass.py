"""Composites in graphs: every context, with and without a final verdict, at one thread and at two.

`run_contexts` is what each process runs: the pass expands under backend "tf" (then grappler fuses
the body), and leaves the node to its kernel when a just-in-time kernel may still come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import op_def_library

from tests.runtime import kernel_support as k
from tests.runtime.programs import Program

v1 = tf.compat.v1


class Op:
    """A dense composite whose graph nodes are stamped, and its oracle in TF ops."""

    def __init__(self, name: str, **stamps: Any) -> None:
        self.name = name
        p = Program(name, ["x: float", "w: float", "b: float"], [], ["o: float"])
        y = p.call("MatMul", a="x", b="w", transpose_b=True)
        y = p.call("BiasAdd", value=y, bias="b")
        p.returns(o=p.call("Relu", features=y))
        self.digest = p.register()
        self.stamps = stamps

    def __call__(self, x: Any, w: Any, b: Any) -> Any:
        inputs = {"x": x, "w": w, "b": b}
        if tf.executing_eagerly():
            return k.call(self.name, inputs)
        return k.call(self.name, inputs, _composite_program=self.digest, **self.stamps)

    @staticmethod
    def oracle(x: Any, w: Any, b: Any) -> Any:
        return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w, transpose_b=True), b))


def numbers() -> list[Any]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal(s).astype(np.float32) for s in [(4, 4), (4, 4), (4,)]]


def inputs() -> list[Any]:
    return [tf.constant(v) for v in numbers()]


def eager(f: Callable[..., Any]) -> Any:
    return f(*inputs())


def function(f: Callable[..., Any]) -> Any:
    return tf.function(f)(*inputs())


def nested(f: Callable[..., Any]) -> Any:
    x, w, b = inputs()
    inner = tf.function(lambda x: f(x, w, b))
    return tf.function(lambda x: inner(inner(x)))(x)


def cond(f: Callable[..., Any]) -> Any:
    x, w, b = inputs()
    return tf.function(lambda p, x: tf.cond(p, lambda: f(x, w, b), lambda: x))(tf.constant(True), x)


def loop(f: Callable[..., Any]) -> Any:
    x, w, b = inputs()

    def run(n: Any, x: Any) -> Any:
        step = lambda i, y: (i + 1, f(y, w, b))  # noqa: E731
        return tf.while_loop(lambda i, y: i < n, step, [0, x])[1]

    return tf.function(run)(tf.constant(3), x)


def session(f: Callable[..., Any]) -> Any:
    with tf.Graph().as_default(), v1.Session() as s:
        values = [v1.placeholder(tf.float32) for _ in range(3)]
        return s.run(f(*values), dict(zip(values, numbers(), strict=True)))


def session_cond(f: Callable[..., Any]) -> Any:
    """Control flow of TF 1: Switch and Merge."""
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default(), v1.Session() as s:
            x, w, b = (tf.constant(v) for v in numbers())
            p = v1.placeholder(tf.bool, [])
            y = v1.cond(p, lambda: f(x, w, b), lambda: x)
            z = v1.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, f(y, w, b)), [0, y])[1]
            return s.run(z, {p: True})
    finally:
        v1.enable_control_flow_v2()


def dataset(f: Callable[..., Any]) -> Any:
    x, w, b = inputs()
    data = tf.data.Dataset.from_tensors(x).repeat(3).map(lambda x: f(x, w, b), num_parallel_calls=2)
    return list(data)[-1]


def mapped(f: Callable[..., Any]) -> Any:
    x, w, b = inputs()
    return tf.function(lambda x: tf.map_fn(lambda r: f(r[None], w, b)[0], x))(x)


CONTEXTS = [eager, function, nested, cond, loop, session, session_cond, dataset, mapped]


def run_contexts(backend: str) -> None:
    """Each context against the oracle in the same context. Prints what it did."""
    k.request("composite_set_kernel_ops", k.node("", "", ops=["MatMul", "BiasAdd", "Relu"]))
    op = Op("ContextDense", **({"_composite_backend": backend} if backend else {}))
    for run in CONTEXTS:
        np.testing.assert_allclose(run(op), run(Op.oracle), rtol=1e-5, err_msg=run.__name__)
    print("passed", len(CONTEXTS), k.stats()["expansion_runs"])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("backend", ["tf", ""])
def test_contexts(run_python: Callable[..., Any], backend: str, threads: int) -> None:
    code = f"from tests.runtime.tensorflow import test_graph_pass as t\nt.run_contexts({backend!r})"
    done = run_python(code, intra=threads, inter=threads, timeout=120)
    passed, count, runs = done.stdout.split()[-3:]
    assert (passed, int(count)) == ("passed", len(CONTEXTS))
    # With a final verdict only the eager call and TF 1's lowered control flow run in the kernel.
    assert int(runs) > (0 if backend else 10)


def graph_ops(f: Callable[..., Any], *args: Any) -> set[str]:
    """All ops that a tf.function executes, after grappler."""
    context.context().enable_graph_collection()
    try:
        f(*args)
        metadata = context.context().export_run_metadata()
    finally:
        context.context().disable_graph_collection()
    graphs = [g for fg in metadata.function_graphs for g in fg.partition_graphs]
    nodes = [n for g in graphs for n in g.node]
    nodes += [n for g in graphs for function in g.library.function for n in function.node_def]
    return {n.op for n in nodes}


Unique = Callable[[str], str]


def test_a_final_verdict_is_fused_as_handwritten_ops_are(unique: Unique) -> None:
    op = Op(unique("Fused"), _composite_backend="tf")
    ops = graph_ops(tf.function(op), *inputs())
    assert "_FusedMatMul" in ops and ops == graph_ops(tf.function(Op.oracle), *inputs())


def test_without_a_verdict_the_node_stays(unique: Unique) -> None:
    k.request("composite_set_kernel_ops", k.node("", "", ops=["MatMul", "BiasAdd", "Relu"]))
    op = Op(unique("Stays"))
    ops = graph_ops(tf.function(op), *inputs())
    assert op.name in ops and "MatMul" not in ops


def test_an_unstamped_node_stays(unique: Unique) -> None:
    """An eager op comes to the pass as a function of one node that TensorFlow keeps."""
    op = Op(unique("Unstamped"))
    with k.options(backend="tf", thread=False):
        x, w, b = inputs()
        f = tf.function(lambda: k.call(op.name, {"x": x, "w": w, "b": b}))
        assert op.name in graph_ops(f)


def test_loop_bodies_are_fused(unique: Unique) -> None:
    op = Op(unique("LoopFused"), _composite_backend="tf")
    x, w, b = inputs()
    run = tf.function(
        lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, op(y, w, b)), [0, x])[1]
    )
    ops = graph_ops(run, x)
    assert "_FusedMatMul" in ops and op.name not in ops


def test_fetched_and_fed_by_name(unique: Unique) -> None:
    op = Op(unique("Fetched"), _composite_backend="tf")
    with tf.Graph().as_default(), v1.Session() as s:
        y = op(*(tf.constant(v) for v in numbers()))
        z = y * 2.0
        plain = s.run(y.name)
        np.testing.assert_allclose(s.run(z), 2 * plain)
        ones = np.ones((4, 4), np.float32)
        np.testing.assert_array_equal(s.run(z, {y: ones}), 2 * ones)


def test_several_and_list_outputs(unique: Unique) -> None:
    """Outputs of a body's composite are renamed one by one."""
    name = unique("Several")
    p = Program(name, ["x: float"], ["N: int"], ["sum: float", "parts: N * float"])
    parts = p.call("Split", split_dim=0, value="x", num_split="N")
    p.returns(sum=p.call("AddN", inputs=parts), parts=parts)
    digest = p.register()

    def body(i: Any, x: Any) -> Any:
        total, (first, second) = op_def_library.apply_op(name, x=x, N=2)
        total.op._set_attr("_composite_program", k.attr(digest))
        total.op._set_attr("_composite_backend", k.attr("tf"))
        return i + 1, tf.concat([second + total, first], 0)

    run = tf.function(lambda x: tf.while_loop(lambda i, x: i < 2, body, [0, x])[1])
    want = np.array([1.0, 2.0], np.float32)
    for _ in range(2):
        want = np.array([want[1] + want.sum(), want[0]], np.float32)
    np.testing.assert_array_equal(run(tf.constant([1.0, 2.0])), want)
    assert name not in graph_ops(run, tf.constant([1.0, 2.0]))


def test_control_edges_and_state_are_kept(unique: Unique) -> None:
    name = unique("Counting")
    p = Program(name, ["v: resource", "x: float"], [], ["o: float"], stateful=True)
    p.call("AssignAddVariableOp", resource="v", value="x")
    p.returns(o="x")
    digest = p.register()
    v = tf.Variable(0.0)

    @tf.function
    def twice(x: Any) -> Any:
        for _ in range(2):  # the outputs are unused, the updates are not
            k.call(
                name,
                {"v": v.handle, "x": x},
                _composite_program=digest,
                _composite_backend="tf",
            )
        return v.read_value()

    assert twice(tf.constant(2.0)) == 4.0 and v.numpy() == 4.0
    assert name not in graph_ops(twice, tf.constant(1.0))


def test_wrong_shapes_at_run_time_name_the_place(unique: Unique) -> None:
    """Shapes that tracing could not see: the error names a node, and so the author's line."""
    op = Op(unique("RunTime"), _composite_backend="tf")
    x, w, b = inputs()
    run = tf.function(op, input_signature=[tf.TensorSpec(None)] * 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"ops\.py:\d+:5") as e:
        run(x[:, :3], w, b)
    assert "Matrix size-incompatible" in str(e.value)


def test_a_damaged_function_of_the_library_ends_nothing(unique: Unique) -> None:
    """Identities that come to themselves in front of a composite: TensorFlow says what it finds."""
    op = Op(unique("Damaged"), _composite_backend="tf")
    specs = [tf.TensorSpec([4, 4])] * 2 + [tf.TensorSpec([4])]
    whole = tf.function(lambda x, w, b: op(tf.identity(x), tf.identity(w), b))
    function = whole.get_concrete_function(*specs).function_def
    function.signature.name = unique("damaged")
    first, second = [node for node in function.node_def if node.op == "Identity"][:2]
    first.input[:] = [f"{second.name}:output:0"]
    second.input[:] = [f"{first.name}:output:0"]
    context.context().add_function_def(function)

    @tf.function
    def caller(*given: Any) -> Any:
        target = tf.compat.v1.NameAttrList(name=function.signature.name)
        return tf.raw_ops.PartitionedCall(args=given, Tout=[tf.float32], f=target)[0]

    with pytest.raises(tf.errors.InvalidArgumentError, match="cycle"):
        caller(*inputs())
