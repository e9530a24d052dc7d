"""Ops of the gallery as kernels for a GPU, with their gradients, on threads of the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.examples.gallery.calls import CALLS, Call
from tests.gpu.shim.cases import Case, compare, written
from tests.gpu.shim.emulator import Emulator, as_float64

# The others have products, convolutions, loops, or indices that may be out of range.
COVERED = {
    "layer_norm", "rms_norm", "group_norm", "instance_norm", "rotary_embedding", "focal_loss",
    "huber_loss", "box_iou", "mish", "hard_swish", "fake_quant", "adam_update",
}  # fmt: skip


def step(call: Call) -> Callable[..., Any]:
    """The body of a call's op in stock ops, and the gradients of its squares."""
    values = {spec.name: spec.default for spec in call.op.schema.attrs} | call.attrs

    def function(*arrays: Any) -> Any:
        floats = [x for x in arrays if x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(floats)
            results = tf.nest.flatten(call.op.python_function(*arrays, **values))
            total = tf.add_n([tf.reduce_sum(y * y) for y in results])
        return [*results, *(g for g in tape.gradient(total, floats) if g is not None)]

    return function


@pytest.mark.slow
def test_results(tmp_path: Path) -> None:
    calls = [call for call in CALLS if call.op.python_function.__name__ in COVERED]
    assert {call.op.python_function.__name__ for call in calls} == COVERED
    cases, kernels = [], []
    for number, call in enumerate(calls):
        shapes = [[*x.shape] for x in call.inputs]
        types = [np.asarray(x).dtype for x in call.inputs]
        case = Case(step(call), shapes, "", dtypes=types, rtol=2e-5, atol=2e-5)
        cases.append(case)
        kernels.append(written(f"{call.op.python_function.__name__}_{number}", case))
    emulator = Emulator(kernels, tmp_path)
    for call, case, kernel in zip(calls, cases, kernels, strict=True):
        arrays = [np.asarray(x) for x in call.inputs]
        exact = case.function(*(tf.constant(as_float64(a)) for a in arrays))
        results = emulator.run(kernel, arrays, case.shapes, [np.float32] * len(exact))
        for result, want in zip(results, exact, strict=True):
            compare(result, np.asarray(want), case)
