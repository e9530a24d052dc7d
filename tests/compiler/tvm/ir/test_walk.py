"""Walks over graphs of tensors: each tensor once, in an order that the graph alone decides."""

from __future__ import annotations

from collections.abc import Mapping

from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Parameter, Reshape, Tensor
from composite.compiler.tvm.ir.walk import reachable, rewrite, topological, users

X, Y = (Tensor((4,), "float32", Parameter(i)) for i in range(2))


def op(name: str, *operands: Tensor) -> Tensor:
    return pointwise(name, lambda _, *values: values[0], operands, "float32")


def test_operands_come_before_what_reads_them() -> None:
    a = op("A", X, Y)
    b = op("B", a, X)
    assert topological([b, a]) == [X, Y, a, b]


def test_a_graph_deeper_than_pythons_stack() -> None:
    tensor = X
    for _ in range(5000):
        tensor = op("A", tensor)
    assert len(topological([tensor])) == 5001
    assert len(reachable([tensor], lambda t: t.node.operands)) == 5001
    assert len(rewrite([tensor], lambda t, _: Y if t is X else None)) == 5001


def test_a_walk_ends_where_nothing_is_below() -> None:
    a = op("A", X)
    b = op("B", a, Y)
    assert topological([b], lambda t: () if t is a else t.node.operands) == [a, Y, b]
    assert reachable([b], lambda t: () if t is a else t.node.operands) == [b, Y, a]


def test_users_count_each_time_a_tensor_is_read() -> None:
    a = op("A", X, X)
    b = op("B", a, X)
    assert users([a, b]) == {X: [a, a, b], a: [b]}


def test_what_a_rule_leaves_is_the_same_tensor() -> None:
    a, b = op("A", X), op("B", Y)
    both = op("C", a, b)
    assert rewrite([both], lambda *_: None)[both] is both

    def rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor | None:
        return op("Z", made[Y]) if tensor is b else None

    made = rewrite([both], rule)
    assert made[a] is a
    assert [t.node.title for t in made[both].node.operands] == ["A", "Z"]


def test_reshapes_of_what_was_replaced_are_one() -> None:
    flat = Tensor((2, 2), "float32", Reshape(X))
    read = op("A", flat)

    def rule(tensor: Tensor, _: Mapping[Tensor, Tensor]) -> Tensor | None:
        return Tensor((4,), "float32", Reshape(Tensor((2, 2), "float32", Parameter(2))))

    made = rewrite([read], lambda t, m: rule(t, m) if t is X else None)
    (operand,) = made[read].node.operands
    assert operand.shape == (2, 2)
    assert isinstance(operand.node, Parameter)


def test_operands_are_the_tensors_among_the_fields() -> None:
    a = op("A", X, Y)
    assert a.node.operands == (X, Y)
    assert Reshape(a).operands == (a,)
    assert X.node.operands == ()
    assert (X.node.cost, a.node.cost) == (0, 1)
