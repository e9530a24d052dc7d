"""A dense op whose nodes are asked for their decision, and what one run of a node did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from tests.runtime import kernel_support as k

OPS = ["MatMul", "BiasAdd", "Relu", "Tanh", "AddV2"]
SHAPES = [(-1, -2), (-2, -3), (-3,)]

Unique = Callable[[str], str]


def tell_compiler(ops: list[str], **dtypes: list[tf.DType]) -> None:
    k.request("composite_set_kernel_ops", k.node("", "", ops=ops, **dtypes))


@dataclass
class Done:
    """What one run of a node did."""

    launches: int
    expansion_runs: int
    requests: int

    @property
    def replaced(self) -> bool:
        """Whether the graph pass put the expansion in the node's place."""
        return self.launches == self.expansion_runs == 0


class Dense:
    """A dense op, whose nodes carry `stamps`."""

    def __init__(self, unique: Unique, library: Path, **stamps: Any) -> None:
        self.op = unique("RtDecide")
        self.digest = k.register(k.dense(self.op))
        self.stamps = {"_composite_program": self.digest, **stamps}
        self._library = library

    def install(self, verdict: str, **attrs: Any) -> None:
        """A kernel for all shapes, of the group that `attrs` says."""
        attrs = {"_kernel_us": 9.0, "_expansion_us": 3.0, "_verdict": verdict, **attrs}
        record = k.record("k_any", self.op, self.digest, SHAPES, ["s0,s2"], self._library, **attrs)
        k.request("composite_install", record)

    def explain(self, inputs: dict[str, Any], **attrs: Any) -> dict[str, Any]:
        return k.explain(self.op, inputs, **{**self.stamps, **attrs})

    def function(self) -> Any:
        return tf.function(
            lambda x, w, b: k.call(self.op, {"x": x, "w": w, "b": b}, **self.stamps),
            autograph=False,
        )

    def run(self, inputs: dict[str, Any]) -> Done:
        """Traces the node anew and runs it once."""
        return counting(lambda: self.function()(**inputs))


def counting(run: Callable[[], Any]) -> Done:
    names = ("kernel_launches", "expansion_runs", "requests")
    before = k.stats()
    run()
    after = k.stats()
    return Done(*(int(after[name]) - int(before[name]) for name in names))


def refuse(_: Any) -> tuple[str, str]:
    """What a worker answers that makes no kernel."""
    return "not_covered", "it is Sunday"
