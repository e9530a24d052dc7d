"""Convolutions as products without the matrix of windows: rows are windows, columns are filters.

The register tile of :mod:`.tile` broadcasts elements of the image and has vectors along the
filters, which :mod:`.pack` has packed. What a row of the product is read from is the image where it
lies: ``starts`` holds where each window of the task begins, and from there on a row of the window
is one contiguous run of pixels and channels (without dilation), the next row of it a line further.

If windows reach over the border, or the image lies otherwise than it is computed with, the task
first copies the lines it needs into a strip with zeros around: a part of the work as small as one
filter's. So no loop has a condition on the place within the image.

A task is some lines of windows of one image, or several small images, times a group of vectors.
:mod:`.finish` runs the element-wise rest, tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from .. import graph
from ..access import Index, Lane
from ..block import Buffer, ceil_quotient, index, minimum, quotient, remainder
from ..dims import Dim
from ..graph import ITEM_SIZE, Convolution, Expr, compute_dtype
from ..plan import Stage
from .base import Context, finish, tasks
from .blocking import covers, guess
from .finish import Finisher
from .gemm_task import row_tiles
from .pack import Packer, Panels
from .strip import Strip, Task, reshaped
from .tile import Operands, Tile, add_products, new_sums, tiles

_PIXELS = 256
"""Windows of a task, about: enough to make packing cheap beside them."""
_FEWEST_PIXELS = 48
_STRIP_BYTES = 128 * 1024
_UNROLLED = 32
"""Products of at most so many steps are written without a loop: most are steps of short runs."""


class ImplicitProduct:
    """Stages whose anchor is a convolution."""

    name = "convolution"

    def fits(self, stage: Stage, context: Context) -> bool:  # noqa: ARG002
        """Take every convolution."""
        return stage.anchor is not None and isinstance(stage.anchor.node, Convolution)

    def emit(self, stage: Stage, context: Context) -> None:
        """Write the tasks."""
        if stage.anchor is None or not isinstance(stage.anchor.node, Convolution):
            raise TypeError("not a convolution")
        _Writer(stage, stage.anchor.node, context).write()


@dataclass(frozen=True)
class Columns:
    """What the sums of one group of filters are finished into."""

    stage: Stage
    dtype: str
    offset: Expr | int

    def finish(self, context: Context, at: Sequence[Index], total: Expr) -> None:
        """Store what is made of one element, or one vector, of the sums."""
        row, column = at
        if isinstance(column, Lane):
            column = Lane(column.base + self.offset, column.lanes, column.step)
        else:
            column = column + self.offset
        finish(context, self.stage, [row, column], total)


class _Writer:
    def __init__(self, stage: Stage, node: Convolution, context: Context) -> None:
        self._stage = stage
        self._node = node
        self._context = context
        self._block = context.block
        self._dtype = compute_dtype(node.image.dtype)
        self._lanes = context.lanes(self._dtype)
        kernel = node.filter.shape
        self._rows, self._run, self._depth, filters = (_known(d) for d in kernel)
        self._channels = _known(node.image.shape[3])
        self._groups = self._channels // self._depth
        self._count = filters // self._groups
        self._k = self._rows * self._run * self._depth
        vectors = covers(self._count, self._lanes)
        self._tile = _tile(context, vectors)
        self._group = self._vectors_of_task(vectors)
        self._strip = Strip.of(node.image, node.window, context)

    def _vectors_of_task(self, vectors: int) -> int:
        """Return how many vectors of filters a task packs: what the cache holds, whole panels."""
        panel = self._k * self._tile.vectors * self._lanes * ITEM_SIZE[self._dtype]
        panels = covers(vectors, self._tile.vectors)
        most = max(1, self._context.target.cache_bytes // panel)
        return covers(panels, covers(panels, most)) * self._tile.vectors

    def write(self) -> None:
        """Write the loop over tasks: images x lines x groups of vectors x groups of channels."""
        context, block = self._context, self._block
        image, window = self._node.image, self._node.window
        images, lines = self._cut()
        line_count, width = (context.size(c) for c in window.counts)
        image_count = context.size(image.shape[0])
        parts = ceil_quotient(image_count, images)
        chunks = ceil_quotient(line_count, lines)
        vector_groups = covers(covers(self._count, self._lanes), self._group)
        shares = vector_groups * self._groups
        cycles = quotient(
            image_count * line_count * width * covers(self._count, self._lanes) * self._k, 2
        )

        def body(task: Expr) -> None:
            share = block.bind(remainder(task, shares), "share")
            place = block.bind(quotient(task, shares), "place")
            first_image = block.bind(quotient(place, chunks) * images, "image")
            first_line = block.bind(remainder(place, chunks) * lines, "line")
            own = Task(
                first_image,
                first_line,
                _rest(images, image_count, first_image),
                _rest(lines, line_count, first_line),
                images,
                lines,
            )
            group = block.bind(quotient(share, vector_groups), "group")
            start = block.bind(
                index(remainder(share, vector_groups) * (self._group * self._lanes)), "column"
            )
            self._task(own, group, start)

        tasks(context, parts * chunks * shares, cycles * self._groups, body)

    def _cut(self) -> tuple[int, int]:
        """Return how many images, and how many lines of windows of each, a task takes at most."""
        image, window = self._node.image, self._node.window
        lines, width = (guess(c) for c in window.counts)
        count = guess(image.shape[0])
        total = max(1, count * lines * width)
        pixels = min(_PIXELS, max(_FEWEST_PIXELS, total // (2 * self._context.target.cores)))
        line_bytes = guess(image.shape[2]) * self._channels * ITEM_SIZE[self._dtype]
        most = max(1, _STRIP_BYTES // max(1, line_bytes * window.strides[0]))
        share = max(1, min(pixels // max(1, width), most))
        if not isinstance(window.counts[0], int):
            return 1, share
        if share < lines:
            return 1, covers(lines, covers(lines, share))
        share = max(1, min(pixels // max(1, lines * width), most // max(1, lines)))
        return covers(count, covers(count, share)) if count else 1, max(1, lines)

    def _task(self, task: Task, group: Expr, start: Expr) -> None:
        """Pack, gather the image, then multiply and finish one tile after the other."""
        block, lanes = self._block, self._lanes
        shape = (self._k, self._groups, self._count)
        kernel = reshaped(self._node.filter, shape, self._context)
        kernel = graph.transpose(kernel, (1, 0, 2))
        left = ceil_quotient(self._count - start, lanes)
        vectors = block.bind(minimum(self._group, left), "vectors")
        panels = block.bind(ceil_quotient(vectors, self._tile.vectors), "panels")
        pitch = self._k + 1  # as in gemm_task
        packed = Panels(
            block.workspace(pitch * self._group * lanes, self._dtype, "packed"),
            pitch,
            self._tile.vectors,
            lanes,
        )
        packer = Packer(self._context, kernel, True, [group], self._count)
        packer.write(packed, start, panels * self._tile.vectors, 0, self._k)
        source = self._strip.write(task)
        result = Columns(self._stage, self._dtype, group * self._count if self._groups > 1 else 0)
        finisher = Finisher(self._context, result, [], self._group, self._count, swapped=False)
        counts = [self._context.size(c) for c in self._node.window.counts]
        pixels = task.images * task.lines * counts[1]
        first = (task.first_image * counts[0] + task.first_line) * counts[1]
        starts = self._strip.starts(task, source, self._tile.rows)
        offset = group * self._depth if self._groups > 1 else 0
        first = block.bind(index(first), "first")
        for at, tile, repeat in row_tiles(pixels, self._tile):
            with block.loop(repeat, "tile") as t:
                pixel = block.bind(at + t * tile.rows, "pixel")
                bases = [
                    block.bind(block.load(starts, pixel + i) + offset, "base")
                    for i in range(tile.rows)
                ]
                sums = block.workspace(tile.rows * self._group * lanes, self._dtype, "sums")
                with block.loop(panels, "panel") as p:
                    self._one_tile(tile, (source.buffer, bases), (packed, p), sums)
                real = (
                    minimum(tile.rows, pixels - pixel) if not isinstance(pixels, int) else tile.rows
                )
                finisher.write(sums, start, block.bind(first + pixel, "row"), real)

    def _one_tile(
        self,
        tile: Tile,
        image: tuple[Buffer, list[Expr]],
        panel: tuple[Panels, Expr],
        sums: Buffer,
    ) -> None:
        """Multiply one tile with one panel, into the sums."""
        block, lanes = self._block, self._lanes
        source, bases = image
        packed, p = panel
        step = tile.vectors * lanes
        base = block.bind(p * (packed.depth * step), "panel")

        def operands(run: Expr | int, length: int, taps: Callable[[Expr | int], Expr]) -> Operands:
            def row(i: int, k: Expr | int) -> Expr:
                return tirx.BufferLoad(source, [index(bases[i] + taps(k))])

            def vector(j: int, k: Expr | int) -> Expr:
                place = base + (run * length + k) * step + j * lanes
                return block.load(packed.buffer, place, lanes)

            return Operands(self._dtype, lanes, row, vector)

        length, place = self._runs()
        whole = operands(0, 0, lambda k: place(k // length) + k % length)
        total = new_sums(block, tile, whole)
        if self._k <= _UNROLLED:
            add_products(block, tile, self._k, whole, total, unroll=self._k + 1)
        else:
            with block.loop(self._k // length, "run") as r:
                ahead = block.bind(index(place(r)), "ahead")
                of_run = operands(r, length, lambda k: ahead + k)
                add_products(block, tile, length, of_run, total)
        for i in range(tile.rows):
            for j in range(tile.vectors):
                value = tirx.BufferLoad(total, [index(i * tile.vectors + j)])
                block.store(sums, i * self._group * lanes + p * step + j * lanes, value)

    def _runs(self) -> tuple[int, Callable[[Expr | int], Expr | int]]:
        """Return how long the contiguous runs of a window are, and where each begins."""
        down, across = self._node.window.dilations
        line, channels = self._strip.line, self._channels
        if self._groups == 1 and (across == 1 or self._run == 1):
            return self._run * self._depth, lambda r: r * down * line

        def place(r: Expr | int) -> Expr | int:
            return quotient(r, self._run) * down * line + remainder(r, self._run) * (
                across * channels
            )

        return self._depth, place


def _known(dim: Dim) -> int:
    if not isinstance(dim, int):
        raise TypeError("the sizes of filters and the number of channels are known")
    return dim


def _tile(context: Context, vectors: int) -> Tile:
    """Return the tile that takes the fewest cycles a row."""
    return min(
        tiles(context.target), key=lambda t: covers(vectors, t.vectors) * t.cycles() / t.rows
    )


def _rest(share: int, count: Expr | int, first: Expr) -> Expr | int:
    """Return how many of ``share`` there are from ``first`` on."""
    if share == 1 or (isinstance(count, int) and count % share == 0):
        return share
    return minimum(share, count - first)
