"""How lines of windows are cut."""

from __future__ import annotations

import pytest
from tvm import tirx

from composite.compiler.tvm.ir.window import Window
from composite.compiler.tvm.strategy.cpu.convolution.spans import column, known_spans


def windows(size: int, stride: int, before: int, count: int, dilation: int = 1) -> Window:
    """A line of windows; their rows do not matter."""
    return Window((1, size), (1, stride), (1, dilation), (0, before), (1, count))


@pytest.mark.parametrize(
    ("width", "window", "firsts"),
    [
        (6, windows(3, 1, 1, 6), [0]),
        (12, windows(3, 1, 1, 12), [0, 6]),
        (28, windows(5, 1, 2, 28), [0, 7, 14, 21]),
        (33, windows(3, 2, 0, 17), [0, 6, 11]),  # the last one overlaps
        (20, windows(3, 1, 3, 20, dilation=3), [0, 7, 13]),
    ],
)
def test_spans_cover_a_line_and_know_what_is_outside(
    width: int, window: Window, firsts: list[int]
) -> None:
    columns = window.counts[1]
    assert isinstance(columns, int)
    spans = known_spans(window, columns, width)
    assert [span.first for span in spans] == firsts
    covered = {span.first + i for span in spans for i in range(span.count)}
    assert covered == set(range(columns))
    for span in spans:
        for i in range(span.count):
            for tap in range(window.size[1]):
                left = (span.first + i) * window.strides[1] - window.before[1]
                at = left + tap * window.dilations[1]
                is_outside = column(window, i, tap) in span.outside
                assert is_outside == (not 0 <= at < width)


@pytest.mark.parametrize(
    ("width", "window"),
    [
        (tirx.Var("width", "int64"), windows(3, 1, 1, 12)),
        (20, windows(9, 1, 4, 20)),  # wide windows
        (9, windows(3, 1, 40, 80)),  # wide padding
    ],
)
def test_others_are_not_written_out(width: int, window: Window) -> None:
    columns = window.counts[1]
    assert isinstance(columns, int)
    assert known_spans(window, columns, width) == []
