"""Strips: the lines of an image that a task reads, in place or as a copy padded with zeros."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from composite.compiler.tvm.codegen.access import Lane, Storage
from composite.compiler.tvm.ir.dims import Shape
from composite.compiler.tvm.ir.tensor import Expr, Reshape, Tensor
from composite.compiler.tvm.ir.window import Window
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cpu.product.steps import Step, StepReader
from composite.compiler.tvm.tir.block import (
    Buffer,
    ceil_quotient,
    const,
    index,
    maximum,
    minimum,
    quotient,
)


@dataclass(frozen=True)
class Task:
    """Lines of windows of some images; ``most_...`` are known bounds of the numbers of them."""

    first_image: Expr
    first_line: Expr
    images: Expr | int
    lines: Expr | int
    most_images: int
    most_lines: int


@dataclass(frozen=True)
class Source:
    """A buffer of lines of pixels, and where the first window of the task begins in it."""

    buffer: Buffer
    first: Expr | int


def stored(tensor: Tensor, context: Context) -> Tensor:
    """Return what the tensor is only another shape of: what has a buffer, if that is all."""
    while context.space.storage(tensor) is None and isinstance(tensor.node, Reshape):
        tensor = tensor.node.operand
    return tensor


def reshaped(tensor: Tensor, shape: Shape, context: Context) -> Tensor:
    """Return a stored tensor under another shape, to be read where it is stored."""
    return Tensor(shape, tensor.dtype, Reshape(stored(tensor, context)))


@dataclass(frozen=True)
class Strip:
    """How the windows of tasks find their pixels.

    Attributes:
        context: The kernel.
        image: The images ``[N, H, W, C]``.
        window: The windows.
        in_place: Where the image lies, if windows can read it there.
        columns: Pixels in a line.
        channels: Steps of a pixel.
        step: What is multiplied at a step; a group is of one pixel.
        dtype: What is computed in, as which steps travel.
    """

    context: Context
    image: Tensor
    window: Window
    in_place: Storage | None
    columns: Expr | int
    channels: int
    step: Step
    dtype: str

    @classmethod
    def of(
        cls, image: Tensor, window: Window, context: Context, step: Step, dtype: str
    ) -> Strip | None:
        """Return the strip of a convolution; None if the number of channels is not known."""
        channels = image.shape[3]
        if not isinstance(channels, int):
            return None
        steps = int(step.count(channels))
        storage = context.space.storage(stored(image, context))
        usable = (
            storage is not None and storage.dtype == dtype and window.stays_inside(image.shape[1:3])
        )
        if usable:
            width = context.size(image.shape[2])
            return cls(context, image, window, storage, width, steps, step, dtype)
        needed = (context.size(window.counts[1]) - 1) * window.strides[1] + window.reach[1]
        return cls(context, image, window, None, needed, steps, step, dtype)

    @property
    def line(self) -> Expr | int:
        """Steps from a line to the next."""
        return self.columns * self.channels

    def _rows(self, task: Task) -> int:
        return (task.most_lines - 1) * self.window.strides[0] + self.window.reach[0]

    def write(self, task: Task) -> Source:
        """Copy what the task reads, unless that is read in place."""
        context = self.context
        block = context.block
        if self.in_place is not None:
            row = task.first_image * context.size(self.image.shape[1])
            row = row + task.first_line * self.window.strides[0]
            start = index(row * self.line + self.in_place.offset)
            return Source(self.in_place.buffer, block.bind(start, "source"))
        size = task.most_images * self._rows(task) * self.line
        strip = block.workspace(size, self.dtype, "strip")
        top, left = self.window.before
        height, width = (context.size(d) for d in self.image.shape[1:3])
        before = minimum(left, self.columns) * self.channels
        inside = maximum(0, minimum(width, self.columns - left)) * self.channels
        after = self.line - before - inside
        zero = const(self.step.padding, self.dtype)
        needed = (task.lines - 1) * self.window.strides[0] + self.window.reach[0]
        with block.loop(task.images, "i") as i, block.loop(needed, "r") as r:
            row = block.bind(task.first_line * self.window.strides[0] + r - top, "row")
            to = block.bind((i * self._rows(task) + r) * self.line, "to")
            is_inside = tirx.And(row >= 0, row < index(height))
            with block.when(is_inside):
                with block.loop(before, "z") as z:
                    block.store(strip, to + z, zero)
                image = block.bind(task.first_image + i, "image")
                self._copy(strip, block.bind(to + before, "to"), (image, row), inside)
                with block.loop(after, "z") as z:
                    block.store(strip, to + (before + inside) + z, zero)
            with block.otherwise(), block.loop(self.line, "z") as z:
                block.store(strip, to + z, zero)
        return Source(strip, 0)

    def _copy(self, strip: Buffer, to: Expr, line: tuple[Expr, Expr], count: Expr | int) -> None:
        """Copy the first steps of a line; the last vector overlaps its neighbour."""
        context, size = self.context, self.step.size
        block = context.block
        images, rows, columns, channels = self.image.shape
        if channels != self.channels * size:
            self._copy_pixels(strip, to, line, count)
            return
        lines = reshaped(self.image, (images, rows, 1, columns * channels), context)
        reader = StepReader(context, (lines, False), list(line), size, self.step.rows)
        lanes = context.lanes(self.dtype)
        is_long = count >= lanes if isinstance(count, int) else index(count) >= lanes
        with block.when(is_long), block.loop(ceil_quotient(count, lanes), "v") as v:
            at = block.bind(index(minimum(v * lanes, count - lanes)), "at")
            block.store(strip, to + at, reader.read(Lane(at, lanes), 0, lanes))
        if is_long is True:
            return
        with block.when(index(count) < lanes), block.loop(count, "e") as e:
            block.store(strip, to + e, reader.read(e, 0, 1))

    def _copy_pixels(
        self, strip: Buffer, to: Expr, line: tuple[Expr, Expr], count: Expr | int
    ) -> None:
        """Copy the first steps of a line whose pixels are no whole steps, one by one."""
        block, channels = self.context.block, self.channels
        image = reshaped(self.image, self.image.shape, self.context)
        factor = (image, False)
        reader = StepReader(self.context, factor, list(line), self.step.size, self.step.rows)
        with block.loop(quotient(count, channels), "x") as x:
            for k in range(channels):
                block.store(strip, to + x * channels + k, reader.read(index(k), x, 1))

    def starts(self, task: Task, source: Source, spare: int) -> Buffer:
        """Return where each window of the task begins, and for ``spare`` more a place to read."""
        context = self.context
        block = context.block
        width = context.size(self.window.counts[1])
        size = task.most_images * task.most_lines * width + spare
        starts = block.workspace(size, "int64", "starts")
        rows = self._rows(task)
        if self.in_place is not None:
            rows = context.size(self.image.shape[1])
        down, across = self.window.strides
        with block.loop(task.images, "i") as i, block.loop(task.lines, "line") as r:
            to = block.bind((i * task.lines + r) * width, "to")
            row = block.bind(source.first + (i * rows + r * down) * self.line, "row")
            with block.loop(width, "o") as o:
                block.store(starts, to + o, row + o * (across * self.channels))
        with block.loop(spare, "s") as s:
            place = task.images * task.lines * width + s
            block.store(starts, place, index(source.first))
        return starts
