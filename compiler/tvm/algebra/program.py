"""Programs of words: what :mod:`.kernel` makes of loops, and the runtime runs step by step.

A program has frames of slots (each a vector of words in memory), buffers, and instructions in a
line. An operand is a place in a buffer: buffer 0 is the frame of whoever runs it. The runtime has
the same format (composite/runtime/words/program.h).
"""

from __future__ import annotations

import itertools
import struct
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from composite.compiler.tvm.algebra import ring
from composite.compiler.tvm.algebra.traced import Traced

MAGIC = b"composite words 1\n".ljust(24, b"\0")

OPS = (
    "end", "move", "add", "sub", "mul", "muladd", "and", "or", "xor", "shl", "shr",
    "div", "mod", "floordiv", "floormod", "min", "max", "eq", "ne", "lt", "le",
    "select", "cast", "spread", "ramp", "load", "load_spread", "load_apart", "gather",
    "store", "store_apart", "scatter", "allocate", "fill", "loop", "next",
    "jump", "jump_unless", "parallel", "team", "meet", "call", "return", "assert",
)  # fmt: skip
"""Instructions, by their numbers."""
_NUMBERS = {name: number for number, name in enumerate(OPS)}

KINDS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
"""What a word is, by numbers."""
_OF_TRACED = {"lshr": "shr"}
_INLINED = ("neg", "order")
ADVANCE = 8  # numbers of an instruction


class Kind(NamedTuple):
    """Of words: its number, how many bits one has, how many there are, and whether as a float."""

    number: int
    bits: int
    lanes: int
    is_float: bool

    @property
    def size(self) -> int:
        """Bytes."""
        return (self.bits >> 3) * self.lanes


class Value(NamedTuple):
    """Where words are, and in which scope they stay what they are (the outermost is 0)."""

    place: int
    depth: int


class _Scope:
    """Instructions that run together.

    Attributes:
        code: The instructions, each of ``ADVANCE`` numbers.
        known: What is forgotten where the scope ends.
        free: The slots that are free again then.
    """

    def __init__(self) -> None:
        self.code: list[int] = []
        self.known: list[int] = []
        self.free: list[tuple[int, int]] = []


