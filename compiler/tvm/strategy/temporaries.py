"""Buffers for what stages leave to others: one serves again when nobody reads what it holds.

A kernel of many stages then works in few buffers, which stay in the caches.
"""

from __future__ import annotations

from collections.abc import Sequence

from composite.compiler.tvm.codegen.access import Storage
from composite.compiler.tvm.ir.dims import Dim, product
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context


class Temporaries:
    """The buffers of the stages of a kernel, which are written in order."""

    def __init__(self, stages: Sequence[Stage], context: Context) -> None:
        self._context = context
        self._last = last_uses(stages)
        # With their sizes; of those that are free, the last was read last.
        self._held: dict[Tensor, tuple[Dim, Storage]] = {}
        self._free: list[tuple[Dim, Storage]] = []

    def give(self, stage: Stage) -> None:
        """Give a buffer to what a stage stores and nobody gave one to."""
        storages = self._context.space.storages
        for tensor in stage.stores:
            if tensor not in storages:
                self._held[tensor] = room = self._room(tensor)
                _, storages[tensor] = room

    def take_back(self, number: int) -> None:
        """Take back the buffers of what the stage of that number was the last to read."""
        for tensor in [t for t in self._held if self._last[t] <= number]:
            room = self._held.pop(tensor)
            if not _is_one_integer(tensor):
                self._free.append(room)

    def _room(self, tensor: Tensor) -> tuple[Dim, Storage]:
        """Return a free buffer, the smallest that it fits into, or else another one."""
        size, dtype = product(tensor.shape), compute_dtype(tensor.dtype)
        fits = [one for one in self._free if one[1].dtype == dtype and _holds(one[0], size)]
        if not fits:
            return size, self._context.temporary(tensor)
        found = min(reversed(fits), key=lambda one: one[0] if isinstance(one[0], int) else 0)
        self._free.remove(found)
        return found


def _is_one_integer(tensor: Tensor) -> bool:
    """Return whether it may be a place: what a buffer holds that is written once is proven."""
    return product(tensor.shape) == 1 and tensor.dtype in {"int32", "int64"}


def last_uses(stages: Sequence[Stage]) -> dict[Tensor, int]:
    """Map what stages store to the number of the last of them that stores or reads it."""
    stored = {tensor for stage in stages for tensor in stage.stores}
    last: dict[Tensor, int] = {}
    for number, stage in enumerate(stages):
        last |= {tensor: number for tensor in stage.needs(stored) if tensor in stored}
    return last


def _holds(room: Dim, size: Dim) -> bool:
    """Return whether a buffer is known to be large enough."""
    return room >= size if isinstance(room, int) and isinstance(size, int) else room == size
