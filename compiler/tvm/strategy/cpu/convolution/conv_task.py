"""One task of a convolution: the tiles of its windows, over the steps of a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tvm import tirx

from composite.compiler.tvm.codegen.access import Index, Lane
from composite.compiler.tvm.ir import graph
from composite.compiler.tvm.ir.anchors import Convolution
from composite.compiler.tvm.ir.dims import ceildiv
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.ir.window import Window
from composite.compiler.tvm.math.numeric import add
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cpu.convolution.strip import Source, Strip, Task, reshaped
from composite.compiler.tvm.strategy.cpu.elementwise.epilogue import Epilogue
from composite.compiler.tvm.strategy.cpu.product.pack import Packer, Panels, write_starts
from composite.compiler.tvm.strategy.cpu.product.row_tiles import row_tiles
from composite.compiler.tvm.strategy.cpu.product.steps import Step
from composite.compiler.tvm.strategy.cpu.product.tile import (
    PIECE,
    Operands,
    Tile,
    add_products,
    new_sums,
    steps_at_once,
)
from composite.compiler.tvm.strategy.epilogue import write_epilogue
from composite.compiler.tvm.strategy.tasks import tasks
from composite.compiler.tvm.tir.block import Block, Buffer, index, minimum, quotient, remainder

_UNROLLED = 16
"""Windows of at most so many steps are written without a loop: most are steps of short runs."""


@dataclass(frozen=True)
class Filters:
    """The filters of a convolution, as panels.

    Attributes:
        tensor: ``[rows, columns, D, F]``; ``[rows, columns, F, D]`` and backwards if transposed.
        window: rows, columns, and the steps that D channels are.
        groups: Groups of channels.
        count: Filters of a group.
        tile: The register tile.
        dtype: What is computed in.
        lanes: Elements of a vector.
        step: What is multiplied at a step.
        transposed: As in :class:`..Convolution`.
    """

    tensor: Tensor
    window: tuple[int, int, int]
    groups: int
    count: int
    tile: Tile
    dtype: str
    lanes: int
    step: Step
    transposed: bool = False

    @property
    def depth(self) -> int:
        """Steps of a window."""
        rows, columns, channels = self.window
        return rows * columns * channels

    @property
    def panels(self) -> int:
        """Panels of a group."""
        return ceildiv(self.count, self.width)

    @property
    def width(self) -> int:
        """Filters of a panel."""
        return self.tile.vectors * self.lanes

    @property
    def room(self) -> int:
        """Elements of a packed panel; a step more than used, as in :mod:`.gemm_task`."""
        return (self.depth + 1) * self.width

    @property
    def elements(self) -> int:
        """Elements of all packed panels."""
        return self.room * self.groups * self.panels

    def write_packing(self, context: Context, room: Buffer) -> None:
        """Write the packing of all filters, a panel a task."""
        block, count = context.block, self.groups * self.panels

        def body(task: Expr) -> None:
            group = block.bind(quotient(task, self.panels), "group")
            panel = block.bind(remainder(task, self.panels), "panel")
            panels = self.panels_in(room, block.bind(index(task * self.room)))
            self.pack(context, panels, (group, panel, 1))

        tasks(context, count, self.elements // self.lanes * 4, body)

    def panels_in(self, buffer: Buffer, first: Expr | int) -> Panels:
        """Return the panels that a buffer holds from a place on."""
        return Panels(buffer, self.depth + 1, self.tile.vectors, self.lanes, first)

    def pack(
        self, context: Context, panels: Panels, which: tuple[Expr, Expr | int, Expr | int]
    ) -> None:
        """Pack the panels ``which`` is (group, first panel, number of panels)."""
        group, first, count = which
        start = context.block.bind(index(first * self.width), "column")
        vectors = count * self.tile.vectors
        *_, channels, _ = self.tensor.shape
        if self.transposed or channels != self.window[2] * self.step.size:
            self._pack_taps(context, panels, start, vectors)
        else:
            depth = self.depth * self.step.size
            tensor = reshaped(self.tensor, (depth, self.groups, self.count), context)
            tensor = graph.transpose(tensor, (1, 0, 2))
            packer = Packer(context, tensor, True, [group], self.count, self.step)
            packer.write(panels, start, vectors, 0, self.depth)
        write_starts(context.block, self.step, panels, vectors, self.depth)

    def _pack_taps(
        self, context: Context, panels: Panels, start: Expr, vectors: Expr | int
    ) -> None:
        """Pack filters pixel by pixel of a window: channels are no whole steps, or come last."""
        rows, columns, steps = self.window
        block, taps = context.block, rows * columns
        tensor = reshaped(self.tensor, (taps, *self.tensor.shape[2:]), context)
        with block.loop(taps, "tap") as tap:
            own = block.bind(taps - 1 - tap, "tap") if self.transposed else tap
            place = block.bind(panels.base + tap * (steps * self.width), "place")
            packer = Packer(context, tensor, not self.transposed, [own], self.count, self.step)
            packer.write(replace(panels, base=place), start, vectors, 0, steps)


@dataclass(frozen=True)
class _Columns:
    """What the sums of one group of filters become."""

    stage: Stage
    dtype: str
    offset: Expr | int

    def write_epilogue(self, context: Context, at: Sequence[Index], total: Expr) -> None:
        """Store what is made of one element, or one vector, of the sums."""
        row, column = at
        if isinstance(column, Lane):
            column = Lane(column.base + self.offset, column.lanes, column.step)
        else:
            column = column + self.offset
        write_epilogue(context, self.stage, [row, column], total)


@dataclass(frozen=True)
class _Runs:
    """A window as ``count`` runs of ``length`` elements that lie side by side."""

    count: int
    length: int
    place: Callable[[Expr | int], Expr | int]

    @property
    def are_few(self) -> bool:
        """Whether all are added up at once."""
        return self.at_once == self.count

    @property
    def at_once(self) -> int:
        """Runs that are added up by themselves."""
        if self.count * self.length <= PIECE:
            return self.count
        fit = range(1, max(1, PIECE // self.length) + 1)
        return max(n for n in fit if self.count % n == 0)


def _runs(window: Window, filters: Filters, strip: Strip) -> _Runs:
    """Return the runs of a window: its lines, or its pixels, or parts of these."""
    rows, columns, depth = filters.window
    down, across = window.dilations
    line, pixel = strip.line, strip.channels
    if filters.groups == 1 and (across == 1 or columns == 1) and columns * depth <= PIECE:
        return _Runs(rows, columns * depth, lambda r: r * down * line)
    parts = next((n for n in range(1, 65) if depth % n == 0 and depth // n <= PIECE), 1)
    length = depth // parts

    def place(r: Expr | int) -> Expr | int:
        tap = quotient(r, parts)
        inside = remainder(r, parts) * length
        row, column = quotient(tap, columns), remainder(tap, columns)
        return row * down * line + column * (across * pixel) + inside

    return _Runs(rows * columns * parts, length, place)


@dataclass(frozen=True)
class _Reader:
    """How a tile reads its windows: a buffer, where each begins, and the packed panels."""

    buffer: Buffer
    bases: list[Expr]
    packed: Panels
    panel: Expr

    def operands(
        self, block: Block, filters: Filters, first: Expr | int, taps: Callable[..., Expr | int]
    ) -> Operands:
        """Return the operands of the steps from ``first`` on; ``taps`` places them in a window.

        Sums start as those of whole windows: with ``first`` 0.
        """
        lanes, step = filters.lanes, filters.width

        def row(i: int, k: Expr | int) -> Expr:
            return tirx.BufferLoad(self.buffer, [index(self.bases[i] + taps(k))])

        def vector(j: int, k: Expr | int) -> Expr:
            place = self.panel + (first + k) * step + j * lanes
            return block.load(self.packed.buffer, place, lanes)

        dot = filters.step.dot(lanes)
        begin = (lambda j: vector(j, filters.depth)) if filters.step.low else None
        return Operands(filters.dtype, lanes, row, vector, dot, begin)

    def start(self, block: Block, filters: Filters, runs: _Runs) -> Operands:
        """Return the operands of all steps of a window."""
        return self.operands(
            block, filters, 0, lambda k: runs.place(k // runs.length) + k % runs.length
        )


class ConvTask:
    """Writes a task: :meth:`begin` once, then :meth:`write` for each piece of the filters."""

    def __init__(
        self, stage: Stage, node: Convolution, filters: Filters, strip: Strip, context: Context
    ) -> None:
        self._stage = stage
        self._node = node
        self._filters = filters
        self._strip = strip
        self._context = context
        self._block = context.block
        self._runs = _runs(node.window, filters, strip)

    def begin(self, task: Task, group: Expr) -> None:
        """Bring the task's part of the image, and find where its windows begin."""
        block, filters = self._block, self._filters
        rows, columns = (self._context.size(c) for c in self._node.window.counts)
        self._source: Source = self._strip.write(task)
        self._starts = self._strip.starts(task, self._source, filters.tile.rows)
        self._pixels = task.images * task.lines * columns
        first = (task.first_image * rows + task.first_line) * columns
        self._first = block.bind(index(first), "first")
        of_group = filters.groups > 1
        self._channel = group * filters.window[2] if of_group else 0
        self._column = group * filters.count if of_group else 0

    def write(self, piece: tuple[Expr | int, Expr | int], packed: Panels, most: int) -> None:
        """Multiply the windows with packed panels, ``piece`` (the first, how many), and store.

        There are ``most`` panels at most.
        """
        block, filters = self._block, self._filters
        first, panels = piece
        result = _Columns(self._stage, filters.dtype, self._column)
        group = most * filters.tile.vectors
        epilogue = Epilogue(self._context, result, [], group, filters.count, swapped=False)
        start = block.bind(index(first * filters.width), "start")
        is_known = isinstance(self._pixels, int)  # then there is no row beyond the last
        if is_known and epilogue.is_short and self._runs.are_few:
            self._finish_panels(panels, packed, lambda *at: epilogue.write_vector(start, *at))
            return
        for at, tile, repeat in row_tiles(self._pixels, filters.tile):
            with block.loop(repeat, "tile") as t:
                pixel = block.bind(at + t * tile.rows, "pixel")
                bases = self._bases(pixel, tile)
                size = tile.rows * most * filters.width
                sums = block.workspace(size, filters.dtype, "sums")
                with block.loop(panels, "panel") as p:
                    reader = self._reader(packed, p, bases)
                    self._multiply_into(sums, tile, reader, (p, most))
                rows: Expr | int = tile.rows
                if not is_known:
                    rows = block.bind(minimum(tile.rows, self._pixels - pixel), "rows")
                epilogue.write(sums, start, block.bind(self._first + pixel, "row"), rows)

    def _finish_panels(
        self, panels: Expr | int, packed: Panels, epilogue: Callable[[Expr, Expr, Expr], None]
    ) -> None:
        """Write the epilogue of each tile from its registers; a panel stays near for all tiles."""
        block, filters = self._block, self._filters
        with block.loop(panels, "panel") as p:
            for at, tile, repeat in row_tiles(self._pixels, filters.tile):
                with block.loop(repeat, "tile") as t:
                    pixel = block.bind(at + t * tile.rows, "pixel")
                    reader = self._reader(packed, p, self._bases(pixel, tile))
                    total = self._multiply(tile, reader)
                    for i in range(tile.rows):
                        row = block.bind(self._first + pixel + i, "row")
                        for j in range(tile.vectors):
                            value = tirx.BufferLoad(total, [index(i * tile.vectors + j)])
                            epilogue(row, p * tile.vectors + j, value)

    def _bases(self, pixel: Expr, tile: Tile) -> list[Expr]:
        """Return where the windows of a tile begin."""
        block = self._block
        starts = [block.load(self._starts, pixel + i) for i in range(tile.rows)]
        return [block.bind(start + self._channel, "base") for start in starts]

    def _reader(self, packed: Panels, panel: Expr, bases: list[Expr]) -> _Reader:
        place = packed.place(panel * self._filters.tile.vectors, 0)
        return _Reader(self._source.buffer, bases, packed, self._block.bind(place, "panel"))

    def _multiply_into(
        self, sums: Buffer, tile: Tile, reader: _Reader, panel: tuple[Expr, int]
    ) -> None:
        """Multiply one tile with one panel, into the sums of the ``most`` panels."""
        block, filters, runs = self._block, self._filters, self._runs
        p, most = panel
        width = most * filters.width

        def leave(total: Buffer, *, adds: bool) -> None:
            for i in range(tile.rows):
                for j in range(tile.vectors):
                    value = tirx.BufferLoad(total, [index(i * tile.vectors + j)])
                    place = i * width + p * filters.width + j * filters.lanes
                    if adds:
                        value = add(block, block.load(sums, place, filters.lanes), value)
                    block.store(sums, place, value)

        if runs.are_few:
            leave(self._multiply(tile, reader), adds=False)
            return
        start = reader.start(block, filters, runs)
        leave(new_sums(block, tile, start), adds=False)
        with block.loop(runs.count // runs.at_once, "piece") as piece:
            total = new_sums(block, tile, start.behind(0))
            self._add_runs(tile, reader, total, (block.bind(piece * runs.at_once), runs.at_once))
            leave(total, adds=True)

    def _multiply(self, tile: Tile, reader: _Reader) -> Buffer:
        """Multiply one tile with one panel, and return the sums: all runs are added up at once."""
        block, filters, runs = self._block, self._filters, self._runs
        start = reader.start(block, filters, runs)
        total = new_sums(block, tile, start)
        if filters.depth <= _UNROLLED:
            add_products(block, tile, filters.depth, start, total, unroll=filters.depth + 1)
        else:
            self._add_runs(tile, reader, total, (0, runs.count))
        return total

    def _add_runs(
        self, tile: Tile, reader: _Reader, total: Buffer, which: tuple[Expr | int, int]
    ) -> None:
        """Add some runs to sums: the first, and how many."""
        block, runs, (first, count) = self._block, self._runs, which
        with block.loop(count, "run") as r:
            run = block.bind(first + r, "run")
            ahead = block.bind(index(runs.place(run)), "ahead")
            place = block.bind(run * runs.length, "k")
            operands = reader.operands(block, self._filters, place, lambda k: ahead + k)
            add_products(block, tile, runs.length, operands, total, steps_at_once(tile))