class Writer:
    """A program under construction.

    A word is computed in the outermost scope in which all that it is made of is known, and once.
    What is loaded is known until the end of the statement.

    Attributes:
        depth: Of the innermost scope.
        moment: The depth of what is known in this statement alone.
    """

    def __init__(self) -> None:
        self.depth, self.moment = 0, 1
        self._scopes = [_Scope()]
        self._known: dict[int, Value] = {}  # by the hashes of expressions, which others keep
        self._statement = _Scope()
        self._slots: dict[int, list[int]] = {}  # free ones by their bytes
        self._frame = 64  # bytes
        self._constants: dict[bytes, int] = {}
        self._functions: dict[tuple[str, int, int, int], _Function] = {}
        self._buffers = itertools.count(1)
        self.messages: list[str] = []
        self.parameters: list[list[int]] = []

    def buffer(self) -> int:
        """Return the number of a new buffer."""
        return next(self._buffers)

    def known(self, key: int) -> Value | None:
        """Return what an expression was found to be."""
        return self._known.get(key)

    def keep(self, key: int, value: Value) -> None:
        """Remember what an expression is, as long as that holds."""
        self._known[key] = value
        self._scope(value.depth).known.append(key)

    def _scope(self, depth: int) -> _Scope:
        return self._statement if depth > self.depth else self._scopes[depth]

    def slot(self, size: int, depth: int) -> int:
        """Return a place in the frame until the end of a scope."""
        size = size if size <= 8 else -(-size // 16) * 16
        free = self._slots.get(size)
        # What was free in an inner loop is written there again in its next trip.
        if free and depth >= self.depth:
            place = free.pop()
        else:
            align = min(64, 8 if size <= 8 else 1 << (size - 1).bit_length())
            place = -(-self._frame // align) * align
            self._frame = place + size
        self._scope(depth).free.append((size, place))
        return place

    def constant(self, data: bytes) -> Value:
        """Return words that are known."""
        place = self._constants.get(data)
        if place is None:
            place = self._constants[data] = -(-self._frame // 64) * 64
            self._frame = place + len(data)
        return Value(place, 0)

    def emit(self, op: str, kind: int, lanes: int, extra: int, depth: int, *places: int) -> None:
        """Write an instruction in a scope."""
        code = self._scopes[depth if depth < self.depth else -1].code
        code += (_NUMBERS[op], kind, lanes, extra, *places, *_NOTHING[len(places) :])

    def compute(
        self, op: str, kind: Kind, size: int, *operands: Value, extra: int = 0, into: int = 0
    ) -> Value:
        """Return the result, of so many bytes, of an instruction on words of a kind."""
        depth = self.moment if into else max([v.depth for v in operands])
        place = into or self.slot(size, depth)
        self.emit(op, kind.number, kind.lanes, extra, depth, place, *[v.place for v in operands])
        return Value(place, depth)

    def end_statement(self) -> None:
        """Forget what was loaded."""
        if self._statement.known or self._statement.free:
            self._end(self._statement)
            self._statement = _Scope()

    def _end(self, scope: _Scope) -> None:
        for key in scope.known:
            del self._known[key]
        for size, place in scope.free:
            self._slots.setdefault(size, []).append(place)

    @contextmanager
    def scope(self) -> Iterator[list[int]]:
        """Write into a list of its own, for the caller to `place` when the scope has ended."""
        for key in self._statement.known:  # what was loaded may be another one in here
            del self._known[key]
        self._statement.known.clear()
        statement, self._statement = self._statement, _Scope()
        own = _Scope()
        self._scopes.append(own)
        self.depth, self.moment = self.moment, self.moment + 1
        yield own.code
        self.end_statement()
        self._scopes.pop()
        self.depth, self.moment = self.depth - 1, self.depth
        self._end(own)
        self._statement = statement

    def place(self, code: Sequence[int]) -> None:
        """Append instructions to the innermost scope."""
        self._scopes[-1].code += code

    def call(self, name: str, kind: Kind, *operands: Value, into: int = 0) -> Value:
        """Return what a function of the ring gives."""
        if name in _INLINED:
            words = [_Inlined(self, kind, operand) for operand in operands]
            return ring.function(name)(*words, bits=kind.bits).value
        key = (name, kind.number, kind.lanes, len(operands))
        function = self._functions.get(key)
        if function is None:
            number = len(self._functions)
            function = self._functions[key] = _Function(self, number, name, kind, len(operands))
        depth = self.moment if into else max(v.depth for v in operands)
        for parameter, operand in zip(function.parameters, operands, strict=True):
            self.emit("move", 0, kind.size, 0, depth, parameter, operand.place)
        self.emit("call", 0, 0, function.number, depth)
        place = into or self.slot(kind.size, depth)
        self.emit("move", 0, kind.size, 0, depth, place, function.result)
        return Value(place, depth)

    def permanent(self, size: int) -> int:
        """Return a place in the frame that nothing else has."""
        place = -(-self._frame // 64) * 64
        self._frame = place + size
        return place

    def finish(self, name: str) -> bytes:
        """Return the program's bytes."""
        (body,) = self._scopes
        code = [*body.code, _NUMBERS["end"], *[0] * (ADVANCE - 1)]
        starts = []
        for function in self._functions.values():
            starts.append(len(code) // ADVANCE)
            code += function.code
        texts = [_text(name), *map(_text, self.messages)]
        constants = [_text(data, place) for data, place in self._constants.items()]
        head = [self._frame, next(self._buffers), len(self.parameters), len(texts), len(constants)]
        head += [len(starts), len(code) // ADVANCE]
        parameters = [len(p) for p in self.parameters] + list(itertools.chain(*self.parameters))
        return b"".join(
            [
                array("q", head).tobytes(),
                array("q", parameters).tobytes(),
                *texts,
                *constants,
                array("q", [*starts, *code]).tobytes(),
            ]
        )


_NOTHING = (0, 0, 0, 0)


def _text(content: str | bytes, place: int = 0) -> bytes:
    data = content if isinstance(content, bytes) else content.encode()
    return struct.pack("<qq", place, len(data)) + data.ljust(-(-len(data) // 8) * 8, b"\0")


def library(programs: Sequence[bytes]) -> bytes:
    """Return the file of several programs."""
    return MAGIC + struct.pack("<q", len(programs)) + b"".join(programs)


class _Function:
    """A function of the ring: its own instructions, and the places of its operands and result."""

    def __init__(self, writer: Writer, number: int, name: str, kind: Kind, operands: int) -> None:
        self.number = number
        self.code: list[int] = []
        self.parameters = [writer.permanent(kind.size) for _ in range(operands)]
        words = [_Word(writer, self.code, kind, place) for place in self.parameters]
        made = ring.function(name)(*words, bits=kind.bits)
        self.result = made.place
        self.code += (_NUMBERS["return"], *[0] * (ADVANCE - 1))


class _Word(Traced):
    """A word of a function of the ring."""

    def __init__(self, writer: Writer, code: list[int], kind: Kind, place: int) -> None:
        self._writer = writer
        self._code = code
        self._kind = kind
        self.place = place

    def emit(self, op: str, other: Traced | int) -> _Word:
        """Write an instruction."""
        writer, kind = self._writer, self._kind
        if isinstance(other, int):
            right = writer.constant(words(other, kind)).place
        else:
            assert isinstance(other, _Word), "words of one function"
            right = other.place
        place = writer.permanent(kind.size)
        number = _NUMBERS[_OF_TRACED.get(op, op)]
        self._code += (number, kind.number, kind.lanes, 0, place, self.place, right, 0)
        return _Word(writer, self._code, kind, place)


class _Inlined(Traced):
    """A word of a function that is computed where it is called."""

    def __init__(self, writer: Writer, kind: Kind, value: Value) -> None:
        self._writer = writer
        self._kind = kind
        self.value = value

    def emit(self, op: str, other: Traced | int) -> _Inlined:
        """Write an instruction."""
        writer, kind = self._writer, self._kind
        if isinstance(other, int):
            right = writer.constant(words(other, kind))
        else:
            assert isinstance(other, _Inlined), "words of one function"
            right = other.value
        made = writer.compute(_OF_TRACED.get(op, op), kind, kind.size, self.value, right)
        return _Inlined(writer, kind, made)


def words(value: int, kind: Kind) -> bytes:
    """Return the same word in all lanes."""
    return (value % (1 << kind.bits)).to_bytes(kind.bits // 8, "little") * kind.lanes
