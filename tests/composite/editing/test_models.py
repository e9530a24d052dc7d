"""`composite.replace` of graphs and of the folders of SavedModels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Match
from composite.saving import saved_model
from tests.composite.editing.edited_ops import scaled_tanh

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
FLOATS = tf.TensorSpec([None, 4], tf.float32, name="x")


def run(graph_def: Any, fetches: Any, feeds: Any) -> Any:
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        tf.graph_util.import_graph_def(graph_def, name="")
        return session.run(fetches, feeds)


def test_names_and_control_edges_of_a_graph() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
        with tf.control_dependencies([tf.debugging.Assert(x[0] < 9.0, [x], name="check")]):
            y = tf.tanh(x, name="y")
        z = tf.multiply(y, 2.0, name="z")
        with tf.control_dependencies([y.op, z.op]):
            tf.negative(x, name="w")
    original = graph.as_graph_def()
    edited = composite.replace(
        original, lambda x: tf.tanh(x) * 2.0, lambda x: tf.sin(x) + tf.cos(x)
    )
    assert original == graph.as_graph_def()
    nodes = {node.name: node for node in edited.graph_def.node}
    assert "y" not in nodes
    assert nodes["z"].op == "AddV2"
    assert "^check/Assert/AssertGuard/Merge" in " ".join(nodes["z"].input) or any(
        name.startswith("^check") for name in nodes["z"].input
    )
    assert sorted(nodes["w"].input) == ["^z", "x"]
    found = run(edited.graph_def, ["z:0", "w:0"], {"x:0": [1.0, 2.0]})
    np.testing.assert_allclose(found[0], np.sin([1, 2]) + np.cos([1, 2]), rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(edited.graph_def, "z:0", {"x:0": [10.0, 2.0]})


def test_what_must_stay() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
        tf.multiply(tf.tanh(x, name="taken"), 2.0, name="one")
        tf.negative(graph.get_tensor_by_name("taken:0"), name="too")
        with tf.device("CPU:0"):
            y = tf.tanh(x, name="placed")
        with tf.device("CPU:1"):
            tf.multiply(y, 2.0, name="elsewhere")
        a = tf.sin(x, name="sin")
        tf.cos(tf.tanh(a, name="between"), name="cos")
    edited = composite.replace(graph.as_graph_def(), lambda x: tf.tanh(x) * 2.0, tf.identity)
    assert edited.report.replaced == ()
    assert {near.node: near.reason for near in edited.report.near_misses} == {
        "one": "taken, an inner value of the pattern, is taken by too too",
        "elsewhere": "its nodes are on /device:CPU:0 and on /device:CPU:1",
    }

    def both(x: Any, y: Any) -> Any:
        return tf.sin(x), tf.cos(y)

    edited = composite.replace(graph.as_graph_def(), both, lambda x, y: (x, y))
    (near,) = edited.report.near_misses
    assert near.reason == "an input, between, follows from a result: it would be a cycle"
    assert edited.graph_def == graph.as_graph_def()


def test_a_pattern_with_two_results() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
        s = tf.sin(tf.exp(x), name="s")
        c = tf.cos(graph.get_tensor_by_name("Exp:0"), name="c")
        tf.add(s, c, name="sum")

    def both(x: Any) -> Any:
        y = tf.exp(x)
        return {"sin": tf.sin(y), "cos": tf.cos(y)}

    edited = composite.replace(graph.as_graph_def(), both, lambda x: (x + x, x * x))
    found = run(edited.graph_def, ["s:0", "c:0", "sum:0"], {"x:0": [1.0, 3.0]})
    np.testing.assert_allclose(found, [[1.0, 9.0], [2.0, 6.0], [3.0, 15.0]])
    assert "Exp" not in {node.name for node in edited.graph_def.node}


def test_outputs_and_lists_of_one_node() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [4], name="x")
        tf.add_n(tf.split(x, 2, name="parts"), name="sum")
        tf.nn.top_k(x, 2, name="best")
    graph_def = graph.as_graph_def()
    halves = composite.replace(graph_def, "Split", lambda axis, x, num_split: (x[:2], x[2:]))
    halves = composite.replace(halves.graph_def, "AddN", lambda inputs: inputs[0] - inputs[1])
    nodes = {node.name: node for node in halves.graph_def.node}
    assert nodes["sum"].op == "Sub"

    def second(x: Any) -> Any:
        return tf.nn.top_k(x, 2).indices

    def both(x: Any) -> Any:
        return tf.nn.top_k(x, 2)[::-1]

    (near,) = composite.replace(graph_def, second, tf.identity).report.near_misses
    assert near.reason.startswith("not all of the first outputs of best")
    least = composite.replace(halves.graph_def, both, lambda x: (tf.argsort(x)[:2], tf.sort(x)[:2]))
    fetches = ["sum:0", "parts:1", "best:0", "best:1"]
    found = run(least.graph_def, fetches, {"x:0": [4.0, 1.0, 2.0, 3.0]})
    assert [list(one) for one in found] == [[2.0, -2.0], [2.0, 3.0], [1.0, 2.0], [1, 2]]


def test_a_loop_of_nodes() -> None:
    tf.compat.v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            x = tf.compat.v1.placeholder(tf.float32, [], name="x")
            y = tf.while_loop(lambda y: y < 10.0, lambda y: [tf.exp(y) + 1.0], [x])
            y = tf.cond(x > 1.0, lambda: tf.exp(y[0]), lambda: y[0])
            tf.identity(y, name="y")
    finally:
        tf.compat.v1.enable_control_flow_v2()
    edited = composite.replace(graph.as_graph_def(), "Exp", lambda x: x * tf.constant(3.0))
    assert len(edited.report.replaced) == 2
    assert run(edited.graph_def, "y:0", {"x:0": 1.0}) == 13.0
    assert run(edited.graph_def, "y:0", {"x:0": 2.0}) == 3 * 22.0


class Model(tf.Module):
    """A weight, a table that is read from an asset, and two signatures."""

    def __init__(self, words: Path) -> None:
        super().__init__()
        self.weight = tf.Variable(np.eye(4, dtype=np.float32))
        file = tf.lookup.TextFileInitializer(
            str(words), tf.string, 0, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )
        self.table = tf.lookup.StaticHashTable(file, -1)

    @tf.function(input_signature=[FLOATS])
    def serve(self, x: Any) -> dict[str, Any]:
        for _ in tf.range(2):
            x = tf.tanh(tf.matmul(x, self.weight)) * 0.5
        return {"y": x}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def lookup(self, text: Any) -> dict[str, Any]:
        return {"n": self.table.lookup(text)}


def test_a_saved_model(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("zero\none\n", encoding="utf-8")
    model, folder, out = Model(tmp_path / "words.txt"), tmp_path / "model", tmp_path / "out"
    signatures = {"serving_default": model.serve, "lookup": model.lookup}
    tf.saved_model.save(model, str(folder), signatures)
    before = (folder / "saved_model.pb").read_bytes()
    match = Match(
        pattern=lambda x, w: tf.tanh(x @ w) * 0.5,
        inputs=[tf.TensorSpec([None, None]), tf.TensorSpec([4, 4])],
    )
    report = composite.replace(folder, match, lambda x, w: scaled_tanh(x @ w, scale=0.5), out=out)
    assert len(report.replaced) == 1
    assert report.replaced[0].ops == ("Mul", "Tanh", "MatMul")
    assert (folder / "saved_model.pb").read_bytes() == before
    (needed,) = saved_model.composites(saved_model.read(out))
    assert needed == "EditedTanh"
    wanted, found = model, composite.load_model(out)
    assert sorted(found.signatures) == ["lookup", "serving_default"]
    np.testing.assert_allclose(
        found.signatures["serving_default"](x=X)["y"], wanted.serve(X)["y"], rtol=1e-6
    )
    assert list(found.lookup(tf.constant(["one", "two"]))["n"]) == [1, -1]
    found.weight.assign(tf.zeros([4, 4]))
    assert not np.any(found.serve(X)["y"])
    with pytest.raises(TypeError, match="needs out="):
        composite.replace(folder, "Tanh", tf.identity)
    with pytest.raises(FileNotFoundError, match="no SavedModel"):
        composite.replace(tmp_path, "Tanh", tf.identity, out=out)
