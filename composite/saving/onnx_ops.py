"""Ops that tf2onnx does not convert, in ONNX's operators: handlers for its `custom_op_handlers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _erfc(graph: Any, node: Any, name: str, _arguments: Any) -> None:
    """erfc(x) = 1 - erf(x), and erfc(-u * c) = 1 + erf(u / (1 / c)).

    The second is how TensorFlow writes GELU; runtimes look for GELU as a quotient.
    """
    dtype, shape = (of(node.output[0]) for of in (graph.get_dtype, graph.get_shape))
    one = _scalar(graph, f"{name}_one", 1.0, dtype)
    quotient = _negated_product(node)
    if quotient is None:
        erf = graph.make_node("Erf", list(node.input))
        operator, operands = "Sub", [one, erf.output[0]]
    else:
        u, c = quotient
        divided = graph.make_node("Div", [u, _scalar(graph, f"{name}_by", 1 / c, dtype)])
        erf = graph.make_node("Erf", list(divided.output))
        operator, operands = "Add", [erf.output[0], one]
    outputs = list(node.output)
    graph.remove_node(name)
    graph.make_node(operator, operands, outputs=outputs, name=name, shapes=[shape], dtypes=[dtype])


def _negated_product(node: Any) -> tuple[str, float] | None:
    """The u and c of an operand -u * c, where c is a constant scalar that is not 0."""
    product = node.inputs[0]
    if product is None or product.type != "Mul":
        return None
    negated, factor = product.inputs
    if negated is None or negated.type != "Neg" or factor is None or not factor.is_const():
        return None
    c = factor.get_tensor_value(as_list=False)
    return (negated.input[0], float(c)) if c.size == 1 and c else None


def _scalar(graph: Any, name: str, value: float, dtype: int) -> str:
    """The output of a constant."""
    from tf2onnx.utils import map_onnx_to_numpy_type

    made = np.array(value, map_onnx_to_numpy_type(dtype))
    return str(graph.make_const(name, made).output[0])


HANDLERS: dict[str, tuple[Callable[..., None], list[Any]]] = {"Erfc": (_erfc, [])}
