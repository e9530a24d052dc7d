"""Gradients of filters: products summed over the windows, without the matrix of windows.

The register tile of :mod:`.tile` broadcasts elements of the image, one for each of some steps of a
window, and has vectors of the windows' gradients along the filters. A task computes a part of the
steps for all filters. It goes over the images a few lines of windows at a time: it reads their
pixels through a :mod:`.strip`, packs their gradients, and adds the products to its sums, which are
therefore sums of short sums. No task waits for another, and the order of additions does not depend
on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index
from composite.compiler.tvm.ir.anchors import FilterGradient
from composite.compiler.tvm.ir.dims import ceildiv
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE, compute_dtype
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Writer
from composite.compiler.tvm.strategy.cpu.convolution.strip import Strip, Task, reshaped
from composite.compiler.tvm.strategy.cpu.elementwise.epilogue import Epilogue
from composite.compiler.tvm.strategy.cpu.product.blocking import guess
from composite.compiler.tvm.strategy.cpu.product.pack import Packer, Panels
from composite.compiler.tvm.strategy.cpu.product.row_tiles import row_tiles
from composite.compiler.tvm.strategy.cpu.product.steps import Step
from composite.compiler.tvm.strategy.cpu.product.tile import (
    Operands,
    Tile,
    add_products,
    new_sums,
    steps_at_once,
    tiles,
)
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

_WINDOWS = 256
"""Windows that are added up at a time, about."""


class FilterGradients:
    """Stages whose anchor is the gradient of a convolution's filters."""

    name = "filter_gradient"

    def match(self, stage: Stage, context: Context) -> Writer | None:
        """Take gradients of filters of known size."""
        anchor = stage.anchor
        if anchor is None or not isinstance(anchor.node, FilterGradient):
            return None
        filters, dtype = anchor.node.gradient.shape[1], compute_dtype(anchor.dtype)
        step = Step.of_elements(dtype)
        strip = Strip.of(anchor.node.image, anchor.node.window, context, step, dtype)
        if strip is None or not isinstance(filters, int):
            return None
        return _Writer(stage, anchor.node, strip, filters, context)


@dataclass(frozen=True)
class _Result:
    """What the sums become."""

    stage: Stage
    dtype: str

    def write_epilogue(self, context: Context, at: Sequence[Index], total: Expr) -> None:
        """Store what is made of one element, or one vector, of the sums."""
        write_epilogue(context, self.stage, at, total)


@dataclass(frozen=True)
class _Windows:
    """Some lines of windows: where their pixels are, how many, and their packed gradients."""

    source: Buffer
    starts: Buffer
    count: Expr | int
    packed: Panels


