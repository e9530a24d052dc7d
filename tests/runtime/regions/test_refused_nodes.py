"""Nodes without a lowering are cut out of the regions that had them, and of no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from tests.runtime import kernel_support as k
from tests.runtime.regions.test_partition import ops, regions


def refuse(function: str, node: str) -> None:
    """As the compiler's answer to a request that was withdrawn meanwhile does."""
    answer = k.node("no ticket", "", status="not_covered", reason="", function=function, node=node)
    with pytest.raises(tf.errors.NotFoundError):
        k.request("composite_finish", answer)


def refuse_each(body: Callable[..., Any], op: str) -> int:
    """Refuses the nodes of an op in the regions of a body; how many there were."""
    found = [
        (name, node.name)
        for name, function in regions(body)[1].items()
        for node in function.node_def
        if node.op == op
    ]
    for name, node in found:
        refuse(name, node)
    return len(found)


def test_a_refused_node_stays_outside() -> None:
    def body(x: Any) -> Any:
        y = tf.nn.softplus(tf.tanh(x) * 2.0)
        return tf.exp(y) * tf.sin(y)

    assert len(regions(body)[1]) == 1
    assert refuse_each(body, "Softplus") == 1
    rewritten, found = regions(body)
    assert len(found) == 2
    assert ops(rewritten)["Softplus"] == 1
    assert not any(ops(function)["Softplus"] for function in found.values())

    # What is left may have such a node, too.
    assert refuse_each(body, "Sin") == 1
    rewritten, found = regions(body)
    assert (ops(rewritten)["Softplus"], ops(rewritten)["Sin"], len(found)) == (1, 1, 2)


def test_other_regions_keep_theirs() -> None:
    assert refuse_each(lambda x: tf.nn.softplus(x) * 3.0, "Softplus") == 1
    (region,) = regions(lambda x: tf.nn.softplus(x) * 5.0)[1].values()
    assert ops(region)["Softplus"] == 1
    assert regions(lambda x: tf.nn.softplus(x) * 3.0)[1] == {}


def test_a_constant_that_was_refused_ends_it() -> None:
    assert refuse_each(lambda x: tf.nn.softplus(x) * 7.0, "Const") == 1
    (region,) = regions(lambda x: tf.nn.softplus(x) * 7.0)[1].values()
    assert ops(region)["Const"] == 1


def test_functions_that_are_no_regions() -> None:
    refuse("__composite_backward_0", "n0")
    assert len(regions(lambda x: tf.nn.softplus(x) * 9.0)[1]) == 1
