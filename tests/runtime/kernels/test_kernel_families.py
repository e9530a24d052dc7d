"""Ops whose attributes have any number of values: what is asked, kept and let go."""

from __future__ import annotations

import gc
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.core.framework.node_def_pb2 import NodeDef

from tests.runtime import kernel_support as k

pytestmark = pytest.mark.usefixtures("kernel_ops")

FREE, STEP, IDLE = 64, 16, 64  # request_budget.h, kernel_families.h


def scaled(op: str) -> Any:
    """relu(x), with attributes that may be anything."""
    return k.program(
        op,
        {
            "inputs": ["x: float"],
            "attrs": ["rate: float", "mode: int = 0"],
            "outputs": ["y: float"],
        },
        [k.call_node("0", "Relu", ["x"], ["features"])],
        {"y": "0"},
    )


@pytest.fixture
def op(unique: Callable[[str], str]) -> str:
    name = unique("RtFamilies")
    k.register(scaled(name))
    return name


def refuse(_: Any) -> tuple[str, str]:
    return "not_covered", "it is Sunday"


def call(op: str, rate: float, x: Any = None) -> Any:
    return k.call(op, {"x": tf.ones([2]) if x is None else x}, rate=rate, mode=0)


def rates_of(worker: k.Worker) -> list[float]:
    return [asked.attr["rate"].f for asked in worker.requests]


def test_values_that_do_not_come_again_are_asked_for_no_longer(op: str) -> None:
    with k.Worker(refuse) as worker:
        for i in range(1000):
            call(op, float(i))
            worker.wait()
    assert rates_of(worker) == [float(i) for i in range(FREE)]


def test_however_often_values_come_kernels_are_bounded(op: str) -> None:
    """Each of many values is used for a while, as a schedule does, and never again."""
    calls = 64
    with k.Worker(refuse) as worker:
        for i in range(400):
            for _ in range(calls):
                call(op, float(i))
        worker.wait()
    assert len(worker.requests) == FREE + STEP * 6  # log2(calls)


def test_a_value_that_is_used_often_has_its_kernel(op: str) -> None:
    with k.Worker(refuse) as worker:
        for i in range(FREE + 100):
            call(op, float(i))
            call(op, -1.5)
            worker.wait()
        for i in range(200):
            call(op, float(FREE + 100 + i))
            call(op, -2.5)
        worker.wait()
    assert -1.5 in rates_of(worker)
    assert -2.5 in rates_of(worker)
    assert len(worker.requests) < FREE + 2 * STEP


def test_explain_says_what_to_do(op: str) -> None:
    x = {"x": tf.ones([2])}
    with k.Worker(refuse) as worker:
        for i in range(FREE):
            assert "the first asks" in k.explain(op, x, rate=float(i), mode=0)["reason"]
            call(op, float(i))
            worker.wait()
        reason = k.explain(op, x, rate=-1.0, mode=0)["reason"]
        assert "64 were asked for" in reason
        assert "after 2 calls with these attributes" in reason
        assert "rate has had" in reason
        assert "declare it as an input" in reason
        assert "mode" not in reason
        call(op, -1.0)
        assert "the first asks" in k.explain(op, x, rate=-1.0, mode=0)["reason"]
        call(op, -1.0)
        worker.wait()
        assert "it is Sunday" in k.explain(op, x, rate=-1.0, mode=0)["reason"]


def test_must_is_served_however_many_there_were(op: str) -> None:
    with k.Worker(refuse) as worker:
        for i in range(FREE + 5):
            call(op, float(i))
            worker.wait()
        with k.options("tvm"), pytest.raises(tf.errors.FailedPreconditionError, match="Sunday"):
            call(op, -1.0)
    assert rates_of(worker)[-1] == -1.0


def test_ops_take_turns(op: str, unique: Callable[[str], str]) -> None:
    """An op that asks for much does not make another wait for all of it."""
    other = unique("RtFamiliesOther")
    k.register(scaled(other))
    k.request("composite_worker", k.node("", "", running=True))  # nobody takes requests yet
    taken = []
    try:
        for i in range(10):
            call(op, float(i))
        for i in range(3):
            call(other, float(i))
        while message := k.request("composite_next_request", k.node("", "", timeout_ms=0)):
            taken.append(NodeDef.FromString(message))
            done = k.node(taken[-1].name, "", status="failed", reason="")
            k.request("composite_finish", done)
    finally:
        k.request("composite_worker", k.node("", "", running=False))
    assert [asked.op for asked in taken] == [op, other] * 3 + [op] * 7
    assert [asked.attr["rate"].f for asked in taken if asked.op == op] == [
        float(i) for i in range(10)
    ]


def graph_call(op: str, rate: float) -> Any:
    return tf.function(lambda x: call(op, rate, x))


COPY_C = r"""
KERNEL(NAME) {
  for (int64_t i = 0; i < ARG(0)->shape[0]; ++i) FLOATS(1)[i] = FLOATS(0)[i];
  return 0;
}
"""


def test_kernels_that_no_node_holds_are_let_go(op: str, tmp_path: Path) -> None:
    """Functions come and go, each with a value of its own."""
    digest = k.digest_of(scaled(op))
    built = k.build(tmp_path, "k_copy", COPY_C)
    before = k.stats()["evicted"]
    values = 3 * IDLE

    def answer(asked: Any) -> tuple[str, str]:
        record = k.record("k_copy", op, digest, k.shapes_of(asked), ["2"], built)
        for attr in ("rate", "mode"):
            record.attr[attr].CopyFrom(asked.attr[attr])
        k.request("composite_install", record)
        return "kernel", "measured"

    kept = graph_call(op, 0.0)
    with k.Worker(answer) as worker:
        for i in range(values):
            function = kept if i == 0 else graph_call(op, float(i))
            with k.options("tvm", thread=False):
                function(tf.ones([2]))
            worker.wait()
            del function
            if i % IDLE == 0:  # a function is a cycle
                gc.collect()
        assert k.stats()["evicted"] - before >= values - 2 * IDLE - 1
        asked = len(worker.requests)
        launches = k.stats()["kernel_launches"]
        kept(tf.ones([2]))  # its node has held the kernel all the time
        assert k.stats()["kernel_launches"] == launches + 1
        assert len(worker.requests) == asked


def test_attributes_that_no_node_has_take_no_memory(op: str) -> None:
    request = k.node("", op, _in_shapes=[(2,)], rate=0.0, mode=0)

    def resident_after(values: range) -> float:
        for i in values:
            request.attr["rate"].f = float(i)
            k.request("composite_explain", request)
        return resident()

    before = resident_after(range(2_000))
    assert resident_after(range(2_000, 42_000)) - before < 20  # MB; a group alone is 1 kB and more


def resident() -> float:
    """MB that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6