class _Writer:
    def __init__(
        self, stage: Stage, node: FilterGradient, strip: Strip, filters: int, context: Context
    ) -> None:
        self._stage = stage
        self._node = node
        self._context = context
        self._block = context.block
        self._dtype = compute_dtype(node.image.dtype)
        self._lanes = context.lanes(self._dtype)
        self._depth = strip.channels
        self._filters = filters
        self._steps = node.window.size[0] * node.window.size[1] * strip.channels
        vectors = ceildiv(filters, self._lanes)
        self._tile = min(
            tiles(context.target),
            key=lambda t: ceildiv(vectors, t.vectors) * t.cycles(context.machine) / t.rows,
        )
        self._panels = ceildiv(vectors, self._tile.vectors)
        self._width = self._panels * self._tile.vectors * self._lanes
        self._strip = strip
        self._lines = self._lines_at_a_time()
        self._share = self._steps_of_task()

    def _lines_at_a_time(self) -> int:
        lines, width = (guess(c) for c in self._node.window.counts)
        image = self._node.image.shape
        size = guess(image[2]) * self._depth * ITEM_SIZE[self._dtype]
        held = self._context.machine.held // max(1, size * self._node.window.strides[0])
        fit = max(1, min(_WINDOWS // max(1, width), held))
        return ceildiv(max(1, lines), ceildiv(max(1, lines), fit))

    def _steps_of_task(self) -> int:
        """Return a part of the steps: whole tiles, and sums that the cache holds."""
        parts = ceildiv(self._steps, self._tile.rows)
        size = self._tile.rows * self._width * ITEM_SIZE[self._dtype]
        held = max(1, self._context.machine.held // size)
        wanted = max(2 * self._context.target.cores, ceildiv(parts, held))
        return ceildiv(parts, wanted) * self._tile.rows

    def write(self) -> None:
        """Write the loop over parts of the steps."""
        context, block, node = self._context, self._block, self._node
        lines, width = (context.size(c) for c in node.window.counts)
        images = context.size(node.image.shape[0])
        vectors = ceildiv(self._filters, self._lanes)

        def body(task: Expr) -> None:
            first = block.bind(index(task * self._share), "first")
            rows = block.bind(index(minimum(self._share, self._steps - first)), "rows")
            room = (self._share + self._tile.rows) * self._width
            sums = block.workspace(room, self._dtype, "sums")
            zero = const(0, f"{self._dtype}x{self._lanes}")
            with block.loop(room // self._lanes, "z") as z:
                block.store(sums, z * self._lanes, zero)
            places = self._places(first)
            with (
                block.loop(images, "image") as image,
                block.loop(ceil_quotient(lines, self._lines), "lines") as chunk,
            ):
                line = block.bind(index(chunk * self._lines), "line")
                count = block.bind(index(minimum(self._lines, lines - line)), "lines")
                self._add(Task(image, line, 1, count, 1, self._lines), (places, rows), sums)
            result = _Result(self._stage, self._dtype)
            group = self._width // self._lanes
            epilogue = Epilogue(context, result, [], group, self._filters, swapped=False)
            epilogue.write(sums, index(0), first, rows)

        cycles = quotient(images * lines * width * (self._steps * vectors), 2)
        tasks(context, ceildiv(self._steps, self._share), cycles, body)

    def _places(self, first: Expr) -> Buffer:
        """Return where the steps of a task are, from the beginning of a window.

        Those past the end, of the last tile, are as the last.
        """
        block, window, depth = self._block, self._node.window, self._depth
        down, across = window.dilations[0] * self._strip.line, window.dilations[1] * depth
        # No place is outside of these bounds, which a proof does not always find in the divisions.
        last = (window.size[0] - 1) * down + (window.size[1] - 1) * across + (depth - 1)
        count = self._share + self._tile.rows
        places = block.workspace(count, "int64", "places")
        with block.loop(count, "s") as s:
            step = block.bind(index(minimum(first + s, self._steps - 1)), "step")
            tap = block.bind(index(quotient(step, depth)), "tap")
            row, column = quotient(tap, window.size[1]), remainder(tap, window.size[1])
            place = row * down + column * across + remainder(step, depth)
            block.store(places, s, index(maximum(0, minimum(place, last))))
        return places

    def _add(self, task: Task, part: tuple[Buffer, Expr], sums: Buffer) -> None:
        """Add products of some lines of windows to the sums of a part: its places, how many."""
        block, node = self._block, self._node
        rows, columns = (self._context.size(c) for c in node.window.counts)
        source = self._strip.write(task)
        starts = self._strip.starts(task, source, 1)
        count = block.bind(index(task.lines * columns), "windows")
        pitch = self._lines * columns + 1
        packed = Panels(
            block.workspace(pitch * self._width, self._dtype, "packed"),
            pitch,
            self._tile.vectors,
            self._lanes,
        )
        gradient = reshaped(node.gradient, node.gradient.shape, self._context)
        packer = Packer(self._context, gradient, True, [], self._filters)
        first = block.bind(index((task.first_image * rows + task.first_line) * columns), "window")
        packer.write(packed, index(0), self._panels * self._tile.vectors, first, count)
        windows = _Windows(source.buffer, starts, count, packed)
        for at, tile, repeat in row_tiles(part[1], self._tile):
            with block.loop(repeat, "tile") as t:
                row = block.bind(at + t * tile.rows, "row")
                places = [block.bind(block.load(part[0], row + i)) for i in range(tile.rows)]
                with block.loop(self._panels, "panel") as p:
                    self._one_tile(tile, windows, places, (p, row, sums))

    def _one_tile(
        self,
        tile: Tile,
        windows: _Windows,
        places: list[Expr],
        where: tuple[Expr, Expr, Buffer],
    ) -> None:
        block, lanes = self._block, self._lanes
        p, first, sums = where
        step = tile.vectors * lanes
        base = block.bind(windows.packed.place(p * tile.vectors, 0), "panel")

        def row(i: int, k: Expr | int) -> Expr:
            return tirx.BufferLoad(
                windows.source, [index(block.load(windows.starts, k) + places[i])]
            )

        def vector(j: int, k: Expr | int) -> Expr:
            return block.load(windows.packed.buffer, base + k * step + j * lanes, lanes)

        dot = Step.of_elements(self._dtype).dot(lanes)
        operands = Operands(self._dtype, lanes, row, vector, dot)
        total = new_sums(block, tile, operands)
        add_products(block, tile, windows.count, operands, total, steps_at_once(tile))
        for i in range(tile.rows):
            for j in range(tile.vectors):
                place = (first + i) * self._width + p * step + j * lanes
                value = tirx.BufferLoad(total, [index(i * tile.vectors + j)])
                block.store(sums, place, block.load(sums, place, lanes) + value)
