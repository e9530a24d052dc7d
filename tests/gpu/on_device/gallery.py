"""Ops of the gallery on GPUs: which have kernels, their gradients too, and what these compute.

A kernel that is made is checked against the expansion and float64 before a call gets its results.
docs/gpu.md has a row an op; a test that fails here says what the row should be.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.compiler.tvm import NotCovered
from composite.kernels import produce
from tests.conftest import ROOT
from tests.examples.gallery.calls import CALLS, Call
from tests.gpu.devices import GPU, Devices, with_kernels
from tests.unmeasured import kernels_serve

os.environ |= with_kernels()

pytestmark = pytest.mark.usefixtures("devices")

OPS = {call.op.op_name: call.op for call in CALLS}
_ROW = re.compile(r"^\| (\w+) \| (.*) \| (.*) \|$", re.MULTILINE)
_OF_FUNCTION = re.compile(r"__composite_\w+: ")  # its name has a digest in it
# Ops with products, whose factors have 10 bits of mantissa: so far are results from float64 then.
_PRODUCTS = ("SwiGlu", "ScaledDotProductAttention", "LayerNormLstmCell", "SeparableConv2d")
_IN_TF32 = [OPS[name] for name in _PRODUCTS]
_OF_ALL_IN_TF32 = 2e-3


@contextmanager
def requested() -> Iterator[dict[str, str]]:
    """By request for a GPU, why no kernel could be made for it, or ""."""
    found: dict[str, str] = {}
    made = produce.produce

    def observed(request: Any, *arguments: Any, **options: Any) -> Any:
        name = f"{request.op} {request.program}"
        try:
            outcome = made(request, *arguments, **options)
        except NotCovered as reason:
            if not reason.sizes:  # else it is asked for again, with their values
                found[name] = _OF_FUNCTION.sub("", str(reason))
            raise
        except Exception as wrong:
            found[name] = "made, and refused by its check"
            print(name, wrong)
            raise
        found[name] = ""
        return outcome

    with mock.patch.object(produce, "produce", observed), kernels_serve():
        yield found
        assert composite.wait(100)


def inputs_of(call: Call, dtype: Any = np.float32) -> list[Any]:
    def one(x: Any) -> Any:
        x = np.asarray(x)
        return tf.constant(x.astype(dtype) if x.dtype.kind == "f" else x)

    return [[one(x) for x in x_or_list] if isinstance(x_or_list, list) else one(x_or_list)
            for x_or_list in call.inputs]  # fmt: skip


def results(function: Any, inputs: list[Any], attrs: Any, *, gradients: bool) -> list[Any]:
    floats = [x for x in tf.nest.flatten(inputs) if x.dtype.is_floating]
    if not gradients:
        return tf.nest.flatten(function(*inputs, **attrs))
    with tf.GradientTape() as tape:
        tape.watch(floats)
        found = tf.nest.flatten(function(*inputs, **attrs))
        total = tf.add_n([tf.reduce_sum(y * y) for y in found if y.dtype.is_floating])
    return [tf.convert_to_tensor(g) for g in tape.gradient(total, floats) if g is not None]


def placed(call: Call, *, gradients: bool) -> list[Any]:
    with tf.device(GPU):
        return results(call.op, inputs_of(call), call.attrs, gradients=gradients)


def exact(call: Call, *, gradients: bool) -> list[Any]:
    values = {spec.name: spec.default for spec in call.op.schema.attrs} | call.attrs
    values = {k: tf.float64 if v is tf.float32 else v for k, v in values.items()}
    with tf.device("/CPU:0"):
        inputs = inputs_of(call, np.float64)
        return results(call.op.python_function, inputs, values, gradients=gradients)


def entry(calls: list[Call], *, gradients: bool, known: set[str]) -> tuple[str, set[str]]:
    """What the table says; results are those of float64, with kernels and without."""
    reasons, names = set(), set()
    for call in calls:
        if gradients and not any(
            y.dtype.is_floating
            for y in results(call.op, inputs_of(call), call.attrs, gradients=False)
        ):
            continue
        with requested() as found:
            placed(call, gradients=gradients)
        wanted = exact(call, gradients=gradients)
        before = composite.stats()
        for one, right in zip(placed(call, gradients=gradients), wanted, strict=True):
            of_all = _OF_ALL_IN_TF32 * np.abs(right).max() if calls[0].op in _IN_TF32 else 3e-5
            np.testing.assert_allclose(one, right, rtol=3e-4, atol=of_all)
        own = {name: why for name, why in found.items() if name not in known}
        names |= set(found)
        serves = (composite.stats() - before)["kernel_launches"]
        assert own
        if not any(own.values()):
            assert serves > 0
        reasons |= set(own.values()) - {""}
    return ("; ".join(sorted(reasons)) or "yes"), names


@pytest.mark.parametrize("name", OPS)
def test_an_op(devices: Devices, name: str) -> None:
    calls = [call for call in CALLS if call.op.op_name == name]
    forward, names = entry(calls, gradients=False, known=set())
    backward, _ = entry(calls, gradients=True, known=names)
    page = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    rows = {row[0]: row[1:] for row in _ROW.findall(page)}
    assert rows.get(name) == (forward, backward), f"| {name} | {forward} | {backward} |"
