"""A model that differs, made as small as it still does: `shrink.py --seed 7`, or `--models FILE`.

Outputs are left out or are values that they are computed from, and nodes become placeholders, as
long as something differs. Prints what is left of the model, node by node.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef

import composite  # noqa: F401 - before TensorFlow
from tests.foreign.nnsmith.counts import Counts
from tests.foreign.nnsmith.model import Model, read
from tests.foreign.nnsmith.run import run
from tests.unmeasured import kernels_serve


def main() -> None:
    """Shrinks the model of a seed, or the first of a file."""
    parser = argparse.ArgumentParser(prog="python -m tests.foreign.nnsmith.shrink")
    parser.add_argument("--seed", type=int, help="of a model that NNSmith generates")
    parser.add_argument("--models", type=Path, help="a file of models, instead of a seed")
    chosen = parser.parse_args()
    if chosen.models is not None:
        line = chosen.models.read_text("utf-8").splitlines()[0]
    else:
        from tests.foreign.nnsmith.generated import generated

        (line,) = generated(chosen.seed, 1)
    with kernels_serve():
        model = shrunk(read(line))
        print(run(model, Counts()))
    for node in model.graph.node:
        print(_told(node))
    print("returns", *model.outputs)


def shrunk(model: Model) -> Model:
    """The smallest model found that still differs."""
    differs = True
    while differs:
        differs = False
        for smaller in _smaller(model):
            if run(smaller, Counts()):
                model, differs = smaller, True
                break
    return model


def _smaller(model: Model) -> Iterator[Model]:
    """Models with less in them, those with the least first."""
    if len(model.outputs) > 1:
        yield from (_pruned(replace(model, outputs=(one,))) for one in model.outputs)
        for left_out in model.outputs:
            others = tuple(one for one in model.outputs if one != left_out)
            yield _pruned(replace(model, outputs=others))
    nodes = {node.name: node for node in model.graph.node}
    for place, output in enumerate(model.outputs):
        for given in nodes[output.partition(":")[0]].input:
            earlier = given if ":" in given else f"{given}:0"
            others = (*model.outputs[:place], earlier, *model.outputs[place + 1 :])
            yield _pruned(replace(model, outputs=others))
    with tf.Graph().as_default() as graph:
        tf.graph_util.import_graph_def(model.graph, name="")
    for node in reversed(model.graph.node):
        tensors = graph.get_operation_by_name(node.name).outputs
        if node.op not in {"Placeholder", "Const"} and len(tensors) == 1:
            yield _pruned(replace(model, graph=_cut(model.graph, node.name, tensors[0])))


def _cut(graph: Any, name: str, tensor: Any) -> Any:
    """A graph in which a node is a placeholder."""
    made = GraphDef()
    made.CopyFrom(graph)
    (node,) = (one for one in made.node if one.name == name)
    node.op = "Placeholder"
    del node.input[:]
    node.attr.clear()
    node.attr["dtype"].type = tensor.dtype.as_datatype_enum
    node.attr["shape"].shape.CopyFrom(tensor.shape.as_proto())
    return made


def _pruned(model: Model) -> Model:
    """Without what no output needs."""
    nodes = {node.name: node for node in model.graph.node}
    needed: set[str] = set()
    pending = [name.partition(":")[0] for name in model.outputs]
    while pending:
        name = pending.pop().partition(":")[0]
        if name not in needed:
            needed.add(name)
            pending += nodes[name].input
    graph = GraphDef(versions=model.graph.versions)
    graph.node.extend(node for node in model.graph.node if node.name in needed)
    return replace(model, graph=graph, weights=tuple(x for x in model.weights if x in needed))


def _told(node: Any) -> str:
    dtypes = [tf.as_dtype(one.type).name for one in node.attr.values() if one.type]
    value = node.attr["value"].tensor if node.op == "Const" else None
    told = "" if value is None else f" = {tf.make_ndarray(value).tolist()}"[:200]
    sizes = [dim.size for dim in node.attr["shape"].shape.dim] if node.op == "Placeholder" else ""
    return f"{node.name} = {node.op}({', '.join(node.input)}) {dtypes} {sizes}{told}"


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    main()
    sys.exit()
