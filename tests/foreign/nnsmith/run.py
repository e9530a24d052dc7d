"""Runs models without regions, with them, and by their kernels, and compares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import composite
from composite.kernels import verify
from composite.kernels.samples import Samples
from composite.reference import adversarial, floats
from composite.reference.source import Source
from composite.reference.tolerance import Reference
from tests.compiler.tvm.conftest import library_of
from tests.foreign.nnsmith.call import Call, drawn
from tests.foreign.nnsmith.counts import Counts
from tests.foreign.nnsmith.model import Model

_WAIT = 120.0  # seconds for the kernels of a model
_EACH = 4  # of so many models, one is called with all inputs that kernels are checked on
_CALLS = 3  # the first by TensorFlow's ops, the others by kernels
_DRAW = adversarial.Draw("drawn inputs", [], special=True)  # NaNs stand where TensorFlow has them


def run(model: Model, counts: Counts) -> str:
    """Runs a model, with counts of its own; what differs, "" if nothing does."""
    counts.models += 1
    counts.ops = dict.fromkeys(model.ops, 1)
    call = drawn(model)
    before = composite.stats()
    try:
        told = _run(call, counts)
    except LookupError:  # an op without a gradient
        told = _run(replace(call, derived=False), counts)
    since = composite.stats() - before
    counts.regions += since["regions"]
    counts.kernels += since["answered"]
    counts.launches += since["kernel_launches"]
    counts.with_kernels += since["kernel_launches"] > 0
    if since["invalid_graphs"] and not told:
        told = f"{since['invalid_graphs']} graphs would not be valid"
    return told


def _run(call: Call, counts: Counts) -> str:
    """Calls it with its own values until its kernels serve, then with other kinds of inputs."""
    library = _library(call)
    expected = _expected(library, [x.numpy() for x in call.arguments])
    ways = _Ways(call)
    for number in range(_CALLS):
        if told := ways.differ(expected, counts):
            return f"call {number}: {told}"
        if not composite.wait(timeout=_WAIT):
            return f"call {number}: kernels take more than {_WAIT:g} s"
    if isinstance(expected.results, str):
        counts.refused += 1
        return ""
    counts.derived += call.derived
    if call.model.seed % _EACH == 0:
        for sample in Samples(lambda _: library, [[x.shape for x in expected.inputs]]):
            expected = _Expected(sample.inputs, sample.expected, sample.references, sample.draw)
            if told := ways.differ(expected, counts):
                return f"{sample.draw.kind}: {told}"
    return ""


def _library(call: Call) -> Any:
    """What TensorFlow's ops compute of a call's arguments; variables are constants in it."""
    whole = replace(call, held="constants") if call.held == "variables" else call
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in whole.arguments]
    return library_of(whole.function(), specs)


_Results = Sequence[np.ndarray] | str  # or why inputs are refused


class _Expected(NamedTuple):
    """Inputs, and what TensorFlow's ops make of them, one after the other."""

    inputs: Sequence[np.ndarray]
    results: _Results
    references: Sequence[Reference] = ()
    draw: adversarial.Draw = _DRAW


def _expected(library: Any, inputs: Sequence[np.ndarray]) -> _Expected:
    try:
        return _Expected(inputs, *Source(library).run(inputs))
    except tf.errors.OpError as error:
        return _Expected(inputs, _in_one_line(error))


class _Ways:
    """A call with regions and without."""

    def __init__(self, call: Call) -> None:
        self._regions, self._plain = (tf.function(call.function(), autograph=False) for _ in "ab")

    def differ(self, expected: _Expected, counts: Counts) -> str:
        """What is not as expected; "" if nothing is, or TensorFlow's graph differs as well."""
        with composite.options(regions=True):
            told = _differ(_called(self._regions, expected.inputs), expected)
        if not told:
            return ""
        with composite.options(regions=False):
            if not _differ(_called(self._plain, expected.inputs), expected):
                return told
        counts.by_tensorflow = 1
        return ""


def _called(function: Any, inputs: Sequence[np.ndarray]) -> _Results:
    try:
        return [y.numpy() for y in function(*map(tf.constant, inputs))]
    except tf.errors.OpError as error:
        return _in_one_line(error)


def _in_one_line(error: tf.errors.OpError) -> str:
    return " ".join(error.message.split())


def _differ(found: _Results, expected: _Expected) -> str:
    if isinstance(found, str):
        return "" if isinstance(expected.results, str) else f"it is refused: {found}"
    if isinstance(expected.results, str):
        return f"TensorFlow refuses it: {expected.results}"
    if len(found) != len(expected.results):
        return f"{len(found)} outputs, and {len(expected.results)} are expected"
    results = zip(found, expected.results, expected.references, strict=True)
    for number, (y, own, reference) in enumerate(results):
        if told := _differs(f"output {number}", y, own, reference, expected.draw):
            return told
    return ""


def _differs(
    what: str,
    found: np.ndarray,
    own: np.ndarray,
    reference: Reference,
    draw: adversarial.Draw,
) -> str:
    if found.dtype != own.dtype or found.shape != own.shape:
        return f"{what} is {found.dtype}{found.shape}, and {own.dtype}{own.shape} is expected"
    if not floats.is_floating(found):
        return _differs_in_whole_numbers(what, found, own, reference)
    try:
        verify.distance(what, found, own, reference, draw)
    except verify.Mismatch as told:
        return str(told)
    return ""


def _differs_in_whole_numbers(
    what: str, found: np.ndarray, own: np.ndarray, reference: Reference
) -> str:
    """Roundings decide what becomes of a number that is nearly 1 when it is made whole."""
    other = (found != own) & (found != reference.exact)
    if not other.any():
        return ""
    for run in reference.nearby():
        other &= found != run
        if not other.any():
            return ""
    first = int(np.flatnonzero(other)[0])
    return f"{what} differs in {other.sum()} elements: {found.flat[first]}, not {own.flat[first]}"
