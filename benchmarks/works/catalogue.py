"""Which works are measured: every shape and form that the pages of docs/performance/ show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from benchmarks.works.layers import Shape
from benchmarks.works.work import Work

DENSE: list[Shape] = [
    (1, 1024, 1024),
    (32, 1024, 1024),
    (128, 512, 512),
    (1, 256, 256),
    (256, 64, 64),
    (7, 300, 1000),
    (33, 17, 129),
]
MATMUL: list[Shape] = [(1024,), (256,)]
ROWS: list[Shape] = [(2000, 1024), (128, 768), (8, 100)]
CHAINS: list[Shape] = [(2000, 1024)]
CONV: list[Shape] = [(32, 14, 14, 32, 64), (32, 28, 28, 1, 32)]
ATTENTION: list[Shape] = [(8, 128, 64)]
RECURRENT: list[Shape] = [
    (1, 100, 128, 128),
    (8, 50, 256, 256),
    (32, 32, 512, 512),
    (1, 1, 128, 128),
    (1, 32, 1024, 1024),
    (5, 20, 96, 200),
]

_ROW_KINDS = ("softmax", "layer norm", "RMS norm")
_CHAIN_KINDS = ("gated", "GELU")
_RECURRENT_KINDS = ("LSTM", "GRU")

_QUICK = {
    ("dense", (32, 1024, 1024)),
    ("dense", (1, 256, 256)),
    ("softmax", (2000, 1024)),
    ("gated", (2000, 1024)),
    ("LSTM", (5, 20, 96, 200)),
}


def groups(*, quick: bool = False, kinds: Collection[str] = ()) -> Iterator[list[Work]]:
    """The works, those of one kind and shape together, in the order in which they are shown.

    Of `kinds` all works, however quick the run is; without any, those of all kinds.
    """
    for kind, shape in _shapes():
        works = _WORKS.get(kind, _other)(kind, shape)
        if kinds:
            works = works if kind in kinds else []
        elif quick:
            works = works[1::4] if (kind, shape) in _QUICK else []
        if works:
            yield list(dict.fromkeys(works))  # a stack of one is a call


def growths(
    *, quick: bool = False, kinds: Collection[str] = ()
) -> Iterator[tuple[str, list[Work]]]:
    """Works that grow in one dim, by the name of what grows; those of `kinds`, or of all."""
    for name, works in _growths(quick=quick):
        if not kinds or any(work.kind in kinds for work in works):
            yield name, works


def _growths(*, quick: bool) -> Iterator[tuple[str, list[Work]]]:
    batches = [1, 4, 16, 64, 256, 512]
    widths = [64, 128, 256, 512, 1024, 2048]
    rows = [32, 128, 512, 2048, 16384]
    lengths = [1, 4, 16, 64, 256]
    if quick:
        batches, widths, rows, lengths = batches[::3], [], rows[1:2], lengths[1:2]
    yield "dense of 512 over the batch", [_node("dense", (m, 512, 512)) for m in batches]
    yield "dense of batch 32 over the width", [_node("dense", (32, n, n)) for n in widths]
    yield "softmax of 256 rows over the width", [_node("softmax", (256, n)) for n in rows]
    yield "LSTM of 128 over the length", [_node("LSTM", (1, t, 128, 128)) for t in lengths]


def _shapes() -> Iterator[tuple[str, Shape]]:
    yield from (("dense", shape) for shape in DENSE)
    yield from (("matmul", shape) for shape in MATMUL)
    yield from ((kind, shape) for kind in _ROW_KINDS for shape in ROWS)
    yield from ((kind, shape) for kind in _CHAIN_KINDS for shape in CHAINS)
    yield from (("conv 3x3", shape) for shape in CONV)
    yield from (("attention", shape) for shape in ATTENTION)
    yield from ((kind, shape) for kind in _RECURRENT_KINDS for shape in RECURRENT)


def _node(kind: str, shape: Shape) -> Work:
    return Work(kind, shape).stacked()


def _dense(kind: str, shape: Shape) -> list[Work]:
    works = []
    for constant in (False, True):
        call = Work(kind, shape, constant=constant)
        works += [call, call.stacked(), call.stacked(distinct=True)]
    return works


def _recurrent(kind: str, shape: Shape) -> list[Work]:
    calls = [Work(kind, shape, constant=constant) for constant in (False, True)]
    return [work for call in calls for work in (call, call.stacked())]


def _other(kind: str, shape: Shape) -> list[Work]:
    # Weights of a normalization or a convolution are a model's own; the others are computed.
    call = Work(kind, shape, constant=kind not in ("matmul", "attention"))
    return [call, call.stacked()]


_WORKS: dict[str, Callable[[str, Shape], list[Work]]] = {
    "dense": _dense,
    "LSTM": _recurrent,
    "GRU": _recurrent,
}
