"""A generated model as it is stored: its graph, whose inputs and weights are placeholders."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef


@dataclass(frozen=True)
class Model:
    """A model.

    Attributes:
        seed: what it follows from.
        ops: NNSmith's names of its operators, each once.
        graph: its GraphDef; each input and each weight is a placeholder.
        weights: the names of the placeholders that are weights.
        outputs: the names of its outputs, "node:0".
    """

    seed: int
    ops: tuple[str, ...]
    graph: Any
    weights: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def placeholders(self) -> list[tf.TensorSpec]:
        """The inputs and the weights, in the order of the graph."""
        return [
            tf.TensorSpec(
                tf.TensorShape(node.attr["shape"].shape),
                tf.as_dtype(node.attr["dtype"].type),
                node.name,
            )
            for node in self.graph.node
            if node.op == "Placeholder"
        ]

    def inline(self, tensors: Mapping[str, Any]) -> list[Any]:
        """Its outputs in the current graph, where these tensors stand for its placeholders."""
        nodes = GraphDef(versions=self.graph.versions)
        nodes.node.extend(node for node in self.graph.node if node.name not in tensors)
        read = {name for node in nodes.node for name in node.input}
        outputs = [name for name in self.outputs if name.partition(":")[0] not in tensors]
        made = tf.graph_util.import_graph_def(
            nodes,
            input_map={f"{name}:0": tensor for name, tensor in tensors.items() if name in read},
            return_elements=outputs,
            name="",
        )
        by_name = dict(zip(outputs, made, strict=True))
        return [by_name.get(name, tensors.get(name.partition(":")[0])) for name in self.outputs]

    def line(self) -> str:
        """The model as a line of text."""
        told = {
            "seed": self.seed,
            "ops": self.ops,
            "weights": self.weights,
            "outputs": self.outputs,
            "graph": base64.b64encode(self.graph.SerializeToString(deterministic=True)).decode(),
        }
        return json.dumps(told)


def read(line: str) -> Model:
    """The model of a line."""
    told = json.loads(line)
    graph = GraphDef.FromString(base64.b64decode(told["graph"]))
    names = {name: tuple(told[name]) for name in ("ops", "weights", "outputs")}
    return Model(seed=told["seed"], graph=graph, **names)
