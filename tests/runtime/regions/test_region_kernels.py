"""Each region asks for kernels of its own; a process with many of them has the compiler for all."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef

from composite.binding import settings as options
from tests.runtime import kernel_support as k

pytestmark = pytest.mark.usefixtures("covered")

# Of one op: request_budget.h. What waits: kernel_table.h.
FREE, QUEUE = 64, 1024
MANY = FREE + 40


@pytest.fixture(scope="module")
def covered() -> Iterator[None]:
    """Kernels may come for the ops of the regions here."""
    ops = ["AddV2", "Const", "Identity", "Mul", "Relu"]
    k.request("composite_set_kernel_ops", k.node("", "", ops=ops))
    yield
    k.request("composite_set_kernel_ops", k.node("", "", ops=[]))


def region(number: int) -> Any:
    """A function whose region no other number has."""
    return tf.function(lambda x: tf.nn.relu(x + float(number)) * 2.0, autograph=False)


def refuse(_: Any) -> tuple[str, str]:
    return "not_covered", "it is Sunday"


def functions_of(requests: list[NodeDef]) -> set[str]:
    return {asked.attr["f"].func.name for asked in requests}


def reasons() -> list[str]:
    reply = GraphDef.FromString(k.request("composite_region_counts", k.node("", "")))
    return [node.attr["why"].s.decode() for node in reply.node]


@pytest.fixture
def fresh_counts() -> Iterator[None]:
    k.request("composite_region_counts", k.node("", "", reset=True))
    yield
    k.request("composite_region_counts", k.node("", "", reset=True))


@pytest.fixture
def idle_worker() -> Iterator[None]:
    """A worker that takes no requests unless `take` asks for one."""
    k.request("composite_worker", k.node("", "", running=True))
    yield
    k.request("composite_worker", k.node("", "", running=False))


def take() -> NodeDef | None:
    message = k.request("composite_next_request", k.node("", "", timeout_ms=0))
    if not message:
        return None
    asked = NodeDef.FromString(message)
    if not asked.name:
        return None
    k.request("composite_finish", k.node(asked.name, "", status="failed", reason=""))
    return asked


def test_all_regions_get_kernels(fresh_counts: None) -> None:
    functions = [region(number) for number in range(MANY)]
    with k.Worker(refuse) as worker, options.options(regions=True):
        for _ in range(6):
            for function in functions:
                function(tf.ones([3]))
        worker.wait()
        for function in functions:
            function(tf.ones([3]))
    assert len(functions_of(worker.requests)) == MANY
    assert all("it is Sunday" in why for why in reasons())


def test_the_reason_of_what_waits_is_that_it_waits(fresh_counts: None, idle_worker: None) -> None:
    functions = [region(1000 + number) for number in range(MANY)]
    with options.options(regions=True):
        for function in functions:
            function(tf.ones([3]))
        assert all("which has asked for one" in why for why in reasons())
        for function in functions:
            function(tf.ones([3]))
        assert all("is being compiled" in why for why in reasons())


def chains(count: int) -> Any:
    """A function of so many regions, none of which is another's."""

    def body(x: Any) -> list[Any]:
        values = [tf.nn.relu(x + float(number)) * 3.0 for number in range(count)]
        return [tf.math.lgamma(value) for value in values]  # no kernel has it

    return tf.function(body, autograph=False)


@pytest.mark.slow
def test_what_finds_no_place_says_so_and_takes_that_of_one_that_is_gone(
    fresh_counts: None, idle_worker: None
) -> None:
    many, other = chains(QUEUE), region(7000)
    with options.options(regions=True):
        many(tf.ones([3]))
        other(tf.ones([3]))
        waiting = [why for why in reasons() if f"{QUEUE} others are waiting to be compiled" in why]
        assert len(waiting) == 1
        assert k.reply("composite_pending")["pending"] == QUEUE
        del many
        gc.collect()
        other(tf.ones([3]))
        other(tf.ones([3]))
    assert k.reply("composite_pending")["pending"] == QUEUE
    assert sum("is being compiled" in why for why in reasons()) == 1


def test_ones_that_are_gone_are_compiled_last(idle_worker: None) -> None:
    gone, kept = [region(6000 + number) for number in range(3)], region(6100)
    with options.options(regions=True):
        for function in gone:
            function(tf.ones([3]))
        kept(tf.ones([3]))
    name = kept_region(kept)
    del gone, function
    gc.collect()
    first = take()
    assert first is not None
    assert first.attr["f"].func.name == name
    assert [take() is not None for _ in range(4)] == [True, True, True, False]


def kept_region(function: Any) -> str:
    """The region of the function that was called last in this process."""
    reply = GraphDef.FromString(k.request("composite_region_counts", k.node("", "")))
    before = {node.name: node.attr["expansion"].i for node in reply.node}
    with options.options(regions=True):
        function(tf.ones([3]))
    reply = GraphDef.FromString(k.request("composite_region_counts", k.node("", "")))
    (name,) = (n.name for n in reply.node if n.attr["expansion"].i != before.get(n.name, 0))
    return name
