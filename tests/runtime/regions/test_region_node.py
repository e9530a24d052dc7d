"""Composites inside of regions: which may join, what a region keeps of them, and their refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.binding import settings as options
from tests.runtime import kernel_support as k
from tests.runtime.programs import Program
from tests.runtime.regions.test_form_regions import assert_close, with_regions
from tests.runtime.regions.test_partition import ops, regions
from tests.runtime.regions.test_refused_nodes import refuse

Unique = Callable[[str], str]
Body = Callable[[Any], Any]


def scaled(op: str, factor: float = 2.0, inner: str = "Tanh") -> str:
    """An op, registered: inner(x) * factor. Its digest."""
    p = Program(op, ["x: T"], ["T: {float, double}"], ["o: T"])
    p.returns(o=p.binary("mul", p.call(inner, x="x"), factor))
    return p.register()


def node(op: str, digest: str, **attrs: Any) -> Body:
    """Adds a node of the op, as a call of it does."""
    stamps = {"_composite_program": digest, **attrs}
    return lambda x: k.call(op, {"x": x}, **stamps)


def around(middle: Body) -> Body:
    return lambda x: tf.exp(middle(x * 0.5)) + 1.0


def test_a_composite_joins_the_nodes_around_it(unique: Unique) -> None:
    op = unique("Inside")
    body = around(node(op, scaled(op)))
    rewritten, found = regions(body)
    (region,) = found.values()
    assert ops(region)[op] == 1
    assert ops(region)["Exp"] == 1
    assert ops(rewritten)[op] == 0
    x = tf.constant([[0.5, -1.0]])
    results, count = with_regions(body, x)
    assert count == 1
    assert_close(results, [np.exp(2 * np.tanh(0.5 * x.numpy())) + 1.0])


def test_a_region_is_named_by_the_body_too(unique: Unique) -> None:
    op = unique("Body")
    names: list[str] = []
    for factor in (2.0, 3.0):
        _, found = regions(around(node(op, scaled(op, factor))))
        names += found
    assert len(set(names)) == 2


def test_two_composites_are_a_region_and_one_is_none(unique: Unique) -> None:
    op = unique("Pair")
    call = node(op, scaled(op))
    assert len(regions(lambda x: call(call(x)))[1]) == 1
    assert regions(call)[1] == {}


def test_which_composites_stay_outside(unique: Unique) -> None:
    op, without = unique("Outside"), unique("Lgamma")
    digest = scaled(op)
    for middle in (
        node(without, scaled(without, inner="Lgamma")),  # no kernel has it
        node(op, digest, _composite_backend="tvm"),  # must have a kernel of its own
        node(op, digest, _composite_numerics="strict"),
        node(op, "0" * 64),  # another body, which is not here
    ):
        rewritten, _ = regions(around(middle))
        assert ops(rewritten)[without] + ops(rewritten)[op] == 1


@pytest.mark.parametrize("wanted", [{"backend": "tf"}, {"numerics": "strict"}])
def test_inside_a_composite_wants_what_its_region_does(
    unique: Unique, wanted: dict[str, Any]
) -> None:
    op = unique("Wants")
    ((name, value),) = wanted.items()
    attr = f"_composite_{name}"
    body = around(node(op, scaled(op), **{attr: value}))
    with options.options(**wanted):
        (region,) = regions(body)[1].values()
    (inside,) = (one for one in region.node_def if one.op == op)
    assert inside.attr[attr].s.decode() == value


def test_a_body_that_is_refused_leaves_the_composite_outside(unique: Unique) -> None:
    op = unique("Refused")
    body = around(node(op, scaled(op)))
    ((name, function),) = regions(body)[1].items()
    (inside,) = (one.name for one in function.node_def if one.op == op)
    refuse(name, f"{inside}/Tanh")
    rewritten, found = regions(body)
    assert ops(rewritten)[op] == 1
    assert not any(ops(one)[op] for one in found.values())
    results, _ = with_regions(body, tf.ones([2]))
    assert_close(results, [np.exp(2 * np.tanh([0.5, 0.5])) + 1.0])


def test_a_node_whose_value_is_asked_for_stays_outside(unique: Unique) -> None:
    op = unique("Axis")
    p = Program(op, ["x: float", "axis: int32"], [], ["o: float"])
    p.returns(o=p.binary("mul", p.call("Tanh", x="x"), 2.0))
    digest = p.register()

    def body(x: Any) -> Any:
        y = k.call(op, {"x": tf.exp(x), "axis": tf.constant(0)}, _composite_program=digest)
        return tf.sin(y) * 2.0

    assert ops(regions(body)[0])[op] == 1
