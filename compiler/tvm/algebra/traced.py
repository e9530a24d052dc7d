"""Words whose arithmetic is written down: the functions of the ring, as text of some language."""

from __future__ import annotations


class Traced:
    """A word. Its operators are written by `emit`, by the names that LLVM has for them."""

    def emit(self, op: str, other: Traced | int) -> Traced:
        """Write an operation with this word on the left, and return its result."""
        raise NotImplementedError

    def __add__(self, other: Traced | int) -> Traced:
        return self.emit("add", other)

    def __sub__(self, other: Traced | int) -> Traced:
        return self.emit("sub", other)

    def __mul__(self, other: Traced | int) -> Traced:
        return self.emit("mul", other)

    def __and__(self, other: Traced | int) -> Traced:
        return self.emit("and", other)

    def __or__(self, other: Traced | int) -> Traced:
        return self.emit("or", other)

    def __xor__(self, other: Traced | int) -> Traced:
        return self.emit("xor", other)

    def __lshift__(self, other: Traced | int) -> Traced:
        return self.emit("shl", other)

    def __rshift__(self, other: Traced | int) -> Traced:
        return self.emit("lshr", other)
