"""Timing a kernel that code of XLA calls against the code that XLA makes of its expansion."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.binding.kernel_request import XLA_CPU, KernelRequest
from composite.binding.records import PROGRAM, attr_value
from composite.kernels import verdicts
from composite.measuring import xla
from composite.measuring.decisions import Times
from tests.composite import xla_kernel_ops as ops

X, W, B = (np.ones(shape, np.float32) for shape in ((32, 64), (64, 64), (64,)))


def request() -> KernelRequest:
    op = ops.dense
    return KernelRequest(
        op=op.op_name, attrs={}, program=op.digest, in_shapes=((32, 64), (64, 64), (64,)),
        device=XLA_CPU,
    )  # fmt: skip


def test_both_ways_run_and_are_timed() -> None:
    with composite.options(backend="tvm"):
        tf.function(ops.dense, jit_compile=True, autograph=False)(X, W, B)
    specs = [tf.TensorSpec(x.shape, tf.float32) for x in (X, W, B)]
    before = composite.stats()
    found = xla.measured(*verdicts.node_of(request()), specs, {})
    counted = composite.stats() - before
    assert 1 < found.kernel_us < 5000 and 1 < found.expansion_us < 5000
    # These are no calls of the user's.
    assert counted["xla_nodes"] == counted["xla_kernel_nodes"] == counted["kernel_launches"] == 0


@pytest.mark.parametrize(
    ("program", "multiplied"), [("__composite_region_1", 2), ("__composite_backward_1", 3)]
)
def test_results_that_are_kept_for_later(
    monkeypatch: pytest.MonkeyPatch, program: str, multiplied: int
) -> None:
    """Of a region XLA writes them as they are, as the kernel does."""
    stamps = {PROGRAM: attr_value(program)}
    loop = xla._Loop("CompositeCall", lambda xs: {}, stamps, {}, 1)
    monkeypatch.setattr(loop, "_call", lambda xs: [xs[0] + 1.0, xs[0] - 1.0])
    with tf.Graph().as_default() as graph:
        loop._after_call([tf.zeros([2, 2])], tf.constant(1.0))
    assert sum(op.type == "Mul" for op in graph.get_operations()) == multiplied


@pytest.mark.parametrize(
    ("ratio", "low", "high", "wins"),
    [
        (0.5, 0.4, 0.6, True),
        (0.97, 0.96, 0.98, False),
        (0.8, 0.6, 1.1, False),
        (2.0, 1.9, 2.1, False),
    ],
)
def test_a_kernel_has_to_be_clearly_faster(
    ratio: float, low: float, high: float, *, wins: bool
) -> None:
    decision = xla.decided(Times(10 * ratio, 10, ratio, low, high), 1)
    assert decision.kernel_wins is wins


def test_verdicts_of_xla_are_kept_apart_from_those_of_nodes() -> None:
    node = KernelRequest(op="XlaDense", attrs={}, program="", in_shapes=((1,),))
    assert verdicts.machine(node) != verdicts.machine(request())
    assert request().gpu == node.gpu == ""
    assert request().is_for_xla and not node.is_for_xla


def test_a_kernel_of_a_gradient_has_to_be_faster_still() -> None:
    times = Times(8.0, 10.0, 0.8, 0.79, 0.81)
    assert xla.decided(times, 1).kernel_wins
    assert not xla.decided(times, 1, derived=True).kernel_wins
