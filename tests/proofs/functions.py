"""What the prover says of random functions, held against runs of them step by step.

A function has loops, of which some are divided among tasks, teams with barriers, conditions,
checks, variables, cells, and a table of integers. It stores elements of its input, vectors among
them, to its output or to a workspace. Most indices are those of rows, pieces of rows and tiles, so
that much of it is right; some are off by a little.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from tvm import tirx
from tvm.ir import PointerType, PrimType
from tvm.tirx import stmt as tir_stmt

from composite.compiler.tvm.proof import prove
from composite.compiler.tvm.proof.phases import BARRIER, LAUNCH
from tests.compiler.tvm.proof.running import Run, TooLong
from tests.proofs.expressions import Counts

_LANES = 4
_SIZES = (0, 1, 2, 3, 4, 5, 7, 9)
_OFF = 0.12  # how often an integer is off by a little
_KINDS = tir_stmt.ForKind


def const(value: int) -> Any:
    """An index."""
    return tirx.const(value, "int64")


class Drawn:
    """A function that a seed draws."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._count = itertools.count()
        self.rows, self.columns = (tirx.Var(n, "int64") for n in ("s0", "s1"))
        if self._draw.random() < 0.3:
            self.columns = const(self._draw.randint(1, 9))
        self._whole = self.rows * self.columns
        self._source = self._buffer("in0", (self.rows, self.columns))
        self._places = tirx.decl_buffer((self.rows,), "int32", "in1")
        self._result = self._buffer("out0", (self.rows, self.columns))
        self._flat = {
            n: tirx.decl_buffer((self._whole,), "float32", f"{n}_flat") for n in ("in0", "out0")
        }
        self._in_task = self._in_team = False

    @staticmethod
    def _buffer(name: str, shape: tuple[Any, ...]) -> Any:
        return tirx.decl_buffer(shape, "float32", name)

    def function(self) -> Any:
        """The function."""
        pointer = PointerType(PrimType("float32"))
        declared = [
            tir_stmt.DeclBuffer(self._flat[one.name], data=tirx.reinterpret(pointer, one.data))
            for one in (self._source, self._result)
        ]
        body = tirx.SeqStmt([*declared, *self._statements()])
        return tirx.PrimFunc([self._source, self._places, self._result], body)

    def _name(self, hint: str) -> str:
        return f"{hint}_{next(self._count)}"

    def _off(self, e: Any) -> Any:
        return e + const(self._draw.choice((-1, 1, 2))) if self._draw.random() < _OFF else e

    def _statements(self) -> list[Any]:
        return [self._loops() for _ in range(self._draw.randint(1, 2))]

    def _loops(self) -> Any:
        draw = self._draw
        made = draw.choice((self._rows_of, self._flat_of, self._pieces_of, self._team, self._table))
        return made()

    def _loop(self, extent: Any, body: Any, *, parallel: bool = False) -> Any:
        """A loop; `body` is given its counter."""
        counter = tirx.Var(self._name("i"), "int64")
        is_parallel = parallel and not self._in_task and self._draw.random() < 0.7
        self._in_task |= is_parallel
        made = body(counter)
        self._in_task &= not is_parallel
        kind = _KINDS.PARALLEL if is_parallel else _KINDS.SERIAL
        return tirx.For(counter, const(0), self._off(extent), kind, made)

    def _bound(self, value: Any, body: Any) -> Any:
        """What is computed with a value: as it is, in a variable, or in a cell."""
        kind = self._draw.random()
        if kind < 0.4:
            return body(value)
        if kind < 0.7:
            var = tirx.Var(self._name("v"), "int64")
            return tirx.SeqStmt([tirx.Bind(var, value), body(var)])
        cell = tirx.decl_buffer((const(1),), "int64", self._name("c"), scope="local")
        load = tirx.BufferLoad(cell, [const(0)])
        store = tir_stmt.BufferStore(cell, value, [const(0)])
        return tirx.SeqStmt([tir_stmt.AllocBuffer(cell), store, body(load)])

    def _store(self, at: Any) -> Any:
        """An element is stored, of the same place or of another one."""
        at = self._off(at)
        read = at if self._draw.random() < 0.7 else self._index_of_any(at)
        load = tirx.BufferLoad(self._flat["in0"], [read])
        return tir_stmt.BufferStore(self._flat["out0"], load, [at])

    def _index_of_any(self, at: Any) -> Any:
        last = self._off(self._whole - 1)
        return self._draw.choice((tirx.Min(at + 1, last), last - at, tirx.Min(at, const(0))))

    def _vector(self, at: Any) -> Any:
        ramp = tirx.Ramp(self._off(at), const(1), _LANES)
        load = tirx.BufferLoad(self._flat["in0"], [ramp])
        return tir_stmt.BufferStore(self._flat["out0"], load, [ramp])

    def _guarded(self, condition: Any, s: Any) -> Any:
        if self._draw.random() < _OFF:
            return s
        return tirx.IfThenElse(condition, s, None)

    def _rows_of(self) -> Any:
        """Rows, and the columns of each one by one or in vectors."""

        def row(i: Any) -> Any:
            return self._bound(i * self.columns, lambda line: self._columns_of(line, i))

        return self._loop(self.rows, row, parallel=True)

    def _columns_of(self, line: Any, i: Any) -> Any:
        kind = self._draw.random()
        if kind < 0.4:
            return self._loop(self.columns, lambda j: self._store(line + j), parallel=True)
        if kind < 0.6:  # the last vector of a row is moved back
            vectors = tirx.Div(self.columns + (_LANES - 1), const(_LANES))
            last = self._off(self.columns - _LANES)

            def moved(v: Any) -> Any:
                return self._vector(line + tirx.Min(v * _LANES, last))

            wide = self.columns >= _LANES
            return self._guarded(wide, self._loop(vectors, moved))
        if kind < 0.8:  # whole vectors, and then the rest
            whole = tirx.Div(self.columns, const(_LANES))
            vectors = self._loop(whole, lambda v: self._vector(line + v * _LANES))
            left = tirx.Mod(self.columns, const(_LANES))
            rest = self._loop(left, lambda j: self._store(line + whole * _LANES + j))
            return tirx.SeqStmt([vectors, rest])
        return self._gathered(line, i)

    def _gathered(self, line: Any, i: Any) -> Any:
        """A row that an integer of the input names."""
        named = tirx.Cast("int64", tirx.BufferLoad(self._places, [i]))

        def copied(row: Any) -> Any:
            def element(j: Any) -> Any:
                load = tirx.BufferLoad(self._flat["in0"], [self._off(row * self.columns + j)])
                return tir_stmt.BufferStore(self._flat["out0"], load, [line + j])

            loop = self._loop(self.columns, element)
            inside = tirx.And(row >= 0, row < self._off(self.rows))
            return self._guarded(inside, loop)

        return self._bound(named, copied)

    def _flat_of(self) -> Any:
        """All elements, shared among tasks."""
        share = const(self._draw.choice((2, 4, 8)))

        def task(t: Any) -> Any:
            return self._bound(t * share, part)

        def part(first: Any) -> Any:
            count = tirx.Min(share, self._whole - first)
            return self._loop(count, lambda j: self._unflattened(first + j))

        tasks = tirx.Div(self._whole + (share - 1), share)
        return self._loop(tasks, task, parallel=True)

    def _unflattened(self, flat: Any) -> Any:
        """An element by its number, or by the row and the column of its number."""
        if self._draw.random() < 0.5:
            return self._store(flat)
        row, column = tirx.Div(flat, self.columns), tirx.Mod(flat, self.columns)
        at = column * self.rows + row if self._draw.random() < 0.5 else row * self.columns + column
        return self._store(at)

    def _pieces_of(self) -> Any:
        """Blocks of rows, tiles of them, and the rows of a tile; the last may be moved back."""
        block = const(self._draw.choice((2, 3, 4)))
        moves = self._draw.random() < 0.3

        def rows(b: Any) -> Any:
            first = b * block
            if moves:
                first = tirx.Max(tirx.Min(first, self.rows - block), const(0))
            return self._bound(first, lambda f: self._loop(count(f), lambda r: row(f, r)))

        def count(first: Any) -> Any:
            return tirx.Min(block, self.rows - first)

        def row(first: Any, r: Any) -> Any:
            return self._loop(self.columns, lambda j: self._store((first + r) * self.columns + j))

        blocks = tirx.Div(self.rows + (block - 1), block)
        return self._loop(blocks, rows, parallel=True)

    def _team(self) -> Any:
        """A team that stores a workspace, meets, and reads all of it; trip after trip perhaps."""
        if self._in_team or self._in_task:
            return self._rows_of()
        self._in_team = True
        size = tirx.Max(self.rows, const(1))
        work = tirx.decl_buffer((size,), "float32", self._name("work"))

        def fill(i: Any) -> Any:
            load = tirx.BufferLoad(self._flat["in0"], [i * self.columns])
            return self._guarded(
                self.columns >= 1, tir_stmt.BufferStore(work, load, [self._off(i)])
            )

        def use(i: Any) -> Any:
            other = self._draw.choice((i, self.rows - 1 - i, const(0)))
            value = tirx.BufferLoad(work, [other])
            store = tir_stmt.BufferStore(self._flat["out0"], value, [i * self.columns])
            return self._guarded(self.columns >= 1, store)

        stages = [self._met(self._loop(self.rows, one, parallel=True)) for one in (fill, use)]
        body: Any = tirx.SeqStmt(stages)
        if self._draw.random() < 0.4:
            trips = const(self._draw.randint(2, 3))
            body = self._loop(trips, lambda _: tirx.SeqStmt(stages))
        self._in_team = False
        one = tirx.const(1, "int32")
        launched = tirx.AttrStmt(one, LAUNCH, one, body)
        return tirx.SeqStmt([tir_stmt.AllocBuffer(work), launched])

    def _met(self, s: Any) -> Any:
        one = tirx.const(1, "int32")
        return s if self._draw.random() < _OFF else tirx.AttrStmt(one, BARRIER, one, s)

    def _table(self) -> Any:
        """A table of places that the function makes itself, and what lies there."""
        size = tirx.Max(self.rows, const(1))
        table = tirx.decl_buffer((size,), "int64", self._name("table"))
        last = self._off(self.rows - 1)

        def fill(i: Any) -> Any:
            value = self._draw.choice((last - i, tirx.Min(i + 1, last), i))
            return tir_stmt.BufferStore(table, value, [i])

        def use(i: Any) -> Any:
            place = tirx.BufferLoad(table, [i])
            return self._bound(place * self.columns, lambda at: self._columns_at(at, i))

        loops = [self._loop(self.rows, fill), self._loop(self.rows, use, parallel=True)]
        return tirx.SeqStmt([tir_stmt.AllocBuffer(table), *loops])

    def _columns_at(self, at: Any, i: Any) -> Any:
        def element(j: Any) -> Any:
            load = tirx.BufferLoad(self._flat["in0"], [self._off(at + j)])
            return tir_stmt.BufferStore(self._flat["out0"], load, [i * self.columns + j])

        return self._loop(self.columns, element)


def runs(function: Any, seed: int) -> Iterator[Run]:
    """Runs at small sizes; those that take too long are left out."""
    names = sorted({str(d.name) for b in function.params for d in b.shape if hasattr(d, "name")})
    for number, sizes in enumerate(itertools.product(_SIZES, repeat=len(names))):
        try:
            yield Run(function, dict(zip(names, sizes, strict=True)), seed + number)
        except TooLong:
            continue


def run(seed: int, counts: Counts) -> None:
    """Prove a function, and run it."""
    function = Drawn(seed).function()
    proof = prove({"kernel": function}, {})
    found = (_wrong(one, overlaps=bool(proof.overlaps)) for one in runs(function, seed))
    wrong = next(filter(None, found), "")
    text = f"seed {seed}: {wrong}"
    counts.add("a function is right", proof.is_complete, not wrong, text)


def _wrong(run: Run, *, overlaps: bool) -> str:
    """What goes wrong in a run.

    That a table is read where it was not written is not looked at by the prover, and stores of
    neighbours by vectors that are moved back are right.
    """
    outside = [one for one in run.outside if "[None]" not in one]
    if outside or run.crossed:
        return f"{outside or run.crossed}"
    return f"{run.stored_twice}" if run.stored_twice and not overlaps else ""
