"""A program as an ONNX model, which ONNX Runtime and OpenVINO both take.

Each layer is the one operator that ONNX has for it, where it has one. Images are NCHW and filters
OIHW there; recurrent layers take [time, batch, features], the one layout that ONNX Runtime has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.works.layers import LAYER_NORM_EPSILON, RMS_NORM_EPSILON, Array, Shape
from benchmarks.works.recurrent import gates_as_rows
from benchmarks.works.work import Program

OPSET = 23
_IR_VERSION = 10
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (0, 1, 2)}  # i, o, f, c and z, r, h

Nodes = Callable[..., list[Any]]


def feeds(program: Program) -> dict[str, Array]:
    """The arrays that the model takes, by name."""
    arrays = {"x": to_onnx(program, program.x)}
    if not program.constant:
        arrays |= _weights(program)
    return arrays


def to_onnx(program: Program, array: Array) -> Array:
    """What goes in or comes out, in ONNX's layout."""
    if program.kind == "conv 3x3":
        array = array.transpose(0, 3, 1, 2)
    elif program.kind in _GATES:
        array = array.transpose(1, 0, 2)
    return np.ascontiguousarray(array)


def from_onnx(program: Program, result: Array) -> Array:
    """A model's output in the layout of the program."""
    if program.kind in _GATES:
        return result[:, 0].transpose(1, 0, 2)
    return result.transpose(0, 2, 3, 1) if program.kind == "conv 3x3" else result


def model(program: Program) -> bytes:
    """The model, serialized: inputs are those of `feeds`, the output is "y"."""
    nodes: list[Any] = []
    value = "x"
    for number, step in enumerate(program.steps):
        last = number == len(program.steps) - 1
        made = "y" if last else f"y{number}"
        nodes += _NODES[program.kind](value, made, [f"w{i}" for i in step], program)
        value = made
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape)
        for name, array in feeds(program).items()
    ]
    constants = [
        numpy_helper.from_array(array, name)
        for name, array in (_weights(program) if program.constant else {}).items()
    ]
    constants.append(numpy_helper.from_array(np.float32(program.x.shape[-1] ** -0.5), "scale"))
    constants.append(numpy_helper.from_array(np.array([1], np.int64), "directions"))
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, _output_shape(program))
    graph = helper.make_graph(nodes, program.kind.replace(" ", "_"), inputs, [output], constants)
    made_model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR_VERSION
    )
    onnx.checker.check_model(made_model)
    return bytes(made_model.SerializeToString())


def _weights(program: Program) -> dict[str, Array]:
    arrays = program.weights
    if program.kind == "conv 3x3":
        arrays = [w.transpose(3, 2, 0, 1) if w.ndim == 4 else w for w in arrays]
    elif program.kind in _GATES:  # one direction, whose biases are one row
        arrays = gates_as_rows(arrays, _GATES[program.kind])
        arrays = [w.reshape(1, *((-1,) if w.shape[0] == 2 else w.shape)) for w in arrays]
    return {f"w{i}": np.ascontiguousarray(weight) for i, weight in enumerate(arrays)}


def _output_shape(program: Program) -> Shape:
    if program.kind in _GATES:
        batch, time, units = program.y
        return (time, 1, batch, units)
    return to_onnx(program, np.broadcast_to(np.float32(0), program.y)).shape


def _one(operator: str, **attributes: Any) -> Nodes:
    def nodes(x: str, y: str, weights: list[str], _program: Program) -> list[Any]:
        return [helper.make_node(operator, [x, *weights], [y], **attributes)]

    return nodes


def _relu_of(operator: str, **attributes: Any) -> Nodes:
    def nodes(x: str, y: str, weights: list[str], _program: Program) -> list[Any]:
        return [
            helper.make_node(operator, [x, *weights], [f"{y}_linear"], **attributes),
            helper.make_node("Relu", [f"{y}_linear"], [y]),
        ]

    return nodes


def _gated(x: str, y: str, weights: list[str], _program: Program) -> list[Any]:
    scale, offset = weights
    return [
        helper.make_node("Mul", [x, scale], [f"{y}_scaled"]),
        helper.make_node("Add", [f"{y}_scaled", offset], [f"{y}_moved"]),
        helper.make_node("Tanh", [f"{y}_moved"], [f"{y}_tanh"]),
        helper.make_node("Sigmoid", [x], [f"{y}_gate"]),
        helper.make_node("Mul", [f"{y}_tanh", f"{y}_gate"], [f"{y}_gated"]),
        helper.make_node("Add", [f"{y}_gated", x], [y]),
    ]


def _recurrent(operator: str, **attributes: Any) -> Nodes:
    def nodes(x: str, y: str, weights: list[str], program: Program) -> list[Any]:
        units = program.y[-1]
        if y == "y":  # the model hands out all directions, of which there is one
            return [helper.make_node(operator, [x, *weights], [y], hidden_size=units, **attributes)]
        states = f"{y}_states"
        return [
            helper.make_node(operator, [x, *weights], [states], hidden_size=units, **attributes),
            helper.make_node("Squeeze", [states, "directions"], [y]),
        ]

    return nodes


def _attention(x: str, y: str, weights: list[str], _program: Program) -> list[Any]:
    k, v = weights
    return [
        helper.make_node("Transpose", [k], [f"{y}_kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", [x, f"{y}_kt"], [f"{y}_scores"]),
        helper.make_node("Mul", [f"{y}_scores", "scale"], [f"{y}_scaled"]),
        helper.make_node("Softmax", [f"{y}_scaled"], [f"{y}_weights"], axis=-1),
        helper.make_node("MatMul", [f"{y}_weights", v], [y]),
    ]


_NODES: dict[str, Nodes] = {
    "dense": _relu_of("Gemm", transB=1),
    "matmul": _one("MatMul"),
    "softmax": _one("Softmax", axis=-1),
    "layer norm": _one("LayerNormalization", axis=-1, epsilon=LAYER_NORM_EPSILON),
    "RMS norm": _one("RMSNormalization", axis=-1, epsilon=RMS_NORM_EPSILON),
    "gated": _gated,
    "GELU": _one("Gelu", approximate="tanh"),
    "conv 3x3": _relu_of("Conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "attention": _attention,
    "LSTM": _recurrent("LSTM"),
    "GRU": _recurrent("GRU", linear_before_reset=1),
}
