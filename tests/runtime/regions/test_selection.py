"""What stays outside of regions by its name: ops, nodes, whole regions, small ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef, FunctionDefLibrary

from composite.acceleration import comparing
from tests.runtime import kernel_support as k
from tests.runtime.regions.test_partition import FLOATS, ops, traced


def regions(body: Callable[..., Any], *denied: str) -> list[FunctionDef]:
    library = FunctionDefLibrary(function=[traced(body, [FLOATS]).function_def])
    library.function[0].attr["_composite_denied"].list.s.extend(x.encode() for x in denied)
    found = FunctionDefLibrary.FromString(k.request("composite_find_regions", library))
    return list(found.function)[1:]


def body(x: Any) -> Any:
    """Two regions, of three ops that compute and of two."""
    with tf.name_scope("head"):
        x = tf.tanh(tf.exp(x) * 2.0)
    x = tf.math.lgamma(tf.abs(x) + 1.0)
    with tf.name_scope("tail"):
        return tf.sin(x) * 3.0


def test_nodes_by_their_names() -> None:
    assert [ops(one)["Tanh"] for one in regions(body)] == [1, 0]
    assert [ops(one)["Exp"] for one in regions(body, "name:head/E*p")] == [0, 0]
    (tail,) = regions(body, "name:head/*", "Abs")
    assert ops(tail)["Sin"] == 1
    assert len(regions(body, "name:other/*", "name:head")) == 2


def test_a_region_by_the_end_of_its_name() -> None:
    first, second = regions(body)
    (left,) = regions(body, f"region:{first.signature.name[-8:]}")
    assert left == second
    assert len(regions(body, "region:", "region:00000000")) == 2


def test_a_node_of_a_region() -> None:
    first, second = regions(body)
    (sin,) = (node.name for node in second.node_def if node.op == "Sin")
    entry = f"node:{second.signature.name}:{sin}"
    assert regions(body, entry) == [first]  # one op alone is no region
    others = ("node:", "node:x", f"node:{second.signature.name}:no", f"node:other:{sin}")
    assert regions(body, *others) == [first, second]


def test_small_regions() -> None:
    sizes = [len(regions(body, f"smaller:{least}")) for least in (0, 2, 3, 5, 6)]
    assert sizes == [2, 2, 1, 1, 0]


@pytest.mark.parametrize(
    ("entry", "count"),
    [("Sin", 1), ("name:tail/*", 1), ("name:[a-h]*/E?p", 2), ("smaller:3", 1), ("smaller:6", 0)],
)
def test_names_of_functions_carry_entries(entry: str, count: int) -> None:
    """As `composite.accelerate` writes them into the names of saved functions."""

    def called(x: Any) -> Any:
        return body(x)

    called.__name__ = comparing.mark(["region:00000000", entry]) + "f"
    before = k.stats()["regions"]
    tf.function(called)(tf.ones([4, 4]))
    assert k.stats()["regions"] - before == count
