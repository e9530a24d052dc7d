"""How a line of windows is cut into spans that are computed together, where sizes are known."""

from __future__ import annotations

from dataclasses import dataclass

from composite.compiler.tvm.ir.dims import ceildiv
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.ir.window import Window

WIDEST = 7
"""Columns of a window that are written out; wider ones are read in a loop, window by window."""

_TOGETHER = 8
"""Windows computed together: enough that no sum waits for another."""

_REGISTERS = 15
"""What sums and the filter's vectors of a row may take: of 16, one is for pixels."""

_MOST_SPANS = 4
"""Spans at the ends of a line that are written out; more are of a wide padding."""


@dataclass(frozen=True)
class Span:
    """``count`` windows from ``first`` on.

    Those of their columns that are known to be ``outside`` of the image count from the first one.
    Of a single window ``at_border`` some columns may be outside.
    """

    first: Expr | int
    count: int
    outside: frozenset[int] = frozenset()
    at_border: bool = False


def together(window: Window) -> int:
    """Return how many windows are computed together at most."""
    return min(_TOGETHER, _REGISTERS - min(window.size[1], WIDEST))


def column(window: Window, number: int, tap: int) -> int:
    """Return where a column of the window of that number in a span lies, from the first one."""
    return number * window.strides[1] + tap * window.dilations[1]


def known_spans(window: Window, columns: Expr | int, width: Expr | int) -> list[Span]:
    """Return the spans of a line of windows, as equal as can be: the last one may overlap.

    Empty where sizes are the call's, or windows or the padding too wide to be written out.
    """
    if not isinstance(columns, int) or not isinstance(width, int) or columns == 0:
        return []
    if window.size[1] > WIDEST:
        return []
    count = ceildiv(columns, ceildiv(columns, together(window)))
    spans = []
    for begin in range(0, columns, count):
        first = min(begin, columns - count)
        left = first * window.strides[1] - window.before[1]
        places = {column(window, i, k) for i in range(count) for k in range(window.size[1])}
        outside = frozenset(place for place in places if not 0 <= left + place < width)
        spans.append(Span(first, count, outside))
    return spans if sum(1 for span in spans if span.outside) <= _MOST_SPANS else []
