"""Where the windows of a convolution or a pool lie on an image; nothing of what they compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from composite.compiler.tvm.ir.dims import Dim


def reach(size: int, dilation: int) -> int:
    """Return the number of elements from the first to the last that a window covers."""
    return (size - 1) * dilation + 1


@dataclass(frozen=True)
class Window:
    """Windows that slide over the rows and the columns of images ``[N, H, W, C]``.

    Window ``o`` along a dimension covers, for each ``t`` below ``size``, the index
    ``o * stride - before + t * dilation``; an index outside of the image is padding. Each field is
    a pair: rows, columns.
    """

    size: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    before: tuple[int, int]
    counts: tuple[Dim, Dim]

    @property
    def reach(self) -> tuple[int, int]:
        """Rows and columns from the first to the last that a window covers."""
        rows, columns = map(reach, self.size, self.dilations)
        return rows, columns

    def stays_inside(self, sizes: Sequence[Dim]) -> bool:
        """Return whether no window is known to need padding on images of these sizes (H, W)."""
        sides = zip(self.before, self.counts, self.strides, self.reach, sizes, strict=True)
        rests = [s - ((c - 1) * step + reach - b) for b, c, step, reach, s in sides]
        return not any(self.before) and all(isinstance(r, int) and r >= 0 for r in rests)
