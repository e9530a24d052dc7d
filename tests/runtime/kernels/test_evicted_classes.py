"""Which class of shapes makes room for another, and that it comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from tests.runtime import kernel_support as k

pytestmark = pytest.mark.usefixtures("kernel_ops")


class Ranks:
    """Calls of an op with tensors of many ranks, each of which needs a class of its own."""

    def __init__(self, op: str, folder: Path) -> None:
        self.op, self.asked = op, [0] * 256
        self._digest = k.register(k.twice(op))
        self._path = k.build(folder, "k_twice", TWICE_C)

    def compile(self, asked: Any) -> tuple[str, str]:
        (shape,) = k.shapes_of(asked)
        self.asked[len(shape)] += 1
        out = ",".join(map(str, shape))
        record = k.record(
            "k_twice", self.op, self._digest, [shape], [out], self._path, T=tf.float32,
            _verdict="kernel",
        )  # fmt: skip
        k.request("composite_install", record)
        return "kernel", ""

    def call(self, rank: int, worker: k.Worker) -> str:
        """What a call of this rank runs; afterwards its kernel is there."""
        x = tf.ones([1] * rank)
        path = k.explain(self.op, {"x": x}, T=tf.float32)["path"]
        assert float(tf.reshape(k.call(self.op, {"x": x}, T=tf.float32), [])) == 2.0
        worker.wait()
        return str(path)


TWICE_C = """
KERNEL(NAME) {
  FLOATS(1)[0] = 2 * FLOATS(0)[0];
  return 0;
}
"""


def test_the_class_that_was_used_longest_ago_makes_room(
    unique: Callable[[str], str], tmp_path: Path
) -> None:
    ranks = Ranks(unique("RtRanks"), tmp_path)
    before = k.stats()["evicted_classes"]
    with k.Worker(ranks.compile) as worker:
        for rank in range(1, 25):
            assert ranks.call(rank, worker) == "expansion"
        assert ranks.call(1, worker) == "kernel"
        assert ranks.call(25, worker) == "expansion"  # takes the place of rank 2
        assert k.stats()["evicted_classes"] - before == 1
        for rank in (1, 3, 24, 25):
            assert ranks.call(rank, worker) == "kernel"
        assert ranks.call(2, worker) == "expansion"  # comes back, in the place of rank 4
        for rank in (1, 2, 3, 5, 25):
            assert ranks.call(rank, worker) == "kernel"
        assert ranks.call(4, worker) == "expansion"
    assert [ranks.asked[rank] for rank in range(1, 26)] == [1, 2, 1, 2, *[1] * 21]


def test_classes_that_fail_make_room_too(unique: Callable[[str], str]) -> None:
    """A kernel that admits no call would be asked for in every call, but for the budget."""
    op = unique("RtNoRanks")
    k.register(k.twice(op))
    with k.Worker(lambda _: ("failed", "the compiler crashed")) as worker:
        for i in range(300):
            k.call(op, {"x": tf.zeros([1] * (1 + i % 30))}, T=tf.float32)
            worker.wait()
        reason = k.explain(op, {"x": tf.zeros([1] * 30)}, T=tf.float32)["reason"]
    assert 64 < len(worker.requests) <= 64 + 16 * 9
    assert "the compiler crashed" in reason or "another is asked for after" in reason
