"""Small calls of the ops of the gallery, with odd sizes and the values of their attributes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from examples.gallery import (
    adam,
    attention,
    box_iou,
    crf,
    embedding_bag,
    fake_quant,
    focal_loss,
    group_norm,
    hard_swish,
    huber_loss,
    instance_norm,
    layer_norm,
    layer_norm_lstm,
    mish,
    rms_norm,
    rotary_embedding,
    separable_conv,
    swiglu,
    top_k_gate,
    viterbi,
)

RANDOM = np.random.default_rng(16)


class Call(NamedTuple):
    """An op with its inputs, floats in float32, and its attributes."""

    op: Any
    inputs: list[Any]
    attrs: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.op.op_name}-{self.attrs}"


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def boxes(count: int) -> Any:
    corner = RANDOM.uniform(0, 5, (count, 2))
    return np.concatenate([corner, corner + RANDOM.uniform(1, 5, (count, 2))], 1).astype(np.float32)


def integers(most: int, *shape: int) -> Any:
    return RANDOM.integers(0, most, shape, np.int32)


LABELS = integers(2, 3, 4).astype(np.float32)
IMAGE = normal(2, 3, 5, 6)
POSITIONS = np.array([0, 4, 9], np.int32)
QUERY, KEY, VALUE = normal(2, 3, 2, 4), normal(2, 5, 2, 4), normal(2, 5, 2, 3)
MASK = np.array([[1, 1, 0, 1, 0], [0, 0, 1, 1, 1], [1, 0, 0, 0, 0]], bool)
BAGS = [normal(7, 3), integers(7, 6), np.array([0, 2, 2, 0, 3, 2], np.int32), np.int32(5)]
CELL = [normal(2, 3), normal(2, 4), normal(2, 4), normal(3, 16), normal(4, 16), normal(2, 16),
        normal(16), normal(4), normal(4)]  # fmt: skip
FILTERS = [normal(3, 2, 6, 2), normal(1, 1, 12, 4), normal(4)]
EMISSIONS, TRANSITIONS = normal(2, 4, 3), normal(3, 3)

CALLS = [
    Call(layer_norm.layer_norm, [normal(2, 3, 8), normal(8), normal(8)], {}),
    Call(rms_norm.rms_norm, [normal(2, 3, 8), normal(8)], {"epsilon": 1e-3}),
    Call(group_norm.group_norm, [IMAGE, normal(6), normal(6)], {"groups": 3}),
    Call(instance_norm.instance_norm, [IMAGE, normal(6), normal(6)], {}),
    Call(rotary_embedding.rotary_embedding, [normal(2, 3, 2, 6), POSITIONS], {}),
    Call(swiglu.swiglu, [normal(5, 4), normal(4, 6), normal(4, 6), normal(6, 4)], {}),
    Call(attention.attention, [QUERY, KEY, VALUE, []], {}),
    Call(attention.attention, [QUERY, KEY, VALUE, [MASK]], {}),
    Call(attention.attention, [QUERY, KEY, VALUE, []], {"causal": True}),
    Call(focal_loss.focal_loss, [normal(3, 4), LABELS], {}),
    Call(huber_loss.huber_loss, [2 * normal(3, 7), normal(3, 7)], {"delta": 0.75}),
    Call(box_iou.box_iou, [boxes(3), boxes(4)], {}),
    Call(mish.mish, [3 * normal(4, 5)], {}),
    Call(hard_swish.hard_swish, [3 * normal(4, 5)], {}),
    *(Call(embedding_bag.embedding_bag, BAGS, {"combiner": c}) for c in ("sum", "mean", "sqrtn")),
    Call(layer_norm_lstm.layer_norm_lstm_cell, CELL, {}),
    Call(top_k_gate.top_k_gate, [normal(4, 6)], {"k": 2}),
    Call(fake_quant.fake_quant, [normal(3, 5), np.float32(0.3)], {"bits": 3}),
    Call(separable_conv.separable_conv2d, [IMAGE, *FILTERS], {}),
    Call(separable_conv.separable_conv2d, [IMAGE, *FILTERS], {"stride": 2, "padding": "VALID"}),
    Call(viterbi.viterbi_decode, [EMISSIONS, TRANSITIONS], {}),
    Call(crf.crf_log_likelihood, [EMISSIONS, integers(3, 2, 4), TRANSITIONS], {}),
    Call(adam.adam_update, [*(normal(3, 4) for _ in range(2)), normal(3, 4) ** 2, normal(3, 4),
                            np.float32(3)], {}),
]  # fmt: skip
