"""`composite.explain`: which path a call takes, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from composite import native
from composite.op import CompositeOp
from composite.records import NodeDef, python_values


@dataclass(frozen=True)
class Explanation:
    """The dispatch decision for one call.

    Attributes:
        op_name: the op.
        path: "kernel", "compiling" (the expansion serves until the kernel is there) or "expansion".
        reason: why, in one sentence.
        kernel: the kernel's name; "" where none covers the call.
        kernel_us, expansion_us: microseconds per node as they were measured; None where not.
        details: whatever else the runtime knows: strategy, target, error bound.
    """

    op_name: str
    path: str
    reason: str
    kernel: str
    kernel_us: float | None
    expansion_us: float | None
    details: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.op_name} -> {self.path}: {self.reason}"


def explain(op: CompositeOp, *args: Any, **attrs: Any) -> Explanation:
    """What a call of `op` with these arguments would do now, under the options of this thread.

    Takes what a call takes; an input may also be a tf.TensorSpec. Runs nothing, compiles nothing.
    """
    if not isinstance(op, CompositeOp):
        raise TypeError(f"composite.explain takes a composite op, not {op!r}")
    reply = native.call("composite_explain", op.request(*args, **attrs))
    values = python_values(NodeDef.FromString(reply))
    return Explanation(
        op_name=op.op_name,
        path=str(values.pop("path")),
        reason=str(values.pop("reason", "")),
        kernel=str(values.pop("kernel", "")),
        kernel_us=_time(values.pop("kernel_us", None)),
        expansion_us=_time(values.pop("expansion_us", None)),
        details=values,
    )


def _time(value: float | None) -> float | None:
    return value if value else None  # 0 stands for "not measured"
