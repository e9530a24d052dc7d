"""Gradients of pools: each window hands its gradient to its pixels.

Windows overlap, so a pixel's sum is complete only after the last of them: a task adds up some
channels of a whole image in a workspace, window by window, and then writes the epilogue. The first
of the largest elements of a window is searched again, which is cheaper than storing its index in
the forward.

Lanes run along the channels; a window that is all inside of the image is written out, one at the
border has loops over the part of it that is. With fewer channels than lanes they go one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from composite.compiler.tvm.codegen.access import Lane, Strided, strided
from composite.compiler.tvm.ir.anchors import PoolGradient
from composite.compiler.tvm.ir.dims import ceildiv
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE, compute_dtype
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math.numeric import choose, equal, from_storage, like
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cost import chain_cost
from composite.compiler.tvm.strategy.cpu.product.blocking import guess
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
    spread,
)

_WRITTEN_OUT = 9
"""Elements of a window at most that are written out."""


class Unpool:
    """Stages whose anchor is the gradient of a pool."""

    name = "unpool"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take gradients of pools."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, PoolGradient):
            return None
        node, channels = anchor.node, anchor.node.gradient.shape[3]
        lies = [strided(t, context.space) for t in node.operands]
        stored = [one for one in lies if one is not None]
        if not isinstance(channels, int) or len(stored) < len(lies):
            return None
        return _Writer(stage, node, stored, channels, context)


@dataclass(frozen=True)
class _Place:
    """A window: image, row and column, the pixel that it begins at, and its part ``[low, high)``.

    ``is_whole`` if that is all of it.
    """

    at: tuple[Expr, Expr, Expr]
    first: tuple[Expr, Expr]
    low: tuple[Expr | int, Expr | int]
    high: tuple[Expr | int, Expr | int]
    is_whole: bool


@dataclass(frozen=True)
class _Vector:
    """Some channels: the first, and where they are within a pixel of the workspace."""

    channel: Expr | int
    slot: Expr | int


class _Writer:
    def __init__(
        self,
        stage: Stage,
        node: PoolGradient,
        stored: Sequence[Strided],
        channels: int,
        context: Context,
    ) -> None:
        self._stage = stage
        self._node = node
        self._context = context
        self._block = context.block
        self._window = node.window
        self._dtype = compute_dtype(node.gradient.dtype)
        lanes = context.lanes(self._dtype)
        self._lanes = lanes if channels >= lanes else 1
        self._vector = f"{self._dtype}x{lanes}" if self._lanes > 1 else self._dtype
        self._channels = channels
        self._vectors = ceildiv(channels, self._lanes)
        self._share = self._vectors_of_task()
        self._height, self._width = (context.size(d) for d in node.sizes)
        self._gradient = stored[0]
        self._image = stored[1] if len(stored) > 1 else None

    def _vectors_of_task(self) -> int:
        images = max(1, guess(self._node.gradient.shape[0]))
        pieces = ceildiv(2 * self._context.target.cores, images)
        pixels = guess(self._node.sizes[0]) * guess(self._node.sizes[1])
        size = max(1, pixels) * self._lanes * ITEM_SIZE[self._dtype]
        held = max(1, self._context.machine.held // size)
        return ceildiv(self._vectors, max(ceildiv(self._vectors, held), pieces))

    def write(self) -> None:
        """Write the loop over images and groups of channels."""
        context, block = self._context, self._block
        images = context.size(self._node.gradient.shape[0])
        groups = ceildiv(self._vectors, self._share)
        rows, columns = (context.size(c) for c in self._window.counts)
        size = self._window.size[0] * self._window.size[1]
        work = rows * columns * (size * 4) + self._height * self._width * (
            chain_cost(self._stage, context) + 2
        )

        def body(task: Expr) -> None:
            image = block.bind(index(quotient(task, groups)), "image")
            first = block.bind(index(remainder(task, groups) * self._share), "vector")
            count = block.bind(index(minimum(self._share, self._vectors - first)), "vectors")
            pixels = self._height * self._width
            sums = block.workspace(pixels * self._pixel, self._dtype, "sums")
            with block.loop(pixels * self._share, "z") as z:
                block.store(sums, z * self._lanes, const(0, self._vector))
            with block.loop(rows, "row") as r, block.loop(columns, "column") as c:
                self._window_at((image, r, c), (first, count), sums)
            with block.loop(pixels, "pixel") as p, block.loop(count, "j") as j:
                vector = self._nth(first, j)
                value = block.load(sums, p * self._pixel + vector.slot, self._lanes)
                at = vector.channel
                place = [image * pixels + p, Lane(at, self._lanes) if self._lanes > 1 else at]
                write_epilogue(context, self._stage, place, value)

        tasks(context, images * groups, images * work * self._vectors, body)

    @property
    def _pixel(self) -> int:
        """Elements of a pixel of the workspace."""
        return self._share * self._lanes

    def _nth(self, first: Expr | int, j: Expr) -> _Vector:
        start = minimum((first + j) * self._lanes, self._channels - self._lanes)
        return _Vector(self._block.bind(index(start), "channel"), j * self._lanes)

    def _window_at(
        self, at: tuple[Expr, Expr, Expr], vectors: tuple[Expr | int, Expr | int], sums: Buffer
    ) -> None:
        """Write a window, whole or in part, for some vectors from the first on."""
        block, window = self._block, self._window
        firsts, lows, highs = [], [], []
        for axis, size in enumerate((self._height, self._width)):
            apart = window.dilations[axis]
            first = block.bind(index(at[1 + axis] * window.strides[axis] - window.before[axis]))
            low = ceil_quotient(maximum(0, 0 - first), apart)
            high = minimum(ceil_quotient(maximum(0, size - first), apart), window.size[axis])
            firsts.append(first)
            lows.append(block.bind(index(low), "low"))
            highs.append(block.bind(index(high), "high"))
        low, high = (lows[0], lows[1]), (highs[0], highs[1])
        first = (firsts[0], firsts[1])

        def write(*, is_whole: bool) -> None:
            place = _Place(at, first, low, high, is_whole)
            with block.loop(vectors[1], "j") as j:
                self._give(place, self._nth(vectors[0], j), sums)

        if window.size[0] * window.size[1] > _WRITTEN_OUT:
            write(is_whole=False)
            return
        number = (high[0] - low[0]) * (high[1] - low[1])
        with block.when(tirx.EQ(number, index(window.size[0] * window.size[1]))):
            write(is_whole=True)
        with block.otherwise():
            write(is_whole=False)

    def _give(self, place: _Place, vector: _Vector, sums: Buffer) -> None:
        """Add some channels of a window's gradient to the pixels that it is due to."""
        block = self._block
        gradient = self._load(self._gradient, place.at, vector)
        if self._image is None:
            number = (place.high[0] - place.low[0]) * (place.high[1] - place.low[1])
            share = const(1, self._dtype) / tirx.Cast(self._dtype, index(number))
            gradient = block.let(gradient * spread(share, self._lanes))
            chosen = None
        else:
            chosen = self._largest(self._image, place, vector)

        def add(row: Expr | int, column: Expr | int) -> None:
            pixel = self._pixel_of(place, row, column)
            to = block.bind((pixel[0] * self._width + pixel[1]) * self._pixel + vector.slot, "to")
            part = gradient
            if self._image is not None:
                own = self._number(row, column)
                if self._node.to_all:
                    own = self._load(self._image, (place.at[0], *pixel), vector)
                part = choose(equal(chosen, own), gradient, like(0.0, gradient))
            block.store(sums, to, block.load(sums, to, self._lanes) + part)

        self._each(place, add)

    def _largest(self, image: Strided, place: _Place, vector: _Vector) -> Expr:
        """Return the largest element of a window, or the number of the first one, as a float."""
        block = self._block
        best = block.registers(2, self._vector)  # the element and its number
        first = [place.low[i] if not place.is_whole else 0 for i in range(2)]
        pixel = self._pixel_of(place, *first)
        block.store(best, 0, self._load(image, (place.at[0], *pixel), vector))
        block.store(best, 1, self._number(*first))

        def compare(row: Expr | int, column: Expr | int) -> None:
            pixel = self._pixel_of(place, row, column)
            value = self._load(image, (place.at[0], *pixel), vector)
            so_far = block.let(tirx.BufferLoad(best, [index(0)]))
            number = block.let(tirx.BufferLoad(best, [index(1)]))
            block.store(best, 0, choose(value > so_far, value, so_far))
            block.store(best, 1, choose(value > so_far, self._number(row, column), number))

        self._each(place, compare)
        return block.let(tirx.BufferLoad(best, [index(0 if self._node.to_all else 1)]))

    def _each(self, place: _Place, body: Callable[[Expr | int, Expr | int], None]) -> None:
        """Write something for each element of a window that is inside, in order."""
        if place.is_whole:
            for row in range(self._window.size[0]):
                for column in range(self._window.size[1]):
                    body(row, column)
            return
        with (
            self._block.loop(place.high[0] - place.low[0], "r") as r,
            self._block.loop(place.high[1] - place.low[1], "c") as c,
        ):
            body(self._block.bind(place.low[0] + r, "r"), self._block.bind(place.low[1] + c, "c"))

    def _pixel_of(
        self, place: _Place, row: Expr | int, column: Expr | int
    ) -> tuple[Expr | int, Expr | int]:
        down, across = self._window.dilations
        return place.first[0] + row * down, place.first[1] + column * across

    def _number(self, row: Expr | int, column: Expr | int) -> Expr:
        number = row * self._window.size[1] + column
        if isinstance(number, int):
            return const(number, self._vector)
        return spread(tirx.Cast(self._dtype, number), self._lanes)

    def _load(self, lies: Strided, at: Sequence[Expr | int], vector: _Vector) -> Expr:
        """Return some channels of a pixel, or of a window."""
        place = lies.offset
        for i, stride in zip((*at, vector.channel), lies.strides, strict=True):
            place = place + i * stride
        raw = self._block.load(lies.storage.buffer, place, self._lanes, lies.strides[-1])
        return self._block.let(from_storage(self._block.let(raw), lies.storage.dtype))
