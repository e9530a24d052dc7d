"""What an op's body can contain, by kinds of functions: where not to look for it.

A kind is what several spellings share: "exp" is in Exp, Sigmoid and Softmax.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from composite.ops.op import CompositeOp
from composite.recognition.anchors import anchors
from composite.recognition.layouts import LAYOUTS
from composite.recognition.reading import COPIES, OF_SIZES

_KINDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(LAYOUTS, ()),
    **dict.fromkeys((*COPIES, *OF_SIZES), ()),
    **dict.fromkeys(("Add", "AddV2", "AddN", "BiasAdd", "Sub", "Mul", "RealDiv", "Neg"), ()),
    **dict.fromkeys(("Square", "SquaredDifference", "Sqrt", "Rsqrt", "Reciprocal", "Inv"), ()),
    **dict.fromkeys(("Pow", "Cast", "Select", "SelectV2", "ZerosLike", "OnesLike", "Const"), ()),
    **dict.fromkeys(("LogicalNot", "LogicalAnd", "LogicalOr"), ()),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), ()),
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), ("contract",)),
    "Einsum": ("contract",),
    **dict.fromkeys(("Exp", "Expm1", "Sigmoid"), ("exp",)),
    **dict.fromkeys(("Log", "Log1p"), ("log",)),
    "Softplus": ("exp", "log"),
    **dict.fromkeys(("Mean", "Sum"), ("mean",)),
    "Softmax": ("exp", "mean"),
    **dict.fromkeys(("LogSoftmax", "SoftmaxCrossEntropyWithLogits"), ("exp", "log", "mean")),
    **dict.fromkeys(("Relu", "LeakyRelu", "Maximum"), ("max",)),
    "Minimum": ("min",),
    **dict.fromkeys(("Relu6", "ClipByValue"), ("max", "min")),
    **dict.fromkeys(("Greater", "GreaterEqual", "Less", "LessEqual"), ("positive",)),
    "Elu": ("exp", "positive"),
    "Erfc": ("Erf",),
    "Softsign": ("Abs",),
}
# Kinds that other spellings of the same may have beside.
_BESIDE = {"exp": ("log", "Max"), "log": ("Max",)}
_OPERATORS = {"matmul": ("contract",), "floordiv": ("FloorDiv",), "mod": ("FloorMod",)}
_HEAVY = ("contract",)  # kinds that are rarely computed twice


def kinds(op: str) -> tuple[str, ...]:
    """The kinds of a TensorFlow op; its own name, where nothing is known of it."""
    return _KINDS.get(op, (op,))


def kinds_of_op(op: Any) -> tuple[str, ...]:
    """The kinds of a tf.Operation: an einsum that sums nothing is a product of elements."""
    if op.type == "Einsum":
        given, _, out = op.get_attr("equation").decode().partition("->")
        if set(given) - {",", " "} == set(out) - {" "}:
            return ()
    return kinds(op.type)


def kinds_of(ops: Iterable[str]) -> frozenset[str]:
    """The kinds of several ops."""
    return frozenset(kind for op in ops for kind in kinds(op))


@dataclass(frozen=True)
class Vocabulary:
    """What is in a body.

    Attributes:
        anchors: sets of kinds, of which one is in every expansion.
        most: how often a kind may be there; those that are not here may not.
        size: how many nodes an expression of it may have.
    """

    anchors: frozenset[frozenset[str]]
    most: Mapping[str, float]
    size: int

    def may_be_in(self, kinds: Iterable[str]) -> bool:
        """Whether the op may be computed by nodes of these kinds."""
        found = set(kinds)
        return any(one <= found for one in self.anchors)


def vocabulary(op: CompositeOp) -> Vocabulary:
    """The vocabulary of an op, read from its program."""
    programs = [op.program, *(callee.program for callee in op.callees())]
    nodes = [node for one in programs for f in one.function for node in f.node_def]
    found = Counter(kind for node in nodes for kind in _of_node(node))
    loops = any(node.op in ("tfr.while", "tfr.for") for node in nodes)
    most = {kind: _most(kind, n, loops=loops) for kind, n in found.items()}
    for kind in found:
        most |= {one: max(most.get(one, 0), 2) for one in _BESIDE.get(kind, ())}
    unsure = {"positive", "Equal", "max", "min", *(callee.op_name for callee in op.callees())}
    sets = anchors(op.program, _of_node)
    return Vocabulary(frozenset(one - unsure for one in sets), most, 3 * len(nodes) + 20)


def _most(kind: str, count: int, *, loops: bool) -> float:
    """How often a kind may be in an expression, where the body has it so often."""
    if kind in _HEAVY:
        return 2 * count + 1 if loops else count + 1
    return float("inf") if loops else 2 * count + 1


def _of_node(node: Any) -> tuple[str, ...]:
    """The kinds of a node of a program."""
    if node.op == "tfr.call":
        return kinds(node.attr["op"].s.decode())
    if node.op == "tfr.binary":
        return _OPERATORS.get(node.attr["operator"].s.decode(), ())
    if node.op == "tfr.compare":
        return ("positive", "Equal")
    return ("max", "min") if node.op == "tfr.builtin" else ()
