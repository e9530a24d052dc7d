"""Gradients of filters channel by channel: sums over the windows of each image.

A task is some channels of an image, a vector of them. It goes over the image a band of lines of
windows at a time: it copies the pixels of its channels into a strip, padded with zeros, and adds up
the products of some of the window's elements in registers, for which each gradient is loaded once.
The sums of the bands are added to those of the image, which are therefore sums of short sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Lane, strided
from composite.compiler.tvm.ir.anchors import ChannelFilterGradient
from composite.compiler.tvm.ir.dims import ceildiv
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE, compute_dtype
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cpu.product.blocking import guess
from composite.compiler.tvm.strategy.cpu.product.tile import PIECE
from composite.compiler.tvm.strategy.epilogue import write_epilogue
from composite.compiler.tvm.strategy.tasks import tasks
from composite.compiler.tvm.tir.block import (
    Buffer,
    ceil_quotient,
    const,
    index,
    maximum,
    minimum,
    quotient,
    remainder,
)

_TOGETHER = 12
"""Elements of a window that are added up together: sums in as many registers."""


class ChannelFilters:
    """Stages whose anchor is the gradient of filters channel by channel."""

    name = "channel_filters"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take those of a known number of channels."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, ChannelFilterGradient):
            return None
        node = anchor.node
        channels, filters = node.image.shape[3], node.gradient.shape[3]
        lies = [strided(t, context.space) for t in node.operands]
        if not isinstance(channels, int) or not isinstance(filters, int) or None in lies:
            return None
        return _Writer(stage, node, (channels, filters // channels), context)


@dataclass(frozen=True)
class _Band:
    """Lines of windows of an image: the first, how many, and the pixels they read of a channel."""

    image: Expr | int
    channel: Expr | int
    first: Expr | int
    lines: Expr | int
    strip: Buffer


@dataclass(frozen=True)
class _Taps:
    """Elements of the filter that are added up together: ``down`` x ``across`` from one on.

    They are of filter number ``filter`` of each channel.
    """

    row: Expr
    column: Expr
    filter: Expr
    down: int
    across: int

    @property
    def count(self) -> int:
        """How many there are."""
        return self.down * self.across

    def place(self, n: int) -> tuple[Expr, Expr]:
        """Return the row and the column of one of them."""
        return self.row + n // self.across, self.column + n % self.across


class _Writer:
    def __init__(
        self, stage: Stage, node: ChannelFilterGradient, sizes: tuple[int, int], context: Context
    ) -> None:
        self._stage = stage
        self._node = node
        self._context = context
        self._block = context.block
        self._window = node.window
        self._channels, self._multiplier = sizes
        self._dtype = compute_dtype(node.image.dtype)
        lanes = context.lanes(self._dtype)
        self._lanes = lanes if self._channels >= lanes else 1
        self._vector = f"{self._dtype}x{lanes}" if self._lanes > 1 else self._dtype
        self._height, self._width = (context.size(d) for d in node.image.shape[1:3])
        last = (context.size(node.window.counts[1]) - 1) * node.window.strides[1]
        self._line = (last + node.window.reach[1]) * self._lanes  # of the strip, in elements
        self._most = self._lines_at_a_time()

    def _lines_at_a_time(self) -> int:
        """Return the lines of windows whose pixels half of the cache holds."""
        lines, width = (guess(c) for c in self._node.window.counts)
        reach, step = self._window.reach[0], self._window.strides
        row = (width * step[1] + self._window.reach[1]) * self._lanes * ITEM_SIZE[self._dtype]
        held = (self._context.machine.held // 2 // row - reach) // step[0] + 1
        return max(1, min(lines, held))

    def write(self) -> None:
        """Write the loop over images and vectors of channels."""
        context, block = self._context, self._block
        images = context.size(self._node.image.shape[0])
        lines, columns = (context.size(c) for c in self._window.counts)
        taps = self._window.size[0] * self._window.size[1]
        vectors = ceildiv(self._channels, self._lanes)
        needed = (self._most - 1) * self._window.strides[0] + self._window.reach[0]

        def body(task: Expr) -> None:
            image = block.bind(index(quotient(task, vectors)), "image")
            place = minimum(remainder(task, vectors) * self._lanes, self._channels - self._lanes)
            channel = block.bind(index(place), "channel")
            strip = block.workspace(self._line * needed, self._dtype, "strip")
            sums = block.workspace(taps * self._multiplier * self._lanes, self._dtype, "sums")
            with block.loop(taps * self._multiplier, "z") as z:
                block.store(sums, z * self._lanes, const(0, self._vector))
            with block.loop(ceil_quotient(lines, self._most), "band") as number:
                first = block.bind(index(number * self._most), "first")
                count = block.bind(index(minimum(self._most, lines - first)), "lines")
                band = _Band(image, channel, first, count, strip)
                self._copy(band)
                with block.loop(self._multiplier, "m") as m:
                    self._add(band, m, columns, sums)
            with block.loop(taps, "tap") as tap, block.loop(self._multiplier, "m") as m:
                value = block.load(sums, (tap * self._multiplier + m) * self._lanes, self._lanes)
                at = (tap * self._channels + channel) * self._multiplier + m
                write_epilogue(context, self._stage, [image, self._lane(at)], value)

        work = images * lines * columns * (vectors * self._multiplier * (taps + 2))
        tasks(context, images * vectors, work, body)

    def _lane(self, first: Expr) -> Index:
        return Lane(first, self._lanes, self._multiplier) if self._lanes > 1 else first

    def _copy(self, band: _Band) -> None:
        """Copy the pixels that a band reads, and zeros around them."""
        block, window = self._block, self._window
        top, left = window.before
        columns = quotient(self._line, self._lanes)
        before = minimum(left, columns)
        inside = maximum(0, minimum(self._width, columns - left))
        rows = (band.lines - 1) * window.strides[0] + window.reach[0]
        with block.loop(rows, "r") as r:
            row = block.bind(band.first * window.strides[0] + r - top, "row")
            to = block.bind(r * self._line, "to")
            with block.when(tirx.And(row >= index(0), row < index(self._height))):
                self._clear(band.strip, to, before)
                with block.loop(inside, "column") as column:
                    at: list[Index] = [band.image, row, column, band.channel]
                    if self._lanes > 1:
                        at[3] = Lane(band.channel, self._lanes)
                    value = self._context.access().read(self._node.image, at)
                    block.store(band.strip, to + (before + column) * self._lanes, value)
                rest = columns - before - inside
                self._clear(band.strip, to + (before + inside) * self._lanes, rest)
            with block.otherwise():
                self._clear(band.strip, to, columns)

    def _clear(self, strip: Buffer, first: Expr | int, columns: Expr | int) -> None:
        with self._block.loop(columns, "z") as z:
            self._block.store(strip, first + z * self._lanes, const(0, self._vector))

    def _add(self, band: _Band, m: Expr, columns: Expr | int, sums: Buffer) -> None:
        """Add the products of a band to the sums of one filter of each channel."""
        block, (rows, width) = self._block, self._window.size
        across = _largest_part(width, _TOGETHER)
        down = _largest_part(rows, _TOGETHER // across)
        piece = max(1, PIECE // max(1, guess(self._window.counts[1])))  # lines
        with (
            block.loop(rows // down, "rows") as i,
            block.loop(width // across, "columns") as j,
            block.loop(ceil_quotient(band.lines, piece), "piece") as p,
        ):
            taps = _Taps(i * down, j * across, m, down, across)
            parts = block.registers(taps.count, self._vector)
            for n in range(taps.count):
                block.store(parts, n, const(0, self._vector))
            lines = block.bind(index(minimum(piece, band.lines - p * piece)), "lines")
            with block.loop(lines, "line") as line, block.loop(columns, "window") as o:
                self._multiply(band, (p * piece + line, o), taps, parts)
            for n in range(taps.count):
                row, column = taps.place(n)
                to = ((row * width + column) * self._multiplier + m) * self._lanes
                total = block.load(sums, to, self._lanes) + tirx.BufferLoad(parts, [index(n)])
                block.store(sums, to, total)

    def _multiply(self, band: _Band, at: tuple[Expr, Expr], taps: _Taps, parts: Buffer) -> None:
        """Add what one window adds to some elements of the filter."""
        block, window = self._block, self._window
        line, o = at
        channel = self._lane(band.channel * self._multiplier + taps.filter)
        place = [band.image, band.first + line, o, channel]
        given = block.let(self._context.access().read(self._node.gradient, place))
        for n in range(taps.count):
            row, column = taps.place(n)
            down = line * window.strides[0] + row * window.dilations[0]
            right = o * window.strides[1] + column * window.dilations[1]
            pixel = block.load(band.strip, down * self._line + right * self._lanes, self._lanes)
            block.store(parts, n, tirx.BufferLoad(parts, [index(n)]) + pixel * given)


def _largest_part(number: int, most: int) -> int:
    """Return the largest divisor of a number that is at most ``most``."""
    return max(n for n in range(1, max(1, min(number, most)) + 1) if number % n == 0)
