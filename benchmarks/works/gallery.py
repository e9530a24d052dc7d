"""The ops of examples/gallery at the sizes at which they are timed.

It imports none of them: the command line reads the names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Draw = Callable[[np.random.Generator], list[Any]]

CALLS = 6
"""How many calls one function has: what a function costs from Python then counts little."""


@dataclass(frozen=True)
class GalleryWork:
    """An op with its inputs.

    `draw` gives them, floats in float64. `chains` has, for each of the first inputs, the output of
    the call before that it is; where there are none, each call has a first input of its own. What
    an op changes is chained, or TensorFlow computes what depends on the rest once for all calls.
    """

    function: str
    draw: Draw
    chains: tuple[int, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)

    def op(self) -> Any:
        """The composite op."""
        module, _, name = self.function.rpartition(".")
        return getattr(import_module(f"examples.gallery.{module}"), name)

    def inputs(self) -> tuple[list[Array], list[Any]]:
        """The first inputs, those of the first call or one of each call, and the others."""
        drawn = [self.draw(np.random.default_rng(i)) for i in range(1 if self.chains else CALLS)]
        if self.chains:
            count = len(self.chains)
            return drawn[0][:count], drawn[0][count:]
        return [first for first, *_ in drawn], drawn[0][1:]


def _normal(*shapes: tuple[int, ...]) -> Draw:
    """Normal numbers; matrices are scaled such that products keep the scale."""
    return lambda random: [
        random.standard_normal(s) / (s[0] ** 0.5 if i and len(s) == 2 else 1)
        for i, s in enumerate(shapes)
    ]


def _boxes(random: np.random.Generator) -> list[Any]:
    corners = [random.uniform(0, 100, (count, 2)) for count in (300, 200)]
    return [np.concatenate([c, c + random.uniform(5, 50, c.shape)], 1) for c in corners]


def _tagged(random: np.random.Generator) -> list[Any]:
    shape = (16, 64, 16)
    tags = random.integers(0, shape[-1], shape[:2], np.int32)
    return [random.standard_normal(shape), tags, random.standard_normal(shape[-1:] * 2)]


def _labelled(random: np.random.Generator) -> list[Any]:
    shape = (4096, 80)
    return [random.standard_normal(shape), (random.random(shape) < 0.02).astype(np.float64)]


def _bags(random: np.random.Generator) -> list[Any]:
    bags = np.sort(random.integers(0, 256, 4096, np.int32))
    ids = random.integers(0, 10_000, 4096, np.int32)
    return [random.standard_normal((10_000, 64)), ids, bags, np.int32(256)]


def _adam(random: np.random.Generator) -> list[Any]:
    weights, m, v, gradient = random.standard_normal((4, 512, 1024))
    return [weights, m, v**2, gradient, np.float64(10)]


def _rotated(random: np.random.Generator) -> list[Any]:
    return [random.standard_normal((4, 128, 8, 64)), np.arange(128, dtype=np.int32)]


_ROWS, _IMAGES, _HEADS = (512, 768), (8, 32, 32, 64), (4, 128, 8, 64)
_WIDE = (512, 1024)
_CELL = (
    (32, 256),
    (32, 256),
    (32, 256),
    (256, 1024),
    (256, 1024),
    (2, 1024),
    (1024,),
    (256,),
    (256,),
)

GALLERY = {
    "layer norm": GalleryWork("layer_norm.layer_norm", _normal(_ROWS, (768,), (768,)), (0,)),
    "RMS norm": GalleryWork("rms_norm.rms_norm", _normal(_ROWS, (768,)), (0,)),
    "group norm": GalleryWork(
        "group_norm.group_norm", _normal(_IMAGES, (64,), (64,)), (0,), {"groups": 8}
    ),
    "instance norm": GalleryWork(
        "instance_norm.instance_norm", _normal(_IMAGES, (64,), (64,)), (0,)
    ),
    "rotary embedding": GalleryWork("rotary_embedding.rotary_embedding", _rotated, (0,)),
    "SwiGLU": GalleryWork(
        "swiglu.swiglu", _normal((128, 256), (256, 512), (256, 512), (512, 256)), (0,)
    ),
    "scaled dot-product attention": GalleryWork(
        "attention.attention",
        lambda random: [*_normal(_HEADS, _HEADS, _HEADS)(random), []],
        (0,),
        {"causal": True},
    ),
    "focal loss": GalleryWork("focal_loss.focal_loss", _labelled),
    "Huber loss": GalleryWork("huber_loss.huber_loss", _normal(_WIDE, _WIDE)),
    "box IoU": GalleryWork("box_iou.box_iou", _boxes),
    "Mish": GalleryWork("mish.mish", _normal(_WIDE), (0,)),
    "HardSwish": GalleryWork("hard_swish.hard_swish", _normal(_WIDE), (0,)),
    "embedding bag": GalleryWork("embedding_bag.embedding_bag", _bags),
    "layer-norm LSTM cell": GalleryWork(
        "layer_norm_lstm.layer_norm_lstm_cell", _normal(*_CELL), (0, 0, 1)
    ),
    "top-k gate": GalleryWork("top_k_gate.top_k_gate", _normal((1024, 64))),
    "fake-quant": GalleryWork(
        "fake_quant.fake_quant", lambda random: [*_normal(_WIDE)(random), np.float64(0.03)], (0,)
    ),
    "separable convolution": GalleryWork(
        "separable_conv.separable_conv2d",
        lambda random: [
            x / 3 for x in _normal((8, 28, 28, 64), (3, 3, 64, 1), (1, 1, 64, 64), (64,))(random)
        ],
        (0,),
    ),
    "Viterbi": GalleryWork("viterbi.viterbi_decode", lambda random: _tagged(random)[::2]),
    "CRF": GalleryWork("crf.crf_log_likelihood", _tagged),
    "Adam": GalleryWork("adam.adam_update", _adam, (0, 1, 2)),
}
