"""What an expansion and a registration cost. Best of many: other processes share the machine."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import tensorflow as tf

from tests.runtime import kernel_support as k
from tests.runtime.programs import Program
from tests.yardstick import slowness

pytestmark = pytest.mark.timed

Unique = Callable[[str], str]


def best(run: Callable[[int], object], times: int) -> float:
    """Milliseconds of the fastest call, at the speed that the bounds are stated for."""
    taken = []
    before = slowness()
    for i in range(times):
        start = time.perf_counter()
        run(i)
        taken.append(time.perf_counter() - start)
    return min(taken) * 1e3 / max(before, slowness())


def chain(op: str, nodes: int) -> Program:
    p = Program(op, ["x: float"], ["k: int"], ["o: float"])
    value = "x"
    for i in range(nodes):
        value = p.call("Tanh", x=value) if i % 2 else p.binary("mul", value, "x")
    p.returns(o=value)
    return p


@pytest.mark.slow
def test_a_hundred_nodes_in_a_millisecond(unique: Unique) -> None:
    op = unique("Hundred")
    chain(op, 100).register()
    requests = []
    for i in range(30):
        request = k.node("", op, k=i)
        request.attr["_in_shapes"].list.shape.add().CopyFrom(tf.TensorShape([8, 8]).as_proto())
        requests.append(request.SerializeToString())
    before = k.stats()["expansions"]
    first = best(lambda i: k.request("composite_expand", requests[i]), 30)
    assert k.stats()["expansions"] == before + 30
    cached = best(lambda i: k.request("composite_expand", requests[i]), 30)
    assert k.stats()["expansions"] == before + 30
    print(f"expand of 100 nodes {first:.3f} ms, cached {cached:.3f} ms")
    assert first < 1.5 and cached < first / 3


@pytest.mark.slow
def test_registration_takes_milliseconds(unique: Unique) -> None:
    names = [unique("Quick") for _ in range(10)]
    programs = [chain(name, 20).finish() for name in names]
    taken = best(lambda i: k.request("composite_register", programs[i]), 10)
    print(f"register {taken:.3f} ms")
    assert taken < 5
