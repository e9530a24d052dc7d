"""`composite.diverge`: where two ways to run an op or a function part."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from composite.checking import drawing
from composite.checking.sample import Sample, declared
from composite.checking.samples import Drawn
from composite.diverging import kernel_cuts, subject, values, versions
from composite.diverging.report import DivergeReport, Found
from composite.diverging.values import EXPANSION, PRECISIONS, Way
from composite.ops.op import CompositeOp, DecoratedOp

__all__ = ["DivergeReport", "diverge"]

KERNEL = "kernel"
_SAMPLES = 30
_GRANULARITY = {
    "values": "each value that a node of the expansion computes, the nodes run one at a time",
    "kernels": "the outputs of each composite; inside of one that differs, kernels of its prefixes",
    "versions": "each value of one expansion with those of the other, wherever it computes them",
}


def diverge(  # noqa: PLR0913 - all but the call itself have defaults
    target: CompositeOp | Callable[..., Any],
    *inputs: Any,
    ways: Sequence[str | os.PathLike[str]] = ("float64", EXPANSION),
    gradient: bool = False,
    rtol: float | None = None,
    seed: int = 0,
    samples: int = _SAMPLES,
    **attrs: Any,
) -> DivergeReport:
    """Finds the first line of a body whose value differs by more than its bound.

    Args:
        target: an op; or a function, a tf.function, a Keras model. Its variables are copied for
            each run, so that a step of training changes none.
        inputs: of a call. Without any, calls of an op that `@Composite` made are drawn as
            `composite.check` draws them (this requires hypothesis), until one differs.
        ways: two ways to run it:
            "expansion", node by node on the CPU, with the dtypes that are declared;
            "float64", "float32", "bfloat16", "float16": all floating numbers of the expansion in
            this dtype;
            "kernel", beside "expansion": the kernels of the composites in it;
            a device, such as "GPU:0", beside another or "expansion": the expansion there;
            the folder of a built library, beside "expansion" and for an op: its version of the
            body. Another process runs machine code of the folder.
        gradient: run the gradient instead: of the floating inputs and the variables, for fixed
            gradients of the outputs.
        rtol: how far values may be apart, as a part of the largest value of their row. By default
            half of the digits of the coarser dtype between two precisions (3e-4 for float32), and
            for the other ways what a kernel may be off.
        seed: for drawing.
        samples: the number of calls that are drawn.
        attrs: attributes of the calls.

    Returns:
        A DivergeReport; `print` it.

    Raises:
        ValueError: if these are not two ways that can be compared, or one of them cannot run.
        TypeError: if there are no inputs, and none can be drawn.
        ImportError: if inputs must be drawn and hypothesis is not installed.
    """
    runner = _Runner(target, _pair(ways), gradient=gradient, rtol=rtol)
    if inputs or not isinstance(target, CompositeOp) or not target.schema.inputs:
        runner.run(inputs, attrs, "as given")
        return runner.report()
    if not isinstance(target, DecoratedOp):
        raise TypeError(f"composite.diverge: give the inputs of {target.op_name}")
    strategy = Drawn(target, declared(target.schema, attrs), seed).strategy()
    drawing.until(runner.differs, strategy, samples, seed)
    return runner.report()


def _pair(ways: Sequence[str | os.PathLike[str]]) -> tuple[str, str]:
    """The two ways, the one that the other is held to first. ValueError where they are no pair."""
    if isinstance(ways, str) or len(ways) != 2:
        raise ValueError(f"composite.diverge: ways are two, not {ways!r}")
    pair = os.fspath(ways[0]), os.fspath(ways[1])
    for way in pair:
        if not _is_walk(way) and way != KERNEL and not Path(way).is_dir():
            known = ", ".join((EXPANSION, KERNEL, *PRECISIONS, *_devices()))
            raise ValueError(
                f"composite.diverge: {way!r} is no way to run anything: {known}, or the folder of "
                "a built library"
            )
    if all(map(_is_walk, pair)):
        return pair
    for one, other in (pair, pair[::-1]):
        if one == EXPANSION and not _is_walk(other):
            return one, other
    raise ValueError(f"composite.diverge: {EXPANSION!r} alone can be beside a kernel or a library")


def _is_walk(way: str) -> bool:
    """Whether the nodes of the expansion are run one by one."""
    return way in (EXPANSION, *PRECISIONS, *_devices())


def _devices() -> list[str]:
    return [device.name.removeprefix("/device:") for device in tf.config.list_logical_devices()]


def _way(name: str) -> Way:
    if name in PRECISIONS:
        return Way(name, tf.as_dtype(name))
    return Way(name) if name == EXPANSION else Way(name, device=name)


class _Runner:
    """Runs calls in two ways, and keeps what the last one showed."""

    def __init__(
        self,
        target: CompositeOp | Callable[..., Any],
        pair: tuple[str, str],
        *,
        gradient: bool,
        rtol: float | None,
    ) -> None:
        self._target, self._pair = target, pair
        self._gradient, self._rtol = gradient, rtol
        self._found = Found(None, 0)
        self._calls = self._compared = 0
        self._call = ""
        self._notes: dict[str, None] = {}

    def differs(self, sample: Sample) -> bool:
        """Whether a call that was drawn differs; one that raises does not."""
        try:
            self.run(sample.tensors(), sample.attrs, sample.describe())
        except (tf.errors.OpError, ValueError, TypeError, LookupError) as error:
            self._notes[f"not run: {str(error).partition(chr(10))[0]}"] = None
            return False
        return self._found.divergence is not None

    def run(self, inputs: Sequence[Any], attrs: Mapping[str, Any], call: str) -> None:
        """Compares one call."""
        found = self._compare(inputs, attrs)
        self._calls += 1
        self._compared += found.compared
        self._notes |= dict.fromkeys(found.notes)
        self._found, self._call = found, call

    def _compare(self, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Found:
        target, other = self._target, self._pair[1]
        if not _is_walk(other) and other != KERNEL:
            if self._gradient or not isinstance(target, CompositeOp):
                raise ValueError("composite.diverge: a library is compared for calls of an op")
            return versions.first(target, inputs, attrs, Path(other), self._rtol)
        if isinstance(target, CompositeOp):
            run = subject.of_call(target, inputs, attrs, gradient=self._gradient)
        else:
            call = functools.partial(target, **attrs)
            run = subject.of_function(call, inputs, _name(target), gradient=self._gradient)
        if other == KERNEL:
            return kernel_cuts.first(run, self._rtol)
        return values.first(run, (_way(self._pair[0]), _way(other)), self._rtol)

    def report(self) -> DivergeReport:
        """What all calls showed."""
        walks = _is_walk(self._pair[1])
        kind = "values" if walks else "kernels" if self._pair[1] == KERNEL else "versions"
        name = _name(self._target)
        return DivergeReport(
            name=f"the gradient of {name}" if self._gradient else name,
            ways=self._pair,
            call=self._call,
            calls=self._calls,
            divergence=self._found.divergence,
            compared=self._compared,
            granularity=_GRANULARITY[kind],
            notes=tuple(self._notes),
        )


def _name(target: Any) -> str:
    if isinstance(target, CompositeOp):
        return target.op_name
    name = getattr(target, "__name__", None) or getattr(target, "name", None)
    return str(name or type(target).__name__)
