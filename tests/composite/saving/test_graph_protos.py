"""GraphDefs and MetaGraphDefs that are made portable, and run where nothing of ours is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

import composite
from composite.ops import functions
from composite.saving import graph_protos
from tests.composite.saving import saved_ops
from tests.conftest import RunPython

pytestmark = pytest.mark.usefixtures("expansions_only")
X = np.linspace(-2.0, 3.0, 12, dtype=np.float32).reshape(4, 3)

# Runs a frozen graph, a checkpoint with its `.meta` file and a dataset, and prints their numbers.
STOCK = """
import json, sys
from pathlib import Path

import numpy as np
import tensorflow as tf

folder, inputs, outputs = Path(sys.argv[1]), *map(json.loads, sys.argv[2:])
x = np.linspace(-2.0, 3.0, 12, dtype=np.float32).reshape(4, 3)
found = []
graph_def = tf.compat.v1.GraphDef.FromString((folder / "frozen.pb").read_bytes())
with tf.Graph().as_default():
    tf.graph_util.import_graph_def(graph_def, name="")
    with tf.compat.v1.Session() as session:
        found.append(session.run(outputs[0], {inputs[0]: x}))
with tf.Graph().as_default():
    saver = tf.compat.v1.train.import_meta_graph(str(folder / "saved.meta"))
    with tf.compat.v1.Session() as session:
        saver.restore(session, str(folder / "saved"))
        found.append(session.run("y:0", {"x:0": x}))
dataset = tf.raw_ops.DatasetFromGraph(graph_def=(folder / "dataset.pb").read_bytes())
found.append(tf.raw_ops.DatasetToSingleElement(
    dataset=dataset, output_types=[tf.float32], output_shapes=[[4, 3]])[0].numpy())
assert not any(name.startswith("composite") for name in sys.modules)
print(json.dumps([y.tolist() for y in found]))
"""


def frozen(folder: Path) -> tuple[str, str]:
    """A function with a variable, frozen: the names of its input and its output."""
    w = tf.Variable(np.eye(3, dtype=np.float32) * 0.5)
    traced = tf.function(lambda x: saved_ops.saved_dense(x, w)).get_concrete_function(
        tf.TensorSpec([4, 3])
    )
    constant = convert_variables_to_constants_v2(traced)
    graph_def = composite.to_portable(constant.graph.as_graph_def())
    (folder / "frozen.pb").write_bytes(graph_def.SerializeToString())
    return constant.inputs[0].name, constant.outputs[0].name


def checkpoint(folder: Path) -> None:
    """A graph of TensorFlow 1 with a variable: its `.meta` file is made portable."""
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [4, 3], name="x")
        w = tf.compat.v1.get_variable("w", initializer=np.eye(3, dtype=np.float32) * 0.5)
        tf.identity(saved_ops.saved_dense(x, w), name="y")
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            tf.compat.v1.train.Saver().save(session, str(folder / "saved"))
    meta = folder / "saved.meta"
    stock = composite.to_portable(MetaGraphDef.FromString(meta.read_bytes()))
    listed = {op.name for op in stock.meta_info_def.stripped_op_list.op}
    assert listed == {node.op for node in functions.nodes(stock.graph_def)}
    meta.write_bytes(stock.SerializeToString())


def dataset(folder: Path) -> None:
    """A dataset that calls an op for each of its elements."""
    made = tf.data.Dataset.from_tensor_slices(X).map(saved_ops.saved_scale).batch(4)
    graph_def = tf.raw_ops.DatasetToGraphV2(input_dataset=made._variant_tensor).numpy()
    stock = composite.to_portable(tf.compat.v1.GraphDef.FromString(graph_def))
    (folder / "dataset.pb").write_bytes(stock.SerializeToString())


def test_stock_tensorflow_runs_graphs_of_any_origin(tmp_path: Path, run_python: RunPython) -> None:
    given, returned = frozen(tmp_path)
    checkpoint(tmp_path)
    dataset(tmp_path)
    names = json.dumps([given]), json.dumps([returned])
    done = run_python(STOCK, str(tmp_path), *names)
    dense = np.maximum(X * 0.5, 0.0)
    for found, expected in zip(json.loads(done.stdout), (dense, dense, X * 2.0), strict=True):
        np.testing.assert_array_equal(np.float32(found), expected)


@pytest.mark.parametrize("given", [b"bytes", None, {"nodes": []}])
def test_something_else_is_an_error(given: Any) -> None:
    with pytest.raises(TypeError, match="a GraphDef or a MetaGraphDef is needed, not"):
        graph_protos.to_portable(given)
