"""What windows read that stay within a channel: pixels, and the filter's elements beside them.

A convolution channel by channel has ``multiplier`` filters for each channel of the image, and the
results of a channel lie one after the other. Backwards, the image has these, and a channel of the
result is a sum over them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from composite.compiler.tvm.codegen.access import Strided, strided
from composite.compiler.tvm.ir.anchors import Convolution, Pool
from composite.compiler.tvm.ir.dims import static_shape
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.numeric import from_storage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.tir.block import Block, index


@dataclass(frozen=True)
class Channels:
    """``lanes`` channels from ``first`` on; of the filters of each, number ``filter``.

    Channels are those that have several filters: the image's, or backwards the result's.
    """

    first: Expr
    lanes: int
    filter: Expr


@dataclass(frozen=True)
class Taps:
    """The image and the filter of a pool or a convolution channel by channel, as they lie.

    Attributes:
        block: Where loads are written.
        image: Images ``[N, H, W, C]``; backwards, ``[N, H, W, C * multiplier]``.
        filter: Elements of each row, column, channel and filter of that; None for a pool.
        multiplier: Filters of a channel.
        is_backwards: Whether a channel of the result is a sum over filters.
    """

    block: Block
    image: Strided
    filter: Strided | None
    multiplier: int
    is_backwards: bool = False

    @classmethod
    def of(cls, node: Pool | Convolution, context: Context) -> Taps | None:
        """Return the taps of an anchor; None if they do not lie in memory, or sizes are unknown."""
        image = strided(node.image, context.space)
        if image is None:
            return None
        if isinstance(node, Pool):
            return cls(context.block, image, None, 1)
        sizes = static_shape((*node.filter.shape, node.image.shape[3]))
        lies = strided(node.filter, context.space)
        if lies is None or sizes is None:
            return None
        rows, columns, _, filters, channels = sizes
        down, across, of_channel, of_filter = lies.strides
        if node.transposed:
            start = lies.offset + (rows - 1) * down + (columns - 1) * across
            taps = replace(lies, offset=start, strides=(-down, -across, of_channel, of_filter))
            return cls(context.block, image, taps, filters, is_backwards=True)
        multiplier = filters // channels
        taps = replace(lies, strides=(down, across, of_filter * multiplier, of_filter))
        return cls(context.block, image, taps, multiplier)

    def line(self, image: Expr, row: Expr, column: Expr, channels: Channels) -> Expr | int:
        """Return where a pixel's channels begin; rows and columns may lie outside."""
        of_image, of_row, of_column, of_channel = self.image.strides
        place = image * of_image + row * of_row + column * of_column
        place = place + self._first(channels) * of_channel
        return self.block.bind(index(self.image.offset + place), "line")

    def pixel(self, line: Expr | int, column: Expr | int, lanes: int) -> Expr:
        """Return the channels of the pixel so many columns after the one that ``line`` is."""
        *_, of_column, of_channel = self.image.strides
        step = self.multiplier if self.is_backwards else 1
        return self._load(self.image, line + column * of_column, lanes, of_channel * step)

    def _first(self, channels: Channels) -> Expr | int:
        """Return the first of the image's channels that are read."""
        if not self.is_backwards:
            return channels.first
        return channels.first * self.multiplier + channels.filter

    def result(self, channels: Channels) -> tuple[Expr | int, int]:
        """Return the first of the result's channels that are made, and how far they are apart."""
        if self.is_backwards:
            return channels.first, 1
        return channels.first * self.multiplier + channels.filter, self.multiplier

    def tap(self, row: Expr, column: Expr | int, channels: Channels) -> Expr | None:
        """Return the filter's elements at a row and a column of the window."""
        if self.filter is None:
            return None
        of_row, of_column, of_channel, of_filter = self.filter.strides
        place = row * of_row + column * of_column
        place = place + channels.first * of_channel + channels.filter * of_filter
        return self._load(self.filter, self.filter.offset + place, channels.lanes, of_channel)

    def _load(self, lies: Strided, at: Expr | int, lanes: int, step: Expr | int) -> Expr:
        raw = self.block.load(lies.storage.buffer, at, lanes, step)
        return self.block.let(from_storage(self.block.let(raw), lies.storage.dtype))
