"""Functions that are known by a hash of what they compute: others are never taken for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding import native
from composite.ops import function_op

pytestmark = pytest.mark.usefixtures("kernel_ops")

v1 = tf.compat.v1
X = np.array([3.0, -5.0], np.float32)

FUNCTION = """
function {
  signature {
    name: "outer"
    input_arg { name: "x" type: DT_FLOAT }
    output_arg { name: "y" type: DT_FLOAT }
  }
  node_def {
    name: "more" op: "AddV2" input: "FIRST" input: "x"
    attr { key: "T" value { type: DT_FLOAT } }
  }
  ret { key: "y" value: "more:z:0" }
}
"""
INNER = FUNCTION.replace("outer", "inner").replace("FIRST", "x")
CALL = """
  node_def {
    name: "call" op: "PartitionedCall" input: "x"
    attr { key: "Tin" value { list { type: DT_FLOAT } } }
    attr { key: "Tout" value { list { type: DT_FLOAT } } }
    attr { key: "config" value { s: "" } }
    attr { key: "config_proto" value { s: "" } }
    attr { key: "executor_type" value { s: "" } }
    attr { key: "f" value { func { name: "inner" } } }
  }
  ret {"""
CALLING = FUNCTION.replace("FIRST", "call:output:0").replace("  ret {", CALL) + INNER
MORE = """
  node_def {
    name: "first" op: "AddV2" input: "x" input: "x"
    attr { key: "T" value { type: DT_FLOAT } }
  }
  ret {"""
PLAIN = FUNCTION.replace("FIRST", "first:z:0").replace("  ret {", MORE)


def tripling(stem: str, text: str = PLAIN) -> Any:
    """A function that adds an input three times, under its canonical name."""
    return function_op.canonical(text_format.Parse(text, FunctionDefLibrary()), stem)


def altered(library: Any) -> Any:
    """The same, names included, but that it gives the cube."""
    text = text_format.MessageToString(library)
    return text_format.Parse(text.replace('"AddV2"', '"Mul"'), FunctionDefLibrary())


def name_of(library: Any) -> str:
    return str(library.function[0].signature.name)


def graph_of(library: Any) -> Any:
    """A graph with one CompositeCall of function[0], from "x" to "y"."""
    graph = GraphDef(library=library)
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = tf.float32.as_datatype_enum
    node = graph.node.add(name="call", op=function_op.NAME, input=["x"])
    for key in ("Tin", "Tout"):
        node.attr[key].list.type.append(tf.float32.as_datatype_enum)
    node.attr["Tconstants"].list.SetInParent()
    node.attr["f"].func.name = name_of(library)
    node.attr["_composite_program"].s = name_of(library).encode()
    same = graph.node.add(name="y", op="Identity", input=["call"])
    same.attr["T"].type = tf.float32.as_datatype_enum
    return graph


def nested(graph: Any) -> Any:
    """That graph's call in a function that another node calls."""
    outside = GraphDef(library=graph.library, versions=graph.versions)
    outside.node.add().CopyFrom(graph.node[0])
    around = outside.library.function.add()
    around.signature.name = "around"
    around.signature.input_arg.add(name="x", type=tf.float32.as_datatype_enum)
    around.signature.output_arg.add(name="y", type=tf.float32.as_datatype_enum)
    around.node_def.add().CopyFrom(graph.node[1])
    around.ret["y"] = "call:output:0"
    call = outside.node.add(name="calls", op="PartitionedCall", input=["x"])
    for key in ("Tin", "Tout"):
        call.attr[key].list.type.append(tf.float32.as_datatype_enum)
    call.attr["f"].func.name = "around"
    same = outside.node.add(name="y", op="Identity", input=["calls"])
    same.attr["T"].type = tf.float32.as_datatype_enum
    return outside


def jitted(graph: Any) -> Any:
    outside = nested(graph)
    for node in outside.node:
        if node.name == "calls":
            node.attr["_XlaMustCompile"].b = True
    return outside


def run(graph_def: Any) -> Any:
    with tf.Graph().as_default():
        tf.graph_util.import_graph_def(graph_def, name="")
        with v1.Session() as session:
            for _ in range(2):
                y = session.run("y:0", {"x:0": X})
            return y


@pytest.mark.parametrize(
    "form", [lambda graph: graph, nested, jitted], ids=["node", "nested", "xla"]
)
@pytest.mark.parametrize("text", [PLAIN, CALLING], ids=["plain", "calling"])
@pytest.mark.parametrize("first", ["known", "altered"])
def test_an_altered_function_computes_what_it_says(
    unique: Callable[[str], str], form: Callable[[Any], Any], text: str, first: str
) -> None:
    library = tripling(unique("AlteredOne"), text)
    if first == "known":
        function_op.define(library)
    np.testing.assert_array_equal(run(form(graph_of(altered(library)))), X * X * X)
    np.testing.assert_array_equal(run(form(graph_of(library))), X + X + X)
    np.testing.assert_array_equal(run(form(graph_of(altered(library)))), X * X * X)


def test_two_altered_functions_of_one_name(unique: Callable[[str], str]) -> None:
    library = tripling(unique("AlteredTwo"))
    text = text_format.MessageToString(library).replace('"AddV2"', '"Sub"')
    negative = text_format.Parse(text, FunctionDefLibrary())
    np.testing.assert_array_equal(run(graph_of(altered(library))), X * X * X)
    np.testing.assert_array_equal(run(graph_of(negative)), X - X - X)


def test_a_function_that_is_not_what_its_name_says_is_not_registered(
    unique: Callable[[str], str],
) -> None:
    library = tripling(unique("AlteredThree"))
    message = f"the function {name_of(library)} is not what its name stands for"
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            native.call("composite_register_function", altered(library))
        native.call("composite_register_function", library)


SAVED = """
import sys
import tensorflow as tf
from tests.composite.dense_ops import dense

w, b = tf.Variable(tf.ones([4, 256])), tf.Variable(tf.ones([4]))

@tf.function(input_signature=[tf.TensorSpec([None, 256])])
def slope(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        for _ in range(2):
            y = tf.reduce_sum(dense(x, w, b, act="TANH")) + tf.reduce_sum(x)
    return {"slope": tape.gradient(y, x)}

model = tf.Module()
model.slope, model.w, model.b = slope, w, b
tf.saved_model.save(model, sys.argv[1], signatures={"slope": slope})
"""
SERVED = """
import sys
import numpy as np
import tensorflow as tf
import composite
import tests.composite.dense_ops

with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    meta = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1])
    calls = [n for f in meta.graph_def.library.function for n in f.node_def
             if n.op == "CompositeCall"]
    assert calls and all(n.attr["f"].func.name.startswith("__composite_") for n in calls)
    signature = meta.signature_def["slope"]
    fetch = signature.outputs["slope"].name
    feed = {next(iter(signature.inputs.values())).name: np.ones([3, 256], np.float32)}
    for _ in range(20):
        session.run(fetch, feed)
    composite.wait()
    session.run(fetch, feed)
"""


def test_a_saved_function_is_what_its_name_says(
    run_python: Callable[..., Any], tmp_path: Path
) -> None:
    """As TensorFlow writes it: without attributes that have their defaults, with shapes noted."""
    run_python(SAVED, str(tmp_path / "model"))
    served = run_python(SERVED, str(tmp_path / "model"))
    assert "is not what its name stands for" not in served.stderr
