"""Convolutions as products without the matrix of windows: rows are windows, columns are filters.

The register tile of :mod:`.tile` broadcasts elements of the image and has vectors along the
filters, packed by :mod:`.pack`. A row of the product is read from the image in place: ``starts``
holds where each window of the task begins; from there a row of the window is one contiguous run of
pixels and channels (without dilation), and its next row begins a line of the image further.

If windows reach over the border, or the image is stored in another dtype than it is computed in,
the task first copies the lines that it needs into a strip padded with zeros, which costs as much as
one filter. So no loop has a condition on the position within the image.

A task is some lines of windows of one image, or several small images; with few such tasks, they
also divide the filters. Filters that are constant are packed before the first call
(:mod:`..product.panels`). Others are packed in each: all before the tasks if these share them, or
else by each task its own. :mod:`.conv_task` writes a task.
"""

from __future__ import annotations

from dataclasses import dataclass

from composite.compiler.tvm.ir.anchors import Convolution
from composite.compiler.tvm.ir.dims import ceildiv, static_shape
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE, STORED_INTEGERS, compute_dtype
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cpu.convolution.conv_task import ConvTask, Filters
from composite.compiler.tvm.strategy.cpu.convolution.strip import Strip, Task
from composite.compiler.tvm.strategy.cpu.product.blocking import guess
from composite.compiler.tvm.strategy.cpu.product.pack import Panels
from composite.compiler.tvm.strategy.cpu.product.panels import packed_room
from composite.compiler.tvm.strategy.cpu.product.steps import Step, integer_steps
from composite.compiler.tvm.strategy.cpu.product.tile import tiles
from composite.compiler.tvm.strategy.tasks import tasks
from composite.compiler.tvm.tir.block import (
    Buffer,
    ceil_quotient,
    index,
    minimum,
    quotient,
    remainder,
)

_PIXELS = 256
"""Windows of a task, about: enough to make packing cheap beside them."""
_FEWEST_PIXELS = 48


class ImplicitProduct:
    """Stages whose anchor is a convolution."""

    name = "convolution"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take every convolution whose filters have a known size."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, Convolution):
            return None
        dtype, node = compute_dtype(anchor.dtype), anchor.node
        filters = _filters(node, dtype, context)
        if filters is None:
            return None
        strip = Strip.of(node.image, node.window, context, filters.step, dtype)
        if strip is None:
            return None
        return _Writer(stage, node, filters, strip, context)


@dataclass(frozen=True)
class _Cut:
    """Images and lines of windows of a task at most, and about how many such tasks there are."""

    images: int
    lines: int
    tasks: int


