"""What the words of expressions are, where those of buffers lie, and how they are loaded."""

from __future__ import annotations

from typing import Any, NamedTuple

from tvm import ir, tirx

from composite.compiler.tvm.algebra import program, ring
from composite.compiler.tvm.algebra.program import Kind, Value, Writer
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.tir.stand_ins import StandIns


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


class Hidden(NotCovered):
    """An array is read whose contents have no meaning over the ring."""


class Accesses:
    """Makes instructions of loads.

    Attributes:
        out: The program.
        buffers: What is loaded and stored, by the hashes of the buffers' variables.
        stand_ins: What stands for floats that are written out.
    """

    def __init__(self, stand_ins: StandIns) -> None:
        self.out = Writer()
        self.stand_ins = stand_ins
        self.buffers: dict[int, Buffer] = {}

    def value(self, e: Any) -> Value:
        """Return what an expression is over the ring."""
        raise NotImplementedError

    def index(self, e: Any) -> Value:
        """Return what an integer is in 64 bits."""
        raise NotImplementedError

    def address(self, buffer: Buffer, index: Any) -> tuple[tuple[str, str], list[int], int]:
        """Return instructions that load and store, the rest of their places, and their scale."""
        scale = buffer.element.lanes
        if type(index) is not tirx.Ramp:
            if kind_of(index).lanes > 1:
                wide = self.value(index)
                return ("gather", "scatter"), [wide.place, buffer.place], scale
            return ("load", "store"), self._piece(buffer, index), scale
        stride = index.stride
        if isinstance(stride, tirx.IntImm) and int(stride.value) == 1:
            return ("load", "store"), self._piece(buffer, index.base), scale
        base, step = self.index(index.base), self.index(stride)
        return ("load_apart", "store_apart"), [base.place, buffer.place, step.place], scale

    def _piece(self, buffer: Buffer, index: Any) -> list[int]:
        """Return the places of the buffer and of the elements' index, or of its two summands."""
        if type(index) is tirx.Add and kind_of(index) == INT64:
            known = self.out.known(hash(index))
            if known is None:
                return [self.value(index.a).place, buffer.place, self.value(index.b).place]
        return [self.index(index).place, buffer.place]

    def load(self, e: Any, into: int) -> Value:
        """Return what is loaded."""
        out, index = self.out, e.indices[0]
        if self.stand_ins.hides(e.source):
            raise Hidden(f"{e.source} has no meaning over the ring")
        buffer, kind = self.buffers[hash(e.source)], kind_of(e)
        known = place_of(buffer, index)
        if known is not None and kind.size == buffer.element.size:
            return Value(known, out.moment)
        op, places, scale = self.address(buffer, index)
        place = into or out.slot(kind.size, out.moment)
        out.emit(op[0], kind.number, kind.lanes, scale, out.moment, place, *places)
        return Value(place, out.moment)

    def repeated(self, e: Any, kind: Kind, into: int) -> Value:
        """Return lanes that all hold one element."""
        out = self.out
        buffer = self.buffers.get(hash(e.source)) if type(e) is ir.TensorLoad else None
        if buffer is not None and buffer.element.lanes == 1 and out.known(hash(e)) is None:
            index = e.indices[0]
            if kind_of(index).lanes == 1 and place_of(buffer, index) is None:
                places = self._piece(buffer, index)
                place = into or out.slot(kind.size, out.moment)
                out.emit("load_spread", kind.number, kind.lanes, 1, out.moment, place, *places)
                return Value(place, out.moment)
        return out.compute("spread", kind, kind.size, self.value(e), into=into)
