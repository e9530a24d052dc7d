"""The nodes of a graph in stages: convex, in order, and as few as there are ways back."""

from __future__ import annotations

import random
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.hybrid.graph import Graph, graph_of
from composite.hybrid.stages import Stage, stages
from composite.ops import function_op
from composite.ops.function_op import REGION_PREFIX


def graph(edges: dict[str, list[str]], *, regions: str) -> Graph:
    """A function of unary nodes: what each reads, the first `ret` of them returned."""
    library = FunctionDefLibrary()
    function = library.function.add()
    function.signature.name = "staged"
    function.signature.input_arg.add(name="x", type=tf.float32.as_datatype_enum)
    names = {"x": "x"}
    for name, reads in edges.items():
        region = name in regions
        node = function.node_def.add(name=name, op=function_op.NAME if region else "AddN")
        node.input.extend(names[one] for one in reads)
        if region:
            node.attr["f"].func.name = f"{REGION_PREFIX}{name}"
            node.attr["Tin"].list.type.extend([1] * len(reads))
            node.attr["Tout"].list.type.append(1)
        else:
            node.attr["N"].i, node.attr["T"].type = len(reads), 1
        names[name] = f"{name}:{'output' if region else 'sum'}:0"
    for name in edges:
        function.signature.output_arg.add(name=f"out_{name}", type=1)
        function.ret[f"out_{name}"] = names[name]
    return graph_of(library, FunctionDefLibrary())


def told(found: list[Stage]) -> list[tuple[str, str]]:
    return [("".join(sorted(s.calls)), "".join(sorted(s.regions))) for s in found]


def test_neighbours_and_others_are_one_call() -> None:
    # a and b wait for nothing and are called together; d waits for the region R.
    found = stages(graph({"a": ["x"], "b": ["x"], "R": ["a"], "d": ["R", "b"]}, regions="R"))
    assert told(found) == [("ab", "R"), ("d", "")]
    assert told(stages(graph({"R": ["x"], "S": ["R"]}, regions="RS"))) == [("", "RS")]
    assert stages(graph({}, regions="")) == []


def test_random_graphs_are_in_order_and_convex() -> None:
    for seed in range(20):
        draw = random.Random(seed)
        letters = "abcdefghijklmn"
        edges: dict[str, list[str]] = {}
        for letter in letters:
            known: list[Any] = ["x", *edges]
            edges[letter] = draw.sample(known, min(len(known), draw.choice([1, 1, 2, 3])))
        regions = "".join(draw.sample(letters, 5))
        made = graph(edges, regions=regions)
        done: set[str] = {"x"}
        for stage in stages(made):
            for name in (*stage.calls, *stage.regions):
                assert set(edges[name]) <= done  # of a call, too: what it reads comes before
                done.add(name)
        assert done == {"x", *letters}


def test_copies_are_seen_through_and_awaited_nodes_are_kept() -> None:
    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def copied(x: Any) -> Any:
        tf.print(x)
        return tf.identity(tf.stop_gradient(x)), tf.constant("a"), tf.constant(1.0)

    concrete = copied.get_concrete_function()
    found = graph_of(FunctionDefLibrary(function=[concrete.function_def]), FunctionDefLibrary())
    assert found.outputs[0].node == found.inputs[0]
    assert {node.op for node in found.nodes.values()} >= {
        "PrintV2",
        "Const",
    }  # a string is no constant
    assert [node.attr["dtype"].type for node in found.constants.values()] == [1]
