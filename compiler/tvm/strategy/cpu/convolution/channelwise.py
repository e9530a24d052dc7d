"""Windows that stay within a channel: pooling, and convolutions channel by channel.

Lanes run along the channels. Neighbouring windows are computed together: each pixel, and each of
the filter's vectors, is loaded once for all of them. The image is read in place. The rows of a
window that are inside of the image are the same for a whole line of windows, and bound a loop. A
line of known length is cut into equal spans of windows, those at its ends without the columns
outside. Any other is cut into windows whose columns are all inside, which are written out, and
windows at its ends, which have a loop over the columns inside. So no loop has a condition in it.
Of the padding, which is zero, only the filter is read: zero times an infinity is no number.

A task is a line of windows; where there are few lines, it is of some channels. Instead of a tail of
channels, the last vector overlaps its neighbour; channels fewer than lanes are computed one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tvm import tirx

from composite.compiler.tvm.codegen.access import Lane
from composite.compiler.tvm.ir.anchors import Convolution, Pool
from composite.compiler.tvm.ir.dims import ceildiv
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.numeric import literal
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cost import chain_cost
from composite.compiler.tvm.strategy.cpu.convolution.spans import (
    WIDEST,
    Span,
    column,
    known_spans,
    together,
)
from composite.compiler.tvm.strategy.cpu.convolution.taps import Channels, Taps
from composite.compiler.tvm.strategy.cpu.product.tile import PIECE
from composite.compiler.tvm.strategy.epilogue import write_epilogue
from composite.compiler.tvm.strategy.tasks import tasks
from composite.compiler.tvm.tir.block import (
    Buffer,
    ceil_quotient,
    const,
    index,
    lanes_of,
    maximum,
    minimum,
    quotient,
    remainder,
    spread,
)


class ChannelWise:
    """Stages whose anchor is a pool, or a convolution in as many groups as channels."""

    name = "channelwise"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take them, unless a channel has filters enough to be vectors of their own."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, Pool | Convolution):
            return None
        node = anchor.node
        taps = Taps.of(node, context)
        if taps is None:
            return None
        if isinstance(node, Convolution):
            few = taps.is_backwards or taps.multiplier < context.lanes(node.image.dtype)
            if not _is_by_channel(node) or not few:
                return None
        return _Writer(stage, node, taps, context)


def _is_by_channel(node: Convolution) -> bool:
    """Return whether there are as many groups as channels, and more than one."""
    _, _, channels, filters = node.filter.shape
    if node.transposed:
        return channels != 1 and node.image.shape[3] == channels * filters
    return channels == 1 and node.image.shape[3] != 1


@dataclass(frozen=True)
class _Line:
    """A line of windows: the number of its first one, its image, and its rows of that.

    Windows begin in row ``top``; their rows ``[low, high)`` are inside of the image.
    """

    first: Expr | int
    image: Expr | int
    top: Expr | int
    low: Expr | int
    high: Expr | int


@dataclass(frozen=True)
class _Part:
    """Of the windows of a span: the column of the first one, and of each, the columns inside."""

    span: Span
    left: Expr | int
    low: Expr | int
    high: Expr | int


class _Writer:
    def __init__(
        self, stage: Stage, node: Pool | Convolution, taps: Taps, context: Context
    ) -> None:
        self._stage = stage
        self._node = node
        self._context = context
        self._block = context.block
        self._window = node.window
        self._taps = taps
        self._dtype = compute_dtype(node.image.dtype)
        self._lanes = context.lanes(self._dtype)
        _, self._height, self._width, self._channels = (context.size(d) for d in node.image.shape)
        if taps.is_backwards:
            self._channels = quotient(self._channels, taps.multiplier)

    def write(self) -> None:
        """Write the loop over lines of windows."""
        context, block, window = self._context, self._block, self._window
        rows, columns = (context.size(c) for c in window.counts)
        lines = context.size(self._node.image.shape[0]) * rows
        steps = window.size[0] * window.size[1] + chain_cost(self._stage, context)
        all_vectors = ceil_quotient(self._channels, self._lanes)
        spans = known_spans(window, columns, self._width)
        left, right = (0, 0) if spans else self._inside(columns)
        parts = self._parts(lines)
        share = ceil_quotient(all_vectors, parts)

        def body(task: Expr) -> None:
            line = self._line(block.bind(quotient(task, parts), "line"), rows, columns)
            first = block.bind(remainder(task, parts) * share, "vector")
            vectors = (first, minimum(share, all_vectors - first) if parts > 1 else all_vectors)
            if spans:
                self._over_spans(line, spans, vectors)
            else:
                self._over_windows(line, columns, (left, right), vectors)

        cycles = lines * columns * (all_vectors * self._taps.multiplier) * steps
        tasks(context, lines * parts, cycles, body)

    def _parts(self, lines: Expr | int) -> int:
        """Return how many tasks divide the channels of a line, if few lines are known."""
        wanted, channels = 2 * self._context.target.cores, self._channels
        if not isinstance(lines, int) or not isinstance(channels, int) or lines >= wanted:
            return 1
        vectors = ceildiv(channels, self._lanes)
        return ceildiv(vectors, ceildiv(vectors, ceildiv(wanted, max(1, lines))))

    def _over_spans(
        self, line: _Line, spans: list[Span], vectors: tuple[Expr | int, Expr | int]
    ) -> None:
        """Write a line of known spans: a loop over those that are inside, the others by name."""
        block = self._block
        inside = [span for span in spans if not span.outside]
        for span in spans:
            if span.outside or len(inside) == 1:
                self._over_channels(line, span, vectors)
        if len(inside) > 1:
            (begin, *_, last), count = (span.first for span in inside), inside[0].count
            with block.loop(len(inside), "span") as p:
                first = index(minimum(begin + p * count, last))
                self._over_channels(line, Span(block.bind(first, "window"), count), vectors)

    def _over_windows(
        self,
        line: _Line,
        columns: Expr | int,
        inside: tuple[Expr | int, Expr | int],
        vectors: tuple[Expr | int, Expr | int],
    ) -> None:
        """Write a line of windows, whose columns are ``inside`` from one to before another."""
        block, (left, right), count = self._block, inside, together(self._window)
        with block.loop(left + (columns - right), "window") as b:
            o = tirx.Select(b < index(left), b, b + (index(right) - index(left)))
            self._over_channels(line, Span(block.bind(o, "window"), 1, at_border=True), vectors)
        with block.loop(ceil_quotient(right - left, count), "piece") as p:
            first = block.bind(index(minimum(left + p * count, right - count)), "window")
            self._over_channels(line, Span(first, count), vectors)

    def _line(self, number: Expr, rows: Expr | int, columns: Expr | int) -> _Line:
        block, window = self._block, self._window
        apart = window.dilations[0]
        top = block.bind(index(remainder(number, rows) * window.strides[0] - window.before[0]))
        return _Line(
            first=block.bind(index(number * columns), "first"),
            image=block.bind(index(quotient(number, rows)), "image"),
            top=top,
            low=block.bind(index(ceil_quotient(maximum(0, 0 - top), apart)), "low"),
            high=block.bind(self._end(self._height, top, 0), "high"),
        )

    def _end(self, size: Expr | int, first: Expr | int, axis: int) -> Expr | int:
        """Return the first row (column) of a window that is past the image's end."""
        inside = ceil_quotient(maximum(0, size - first), self._window.dilations[axis])
        return index(minimum(inside, self._window.size[axis]))

    def _inside(self, columns: Expr | int) -> tuple[Expr | int, Expr | int]:
        """Return the bounds of the windows whose columns are all inside of the image.

        Fewer than are computed together, or too wide ones, count as windows at the border.
        """
        window = self._window
        step, before = window.strides[1], window.before[1]
        left = minimum(-(-before // step), columns)
        fitting = quotient(maximum(0, self._width + (before - window.reach[1] + step)), step)
        right = maximum(left, minimum(columns, fitting))
        if window.size[1] > WIDEST:
            right = left
        elif isinstance(left, int) and isinstance(right, int):
            right = right if right - left >= together(window) else left
        else:
            enough = index(right) - index(left) >= index(together(window))
            right = tirx.Select(enough, index(right), index(left))
        return self._block.bind(left, "left"), self._block.bind(right, "right")

    def _over_channels(
        self, line: _Line, span: Span, vectors: tuple[Expr | int, Expr | int]
    ) -> None:
        """Write windows for some vectors of channels: the first, and how many."""
        block, lanes, channels = self._block, self._lanes, self._channels
        is_long = channels >= lanes if isinstance(channels, int) else index(channels) >= lanes
        filters = 1 if self._taps.is_backwards else self._taps.multiplier
        with block.loop(filters, "m") as m:
            with block.when(is_long), block.loop(vectors[1], "j") as j:
                first = index(minimum((vectors[0] + j) * lanes, channels - lanes))
                self._windows(line, span, Channels(block.bind(first, "channel"), lanes, m))
            if is_long is not True:
                with block.when(channels < lanes), block.loop(channels, "channel") as c:
                    self._windows(line, span, Channels(c, 1, m))

    def _windows(self, line: _Line, span: Span, channels: Channels) -> None:
        """Compute some channels of the windows of a span."""
        block, window = self._block, self._window
        dtype = self._dtype if channels.lanes == 1 else f"{self._dtype}x{channels.lanes}"
        sums = self._identities(span.count, dtype)
        left = block.bind(index(span.first * window.strides[1] - window.before[1]), "left")
        low: Expr | int = 0
        high: Expr | int = window.size[1]
        if span.at_border:
            first = ceil_quotient(maximum(0, 0 - left), window.dilations[1])
            low = block.bind(index(first), "low")
            high = block.bind(self._end(self._width, left, 1), "high")
        part = _Part(span, left, low, high)
        if self._taps.is_backwards:
            with block.loop(self._taps.multiplier, "m") as m:
                self._add_rows(sums, line, part, replace(channels, filter=m))
        else:
            self._add_rows(sums, line, part, channels)
        for i in range(span.count):
            places = [column(window, i, k) for k in range(window.size[1])]
            outside = sum(1 for place in places if place in span.outside)
            number = (line.high - line.low) * (high - low - outside)
            self._write_epilogue(
                block.bind(line.first + span.first + i, "row"),
                channels,
                self._mean(tirx.BufferLoad(sums, [index(i)]), number),
            )

    def _add_rows(self, sums: Buffer, line: _Line, part: _Part, channels: Channels) -> None:
        """Add the rows of windows."""
        block, window, count = self._block, self._window, part.span.count
        is_large = window.size[0] * window.size[1] > PIECE
        with block.loop(line.high - line.low, "row") as r:
            row = block.bind(line.low + r, "row")
            parts = self._identities(count, sums.dtype) if is_large else sums
            below = line.top + row * window.dilations[0]
            at = self._taps.line(line.image, below, part.left, channels)
            if part.span.at_border:
                with block.loop(part.high - part.low, "column") as k:
                    tap = block.bind(part.low + k, "column")
                    pixel = self._taps.pixel(at, tap * window.dilations[1], channels.lanes)
                    self._add(parts, 0, pixel, self._taps.tap(row, tap, channels))
                self._add_padding(parts, 1, (row, 1), (0, part.low), channels)
                rest = (part.high, window.size[1] - part.high)
                self._add_padding(parts, 1, (row, 1), rest, channels)
            else:
                self._add_row(parts, part.span, at, row, channels)
            for i in range(count if is_large else 0):
                self._put(sums, i, tirx.BufferLoad(parts, [index(i)]))
        columns = (0, window.size[1])
        self._add_padding(sums, count, (0, line.low), columns, channels)
        rest = (line.high, window.size[0] - line.high)
        self._add_padding(sums, count, rest, columns, channels)

    def _add_padding(
        self,
        sums: Buffer,
        count: int,
        rows: tuple[Expr | int, Expr | int],
        columns: tuple[Expr | int, Expr | int],
        channels: Channels,
    ) -> None:
        """Add zero times some rows and columns of the filter, the first and how many of each."""
        block = self._block
        if self._taps.filter is None:
            return
        with block.when(index(rows[1]) * columns[1] > index(0)):
            nothing = self._identities(1, sums.dtype)
            with block.loop(rows[1], "row") as r, block.loop(columns[1], "column") as k:
                row, tap = (block.bind(a + i) for a, i in ((rows[0], r), (columns[0], k)))
                self._add(nothing, 0, self._nothing(channels), self._taps.tap(row, tap, channels))
            for i in range(count):
                self._put(sums, i, tirx.BufferLoad(nothing, [index(0)]))

    def _nothing(self, channels: Channels) -> Expr:
        """Return what a pixel outside of the image is."""
        return spread(literal(0, self._dtype), channels.lanes)

    def _add_row(
        self, sums: Buffer, span: Span, at: Expr | int, row: Expr, channels: Channels
    ) -> None:
        """Add a row of windows that overlap: each pixel is loaded once, for all that it is in."""
        window = self._window
        filters = [self._taps.tap(row, k, channels) for k in range(window.size[1])]
        uses: dict[int, list[tuple[int, int]]] = {}
        for i in range(span.count):
            for k in range(window.size[1]):
                uses.setdefault(column(window, i, k), []).append((i, k))
        for place, pairs in sorted(uses.items()):
            is_outside = place in span.outside
            if is_outside and isinstance(self._node, Pool):
                continue
            pixel = (
                self._nothing(channels)
                if is_outside
                else self._taps.pixel(at, place, channels.lanes)
            )
            for i, k in pairs:
                self._add(sums, i, pixel, filters[k])

    def _identities(self, count: int, dtype: str) -> Buffer:
        identity = self._node.combine.identity(self._dtype) if isinstance(self._node, Pool) else 0
        buffer = self._block.registers(count, dtype)
        for i in range(count):
            self._block.store(buffer, i, const(identity, dtype))
        return buffer

    def _add(self, sums: Buffer, i: int, pixel: Expr, tap: Expr | None) -> None:
        self._put(sums, i, pixel if isinstance(self._node, Pool) else pixel * tap)

    def _put(self, sums: Buffer, i: int, value: Expr) -> None:
        """Add a value to a sum."""
        so_far = tirx.BufferLoad(sums, [index(i)])
        if isinstance(self._node, Pool):
            total = self._node.combine.apply(self._block, so_far, value)
        else:
            total = so_far + value
        self._block.store(sums, i, total)

    def _mean(self, total: Expr, number: Expr | int) -> Expr:
        if isinstance(self._node, Convolution) or not self._node.mean:
            return total
        share = const(1, self._dtype) / tirx.Cast(self._dtype, index(number))
        return total * spread(share, lanes_of(total))

    def _write_epilogue(self, row: Expr, channels: Channels, value: Expr) -> None:
        """Store what is made of some channels of one window."""
        first, step = self._taps.result(channels)
        at = Lane(first, channels.lanes, step) if channels.lanes > 1 else first
        write_epilogue(self._context, self._stage, [row, at], value)
