"""The gradients of the examples, at first and second order, beside numeric differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import composite
from examples.convnet import ops as convnet
from examples.digits import ops as digits
from examples.mirror_pad import ops as mirror_pad
from examples.signatures import ops as signatures
from examples.stock_ops import ops as stock_ops

pytestmark = [pytest.mark.many_cases, pytest.mark.usefixtures("kernels_win")]

WAYS = ["gradient", "numeric gradient", "second gradient"]
RANDOM = np.random.default_rng(3)
SEGMENTS = [np.array([0, 0, 1, 2, 2, 2], np.int32), np.int32(4)]
PADDINGS = np.array([[1, 2], [1, 1]], np.int32)


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape)


IMAGE, FILTER = normal(2, 6, 5, 2), normal(3, 3, 2, 3)
CALLS: list[tuple[Any, list[Any], dict[str, Any]]] = [
    *(
        (digits.fused_fully_connected, [normal(4, 5), normal(3, 5), normal(3)], {"act": act})
        for act in ("", "RELU", "RELU6", "TANH")
    ),
    (convnet.fused_conv2d, [IMAGE, FILTER, normal(3)], {"act": "TANH"}),
    (convnet.fused_conv2d, [IMAGE, FILTER, normal(3)], {"stride_w": 2, "padding": "VALID"}),
    (convnet.fused_max_pool2d, [IMAGE], {"filter_w": 2, "filter_h": 3, "padding": "VALID"}),
    *(
        (mirror_pad.composed_mirror_pad, [normal(4, 5), PADDINGS], {"mode": m})
        for m in ("REFLECT", "SYMMETRIC")
    ),
    (mirror_pad.composed_mirror_pad_grad, [normal(7, 7), PADDINGS], {"mode": "REFLECT"}),
    (signatures.sum_of_list, [[normal(2), normal(2), normal(2)]], {}),
    (signatures.weighted_sum, [normal(3), normal(3), normal(3)], {"act": "TANH"}),
    (signatures.least_and_most, [normal(3, 4)], {}),
    (stock_ops.add_n, [[normal(3, 2), normal(3, 2)]], {}),
    (stock_ops.erfinv, [RANDOM.uniform(-0.9, 0.9, 4)], {}),
    (stock_ops.segment_sum, [normal(6, 2), *SEGMENTS], {}),
    (stock_ops.segment_prod, [normal(6, 2), *SEGMENTS], {}),
    (stock_ops.segment_max, [normal(6, 2), *SEGMENTS], {}),
    (stock_ops.segment_min, [normal(6, 2), *SEGMENTS], {}),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0].op_name}-{call[2]}")
def test_orders_one_and_two(call: tuple[Any, list[Any], dict[str, Any]], tmp_path: Any) -> None:
    op, inputs, attrs = call
    report = composite.check(op, *inputs, **attrs, ways=WAYS, samples=1, report_dir=tmp_path)
    assert [(row.samples, row.note) for row in report.rows] == [(1, "")] * 3
