"""What windows read that stay within a channel: pixels, and the filter's elements beside them."""

from __future__ import annotations

from dataclasses import dataclass

from composite.compiler.tvm.codegen.access import Strided, strided
from composite.compiler.tvm.codegen.block import Block, index
from composite.compiler.tvm.ir.anchors import Convolution, Pool
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.numeric import from_storage
from composite.compiler.tvm.strategy.context import Context


@dataclass(frozen=True)
class Channels:
    """``lanes`` channels from ``first`` on; of the filters of each, number ``filter``."""

    first: Expr
    lanes: int
    filter: Expr


@dataclass(frozen=True)
class Taps:
    """The image and the filter of a pool or a convolution channel by channel, as they lie.

    Attributes:
        block: Where loads are written.
        image: Images ``[N, H, W, C]``.
        filter: ``[rows, columns, 1, C * multiplier]``; None for a pool.
        multiplier: Filters of a channel.
    """

    block: Block
    image: Strided
    filter: Strided | None
    multiplier: int

    @classmethod
    def of(cls, node: Pool | Convolution, context: Context) -> Taps | None:
        """Return the taps of an anchor; None if they do not lie in memory, or sizes are unknown."""
        image = strided(node.image, context.space)
        if image is None:
            return None
        if isinstance(node, Pool):
            return cls(context.block, image, None, 1)
        channels, filters = node.image.shape[3], node.filter.shape[3]
        lies = strided(node.filter, context.space)
        if lies is None or not isinstance(channels, int) or not isinstance(filters, int):
            return None
        return cls(context.block, image, lies, filters // channels)

    def line(self, image: Expr, row: Expr, column: Expr, channels: Channels) -> Expr | int:
        """Return where a pixel's channels begin; rows and columns may lie outside."""
        of_image, of_row, of_column, of_channel = self.image.strides
        place = image * of_image + row * of_row + column * of_column + channels.first * of_channel
        return self.block.bind(index(self.image.offset + place), "line")

    def pixel(self, line: Expr | int, column: Expr | int, lanes: int) -> Expr:
        """Return the channels of the pixel so many columns after the one that ``line`` is."""
        return self._load(self.image, line + column * self.image.strides[2], lanes, 1)

    def tap(self, row: Expr, column: Expr | int, channels: Channels) -> Expr | None:
        """Return the filter's elements at a row and a column of the window."""
        if self.filter is None:
            return None
        of_row, of_column, _, of_filter = self.filter.strides
        first = channels.first * self.multiplier + channels.filter
        place = row * of_row + column * of_column + first * of_filter
        return self._load(self.filter, self.filter.offset + place, channels.lanes, self.multiplier)

    def _load(self, lies: Strided, at: Expr | int, lanes: int, step: int) -> Expr:
        raw = self.block.load(lies.storage.buffer, at, lanes, lies.strides[-1] * step)
        return self.block.let(from_storage(self.block.let(raw), lies.storage.dtype))
