"""`composite.explain`: which path a call takes, and why."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.autodiff import gradient
from composite.binding import native
from composite.binding.call_request import CallRequest
from composite.binding.records import NodeDef, python_values
from composite.ops import functions
from composite.ops.op import CompositeOp

OWN = "yours"  # how the strategy of an author's kernel begins, as composite.kernels.given has it


class Measured(NamedTuple):
    """What was measured at one size of a kernel's class, and whether the kernel runs there.

    The size is the product of the class's symbols, such as the rows of a batch; 1 without symbols.
    """

    size: int
    kernel_us: float
    expansion_us: float
    kernel_wins: bool


@dataclass(frozen=True)
class Explanation:
    """The dispatch decision for one call.

    Attributes:
        op_name: the op.
        path: "kernel", "compiling" (the expansion runs until the kernel is ready) or "expansion".
        reason: why, in one sentence.
        final: whether a graph gets TensorFlow's own ops in the node's place, which TensorFlow then
            optimizes as hand-written ops: no kernel serves this call, and none will be compiled.
        kernel: the kernel's name; "" if no kernel covers the call.
        kernel_us: microseconds per node, measured at the size nearest to the call's; None if it was
            not measured.
        expansion_us: the same for TensorFlow's own ops.
        measured: the measurements at each size of the class, by ascending size.
        error: the kernel's largest error in its check, in units of `error_unit`; None without a
            kernel. See docs/numerics.md.
        proof: "proven" if every access of the kernel is proven to be inside of its buffer and its
            tasks to be free of races, or which is not and why: then its check ran with guards in
            front of all accesses; "" without a kernel. See docs/proofs.md.
        algebra: "equal by algebra" if the kernel's loops are equal to the body over an exact ring,
            or why that was not compared; "" where the environment forbade it.
        xla: what XLA (jit_compile=True) is given for the call on the CPU at present, and why, as
            "kernel: ..." or "expansion: ..." with times as docs/xla.md has them; "" if the body
            cannot be expanded for this call.
        details: what else the runtime knows: schedule, target, whether the kernel is exact.
    """

    op_name: str
    path: str
    reason: str
    final: bool
    kernel: str
    kernel_us: float | None
    expansion_us: float | None
    measured: tuple[Measured, ...]
    error: float | None
    error_unit: str
    proof: str
    algebra: str
    xla: str
    details: dict[str, Any]
    _request: CallRequest = field(repr=False, compare=False)

    @functools.cached_property
    def gradient(self) -> str:
        """What the forward keeps for the backward in a traced training step, and what that does.

        "keeps MatMul (64, 10); computes BiasAdd again"; or why there is no gradient.
        """
        try:
            library = FunctionDefLibrary.FromString(
                native.call("composite_expand", self._request.to_node_def())
            )
            outputs = functions.body(library).output_dtypes
            found = gradient.plan(self._request, outputs)
        except (LookupError, tf.errors.OpError) as error:
            return f"none: {getattr(error, 'message', None) or error}"
        kept = f"keeps {', '.join(found.saved)}" if found.saved else "keeps nothing"
        again = ", ".join(sorted(set(found.recomputed)))
        return f"{kept}; computes {again} again" if again else f"{kept}; computes nothing again"

    def __str__(self) -> str:
        return f"{self.op_name} -> {self.path}: {self.reason}"


def explain(op: CompositeOp, *args: Any, **attrs: Any) -> Explanation:
    """Says what a call of `op` with these arguments would do now, here.

    That is under this thread's options, and on the device that `tf.device` names or TensorFlow
    takes.

    Takes the arguments of a call; an input may also be a tf.TensorSpec. It runs and compiles
    nothing.
    """
    if not isinstance(op, CompositeOp):
        raise TypeError(f"composite.explain takes a composite op, not {op!r}")
    request = replace(op.request(*args, **attrs), device=_placed())
    reply = native.call("composite_explain", request.to_node_def())
    values = python_values(NodeDef.FromString(reply))
    return Explanation(
        op_name=op.op_name,
        path=str(values.pop("path")),
        reason=_reason(values),
        final=bool(values.pop("final", False)),
        kernel=str(values.pop("kernel", "")),
        kernel_us=_time(values.pop("kernel_us", None)),
        expansion_us=_time(values.pop("expansion_us", None)),
        measured=_measured(values),
        error=values.pop("error", None),
        error_unit=str(values.pop("error_unit", "")),
        proof=str(values.pop("proof", "")),
        algebra=str(values.pop("algebra", "")),
        xla=str(values.pop("xla", "")),
        details=values,
        _request=request,
    )


def _reason(values: dict[str, Any]) -> str:
    """Why, with a word on a kernel that is the author's own."""
    reason, strategy = str(values.pop("reason", "")), str(values.get("strategy", ""))
    return f"{reason}; the kernel is {strategy}" if strategy.startswith(OWN) else reason


def _placed() -> str:
    """The type of device that a call is placed on here; "" where it is not known."""
    if not tf.executing_eagerly() or not tf.config.list_physical_devices("GPU"):
        return ""
    return str(tf.DeviceSpec.from_string(tf.constant(0.0).device).device_type)


def _measured(values: dict[str, Any]) -> tuple[Measured, ...]:
    names = ("sizes", "kernel_times", "expansion_times", "kernel_wins")
    columns = [values.pop(name, []) for name in names]
    return tuple(Measured(*row) for row in zip(*columns, strict=True))


def _time(value: float | None) -> float | None:
    return value if value else None  # 0 stands for "not measured"
