"""What the words of expressions are, and where those of buffers lie."""

from __future__ import annotations

from typing import Any, NamedTuple

from tvm import tirx

from composite.compiler.tvm.algebra import program, ring
from composite.compiler.tvm.algebra.program import Kind
from composite.compiler.tvm.errors import NotCovered


class Buffer(NamedTuple):
    """Memory.

    Attributes:
        place: Of its first element.
        element: What an element is, which may be a vector.
        elements: How many there are, if that is known.
    """

    place: int
    element: Kind
    elements: int | None


def _kinds() -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for lanes in (1, 2, 4, 8, 16, 32, 64):
        tail = f"x{lanes}" if lanes > 1 else ""
        for number, name in enumerate(program.KINDS):
            found[name + tail] = Kind(number, int(name.strip("uint")), lanes, is_float=False)
        found["bool" + tail] = Kind(0, 8, lanes, is_float=False)
        for name, bits in ring.BITS.items():
            number = program.KINDS.index(f"uint{bits}")
            found[name + tail] = Kind(number, bits, lanes, is_float=True)
    return found


KINDS = _kinds()
INT64 = KINDS["int64"]


def kind_of(e: Any) -> Kind:
    """Return what the words of an expression are."""
    found = KINDS.get(e.ty.dtype)
    return found or any_kind(e.ty.dtype)


def any_kind(dtype: Any) -> Kind:
    """Return what the words of a dtype are, of any number of lanes; NotCovered for other dtypes."""
    one = KINDS.get(str(dtype.with_lanes(1)))
    if one is None:
        raise NotCovered(f"{dtype} has no meaning over the ring")
    return one._replace(lanes=int(dtype.lanes))


def place_of(buffer: Buffer, index: Any) -> int | None:
    """Return the place of an element of a buffer, if it is known that there is one."""
    if buffer.elements is None or type(index) is not tirx.IntImm:
        return None
    number = int(index.value)
    return buffer.place + number * buffer.element.size if 0 <= number < buffer.elements else None