class _Writer:
    def __init__(
        self, stage: Stage, node: Convolution, filters: Filters, strip: Strip, context: Context
    ) -> None:
        self._stage = stage
        self._node = node
        self._context = context
        self._block = context.block
        self._filters = filters
        self._strip = strip
        self._wanted = 2 * context.target.cores
        self._cut = self._choose_cut()
        self._packing = context.packing(node.filter)
        self._shared = self._cut.tasks >= self._wanted
        self._panels = self._panels_at_a_time()

    def _choose_cut(self) -> _Cut:
        image, window = self._node.image, self._node.window
        filters, rows = self._filters, window.counts[0]
        lines, width = (guess(c) for c in window.counts)
        count = guess(image.shape[0])
        parts = ceildiv(self._wanted, filters.groups * filters.panels)
        share = max(_FEWEST_PIXELS, count * lines * width // parts)
        pixels = max(1, min(_PIXELS, share) // max(1, width))
        line_bytes = guess(image.shape[2]) * self._strip.channels * ITEM_SIZE[filters.dtype]
        held = self._context.machine.held // max(1, line_bytes * window.strides[0])
        own = max(1, min(pixels, held))
        if own < lines or not isinstance(rows, int):
            own = _equal_share(lines, own) if isinstance(rows, int) else own
            return _Cut(1, own, count * ceildiv(lines, own))
        images = max(1, own // max(1, lines))
        images = ceildiv(count, ceildiv(count, images)) or 1
        return _Cut(images, max(1, lines), ceildiv(count, images))

    def _panels_at_a_time(self) -> int:
        """Return how many panels are multiplied at a time: what the cache holds."""
        filters = self._filters
        size = filters.depth * filters.tile.vectors * filters.lanes * ITEM_SIZE[filters.dtype]
        pieces = ceildiv(filters.panels, max(1, self._context.machine.held // size))
        if not self._shared:
            others = max(1, self._cut.tasks * filters.groups)
            pieces = max(pieces, min(filters.panels, ceildiv(self._wanted, others)))
        return ceildiv(filters.panels, pieces)

    def write(self) -> None:
        """Write the loop over tasks: images x lines x groups (x pieces of the filters)."""
        context, block, filters = self._context, self._block, self._filters
        window = self._node.window
        lines, width = (context.size(c) for c in window.counts)
        images = context.size(self._node.image.shape[0])
        chunks = ceil_quotient(lines, self._cut.lines)
        parts, pieces = self._parts()
        shares = filters.groups * parts
        vectors = ceildiv(filters.count, filters.lanes) * filters.groups
        cycles = quotient(images * lines * width * (vectors * filters.depth), 2)
        packed = self._packed_once()

        def body(task: Expr) -> None:
            share = block.bind(remainder(task, shares), "share")
            place = block.bind(quotient(task, shares), "place")
            image = block.bind(index(quotient(place, chunks) * self._cut.images), "image")
            line = block.bind(index(remainder(place, chunks) * self._cut.lines), "line")
            own = Task(
                image,
                line,
                block.bind(_rest(self._cut.images, images, image), "images"),
                block.bind(_rest(self._cut.lines, lines, line), "lines"),
                self._cut.images,
                self._cut.lines,
            )
            writer = ConvTask(self._stage, self._node, filters, self._strip, context)
            group = block.bind(quotient(share, parts), "group")
            first = block.bind(remainder(share, parts) * pieces, "first")
            writer.begin(own, group)
            count = _rest(pieces, ceildiv(filters.panels, self._panels), first)
            with block.loop(count, "piece") as number:
                piece = self._piece(first + number)
                writer.write(piece, self._panels_of(packed, group, piece), self._panels)

        places = ceil_quotient(images, self._cut.images) * chunks
        tasks(context, places * shares, cycles, body)

    def _parts(self) -> tuple[int, int]:
        """Return how many tasks divide the filters of a group, and the pieces of each.

        A task that packs its own has room for one piece.
        """
        pieces = ceildiv(self._filters.panels, self._panels)
        if self._shared:
            return 1, pieces
        if self._packing is None:
            return pieces, 1
        wanted = ceildiv(self._wanted, max(1, self._cut.tasks * self._filters.groups))
        own = ceildiv(pieces, wanted)
        return ceildiv(pieces, own), own

    def _piece(self, number: Expr) -> tuple[Expr | int, Expr | int]:
        """Return the first panel and the number of panels of a piece."""
        block, all_panels = self._block, self._filters.panels
        first = block.bind(index(number * self._panels), "panel")
        return first, block.bind(_rest(self._panels, all_panels, first), "panels")

    def _packed_once(self) -> Buffer | None:
        """Return the buffer of all panels; None if each task packs its own."""
        if self._packing is not None:
            return packed_room(self._context, self._filters, self._packing)
        if not self._shared:
            return None
        filters = self._filters
        packed = self._block.workspace(filters.elements, filters.dtype, "packed")
        filters.write_packing(self._context, packed)
        return packed

    def _panels_of(
        self, packed: Buffer | None, group: Expr, piece: tuple[Expr | int, Expr | int]
    ) -> Panels:
        """Return the panels of a piece, packed before or here."""
        block, filters, (first, count) = self._block, self._filters, piece
        if packed is not None:
            place = (group * filters.panels + first) * filters.room
            return filters.panels_in(packed, block.bind(index(place), "packed"))
        room = block.workspace(filters.room * self._panels, filters.dtype, "packed")
        panels = filters.panels_in(room, 0)
        filters.pack(self._context, panels, (group, first, count))
        return panels


def _filters(node: Convolution, dtype: str, context: Context) -> Filters | None:
    """Return the filters, with the tile that takes the fewest cycles a window.

    None if the size of a filter or the number of channels is not known.
    """
    sizes = static_shape((*node.filter.shape, node.image.shape[3]))
    if sizes is None:
        return None
    rows, columns, channels, count, all_channels = sizes
    if node.transposed:
        channels, count = count, channels
    groups = all_channels // channels
    step = _step(node, dtype, channels, groups, context)
    lanes = context.lanes(dtype)
    vectors = ceildiv(count // groups, lanes)
    tile = min(
        tiles(context.target),
        key=lambda t: ceildiv(vectors, t.vectors) * t.cycles(context.machine) / t.rows,
    )
    window, own = (rows, columns, int(step.count(channels))), count // groups
    return Filters(node.filter, window, groups, own, tile, dtype, lanes, step, node.transposed)


def _step(node: Convolution, dtype: str, channels: int, groups: int, context: Context) -> Step:
    """Return what is multiplied at a step: wholes of the channels, if there are groups of those."""
    if node.image.dtype not in STORED_INTEGERS:
        return Step.of_elements(dtype)
    of_image, of_filter = node.zeros
    steps = integer_steps((node.image, of_image), (node.filter, of_filter), context.target)
    return next(step for step in steps if groups == 1 or channels % step.size == 0)


def _equal_share(count: int, most: int) -> int:
    """Return up to ``most`` of some lines for a task: the same for all, or nearly the most."""
    even = (n for n in range(most, most // 2, -1) if count % n == 0)
    return next(even, ceildiv(count, ceildiv(count, most)))


def _rest(share: int, count: Expr | int, first: Expr | int) -> Expr | int:
    """Return how many of ``share`` there are from ``first`` on."""
    if share == 1 or (isinstance(count, int) and count % share == 0):
        return share
    return minimum(share, count - first)
