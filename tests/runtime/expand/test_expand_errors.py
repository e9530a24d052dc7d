"""What an expansion says is wrong, and where: of programs built by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from composite.binding import native
from tests.runtime.programs import Program, expand, give, run_expansion, sum_of_rows

Unique = Callable[[str], str]


def condition(p: Program) -> str:
    then, orelse = p.region("then_0", ["x"], 1), p.region("else_0", ["x"], 1)
    give(then, "x")
    give(orelse, "x")
    (result,) = p.branch(p.compare("gt", "x", 0), ["x"], "then_0", "else_0", 1)
    return str(result)


# Bodies of inputs x: float, i: int32 and attribute k: int, and what their errors say.
CASES: dict[str, tuple[Callable[[Program], str], str]] = {
    "dtypes": (
        lambda p: p.call("AddV2", x="x", y="i"),
        r"AddV2: input 'y' has T = int32, but input 'x' has T = float",
    ),
    "literal": (lambda p: p.binary("mul", "i", 0.5), r"0\.5 cannot become an int32 tensor"),
    "rank": (lambda p: p.call("MatMul", a="x", b="x"), r"must be rank 2"),
    "unknown argument": (lambda p: p.call("Relu", features="x", y=1), "no argument 'y'"),
    "missing argument": (lambda p: p.call("AddV2", x="x"), "AddV2: needs 'y'"),
    "missing attribute": (lambda p: p.call("Cast", x="x"), "attribute 'DstT' has no default"),
    "attribute value": (
        lambda p: p.call("MatMul", a="x", b="x", transpose_a=p.const("yes")),
        "'transpose_a' wants bool, got 'yes'",
    ),
    "output type": (
        lambda p: "i",
        "declared as float, but the body returns an int32",
    ),
    "none": (lambda p: p.const(None), "output 'o': None cannot become"),
    "division": (lambda p: p.binary("floordiv", "k", 0), "division by zero"),
    "overflow": (lambda p: p.binary("mul", "k", 2**62), "does not fit 64 bits"),
    "operand types": (
        lambda p: p.binary("add", "k", p.const("a")),
        r"unsupported operand types for \+: int and str",
    ),
    "condition": (condition, "element by element with tf.where"),
    "index": (lambda p: p.item(p.list("x", "x"), 2), "index 2 is out of range for 2 items"),
    "ragged": (
        lambda p: p.call("AddV2", x="x", y=p.list(p.list(1, 2), p.list(1))),
        "lists of unequal lengths",
    ),
    "tensor as attribute": (
        lambda p: p.call("Split", split_dim=0, value="x", num_split=p.binary("add", "i", 1)),
        "the result of AddV2 is a tensor, known only when the op runs",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_errors_say_what_and_where(unique: Unique, case: str) -> None:
    body, text = CASES[case]
    op = unique("Wrong")
    p = Program(op, ["x: float", "i: int32"], ["k: int"], ["o: float"])
    p.returns(o=body(p))
    p.register()
    with pytest.raises(tf.errors.OpError, match=text) as e:
        expand(op, [(3,), ()], k=4)
    assert "ops.py:" in str(e.value)


def test_a_damaged_number_of_outputs_allocates_nothing(unique: Unique) -> None:
    op = unique("Many")
    p = Program(op, ["x: float"], ["N: int"], ["o: N * float"])
    p.returns(o=p.list("x"))
    p.register()
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"output 'o': N is {1 << 40}") as e:
        expand(op, [(3,)], N=1 << 40)
    assert "ops.py:" in str(e.value)


def test_an_unknown_dim_divided_by_zero(unique: Unique) -> None:
    op = unique("Zero")
    p = Program(op, ["x: float"], ["k: int"], ["o: float"])
    p.returns(o=p.binary("mul", "x", p.binary("truediv", p.dim("x", 0), "k")))
    p.register()
    expand(op, [(None,)], k=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero") as e:
        expand(op, [(None,)], k=0)
    assert "ops.py:" in str(e.value)


def test_not_yet_names_the_fact(unique: Unique) -> None:
    op = unique("Rows")
    sum_of_rows(op).register()
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"dim 0 of input 'x'") as e:
        expand(op, [(None, 2)])
    assert "ops.py:" in str(e.value) and "not yet" in str(e.value)
    assert native.is_not_yet(e.value)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(run_expansion(expand(op, [(3, 2)]), x)[0], [[6, 9]])


def test_an_error_inside_names_both_places(unique: Unique) -> None:
    inner, outer = unique("Inner"), unique("Outer")
    p = Program(inner, ["x: float"], ["k: int"], ["o: float"])
    then, orelse = p.region("then_0", ["x", "k"], 1), p.region("else_0", ["x", "k"], 1)
    give(then, "x")
    orelse.raises("ValueError", orelse.const("k must not be "), "k")
    give(orelse, "x")
    (result,) = p.branch(p.compare("gt", "k", 0), ["x", "k"], "then_0", "else_0", 1)
    p.returns(o=result)
    digest = p.register()
    q = Program(outer, ["x: float"], [], ["o: float"])
    q.returns(o=q.call(inner, digest, x="x", k=-3))
    q.register()
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        expand(outer)
    assert "ValueError: k must not be -3" in str(e.value)
    assert f"{inner} is called at ops.py:" in str(e.value)


def test_depth_is_bounded(unique: Unique) -> None:
    base = unique("Level")
    digest, previous = "", ""
    for level in range(66):
        op = f"{base}L{level}"
        p = Program(op, ["x: float"], [], ["o: float"])
        p.returns(o=p.call(previous, digest, x="x") if previous else p.call("Relu", features="x"))
        digest, previous = p.register(), op
    with pytest.raises(tf.errors.ResourceExhaustedError, match="nested deeper than 64"):
        expand(previous)


def test_endless_sharing_is_bounded(unique: Unique) -> None:
    """Forty regions that each enter the next twice would run for days."""
    op = unique("Wide")
    p = Program(op, ["x: float"], [], ["o: float"])
    for level in range(40):
        region = p.region(f"rest_{level}", ["v"], 1)
        if level == 39:
            give(region, "v")
            continue
        (a,) = region.apply(f"rest_{level + 1}", ["v"], 1)
        (b,) = region.apply(f"rest_{level + 1}", [a], 1)
        give(region, b)
    p.returns(o=p.apply("rest_0", ["x"], 1)[0])
    p.register()
    with pytest.raises(tf.errors.ResourceExhaustedError, match="steps"):
        expand(op)
